"""Opens a set: finds its files, reads its samples lazily, and selects some of them."""

from __future__ import annotations

import importlib.util
import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

from nlsom.bench.sample import Sample
from nlsom.bench.sets.fields import Row
from nlsom.bench.sets.hub import fetched
from nlsom.bench.sets.records import Record, records
from nlsom.bench.sets.spec import Files, Spec
from nlsom.errors import ExtraMissing, UsageError


@dataclass(frozen=True, slots=True)
class SampleSet:
    """A set on this machine. Each iteration reads its files again, one record at a time.

    Attributes:
        spec: Its declaration.
        path: Its folder, or its only file.
    """

    spec: Spec
    path: Path

    def __iter__(self) -> Iterator[Sample]:
        """All samples, in the order of the files.

        Raises:
            UsageError: A file is missing or has an unknown layout; says which file and field.
        """
        root = self.path if self.path.is_dir() else self.path.parent
        find = _Finder(root, self.spec.folders)
        seen = set[int]()  # only hashes, since sets may have half a million samples
        for row in self._rows(root):
            sample = self.spec.convert(row, find)
            if (known := hash(sample.id)) in seen:
                raise UsageError(f"{row.where}: an earlier record has the same identifier, {sample.id!r}")
            seen.add(known)
            yield sample

    def samples(self, limit: int | None = None, *, seed: int | None = None) -> Iterator[Sample]:
        """Iterates over some of the samples, in the order of the set.

        Args:
            limit: Number of samples; None for all.
            seed: Seed for drawing them at random, without replacement; equal seeds draw equal samples. None
                takes the first ones.
        """
        if limit is None or seed is None:
            return islice(self, limit)
        count = sum(1 for _ in self)
        chosen = set(random.Random(seed).sample(range(count), min(limit, count)))  # noqa: S311 - no secret
        return (sample for n, sample in enumerate(self) if n in chosen)

    def _rows(self, root: Path) -> Iterator[Row]:
        mains, files = self._layout(root)
        if files.join:
            seconds = sorted(root.glob(files.join))
            if len(mains) != 1 or len(seconds) != 1:
                raise UsageError(
                    f"{root}: {len(mains)} files {files.pattern} and {len(seconds)} files {files.join}, but "
                    "there must be one of each; use a separate folder for each split"
                )
            yield from _joined(mains[0], seconds[0], files)
            return
        # A number across all files, used by sets whose records have no identifier.
        for number, row in enumerate(chain.from_iterable(_rows_of(path, files) for path in mains), 1):
            yield Row({"number": number} | row.record, row.where)

    def _layout(self, root: Path) -> tuple[list[Path], Files]:
        """The files of the first layout that is found, and the layout."""
        if self.path.is_file():
            of_kind = [each for each in self.spec.layouts if Path(each.pattern).suffix == self.path.suffix]
            return [self.path], (of_kind or list(self.spec.layouts))[0]
        for files in self.spec.layouts:
            found = sorted(path for path in root.glob(files.pattern) if path.is_file())
            if found:
                return found, files
        wanted = " or ".join(files.pattern for files in self.spec.layouts)
        raise UsageError(
            f"{root}: no file matches {wanted}, as the set {self.spec.name!r} requires; "
            f"get it from {self.spec.source}"
        )


def _rows_of(path: Path, files: Files) -> Iterator[Row]:
    if files.read is not None:
        return files.read(path)
    return _numbered(path, files.key)


def _numbered(path: Path, key: str) -> Iterator[Row]:
    return (Row(each, f"{path}, record {n}") for n, each in enumerate(records(path, key), 1))


def _joined(main: Path, second: Path, files: Files) -> Iterator[Row]:
    """Joins the records of two files, which are read in parallel.

    Records of the second file are kept until their counterpart is read. The official files have the same
    order, so hardly any have to be kept.
    """
    waiting: dict[str, Record] = {}
    others = _numbered(second, files.join_key)
    for row in _numbered(main, files.key):
        name = str(row.get(files.on))
        while name not in waiting:
            other = next(others, None)
            if other is None:
                raise UsageError(f"{second}: no record with {files.on} {name}, as in {row.where}")
            waiting[str(other.get(files.on))] = other.record
        yield Row(row.record | waiting.pop(name), row.where)


class _Finder:
    """Finds pictures by file name in the set's folders; the folder of the last one is tried first."""

    def __init__(self, root: Path, folders: tuple[str, ...]) -> None:
        self._folders = [root / folder for folder in folders]

    def __call__(self, *names: str) -> str:
        for name in names:
            if "://" in name or Path(name).is_absolute():
                return name
            for at, folder in enumerate(self._folders):
                if (folder / name).is_file():
                    self._folders.insert(0, self._folders.pop(at))
                    return str(folder / name)
        # Not found: the media gate will report the missing picture.
        return str(self._folders[0] / names[0])


def open_set(spec: Spec, path: str | Path | None = None) -> SampleSet:
    """Opens a set from its declaration.

    Args:
        spec: The declaration.
        path: Its folder or file. Optional for a set that comes as a Python package, is in the cache, or can
            be fetched from a hub.

    Raises:
        UsageError: There is nothing at the path; or no path is given, and no place to fetch the set from is
            known.
        ExtraMissing: The package that contains the set, or the hub's client, is not installed.
        Unavailable: The set cannot be fetched.
    """
    if path is not None:
        at = Path(path).expanduser()
        if not at.exists():
            raise UsageError(f"{at}: no such file or folder (get the set {spec.name!r} from {spec.source})")
        return SampleSet(spec, at)
    if not spec.package:
        return SampleSet(spec, fetched(spec))
    found = importlib.util.find_spec(spec.package)
    if found is None or not found.submodule_search_locations:
        raise ExtraMissing(f"the set {spec.name!r}", "bench")
    return SampleSet(spec, Path(found.submodule_search_locations[0]))
