"""Reads records one by one from JSON, JSON lines, CSV, TSV and Parquet files, in constant memory."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from nlsom.errors import ExtraMissing, UsageError

Record = dict[str, Any]
"""One record; a list becomes a record with the fields "item0", "item1", …"""

_CHUNK = 1 << 16
_SPACE = " \t\r\n"


def records(path: Path, key: str = "") -> Iterator[Record]:
    """Reads all records of a file lazily.

    Args:
        path: A `.json` (an array, an object with the array in the field `key`, or one object per line),
            `.jsonl`, `.csv`, `.tsv` or `.parquet` file.
        key: The field of the object that contains the array; "" for none.

    Raises:
        UsageError: The file cannot be read in its format; says where.
        ExtraMissing: The file is Parquet, and pyarrow is not installed.
    """
    readers = {".jsonl": _lines, ".csv": _table, ".tsv": _table, ".parquet": _parquet}
    suffix = path.suffix.casefold()
    if suffix != ".json" and suffix not in readers:
        raise UsageError(f"{path}: cannot read {path.suffix or 'a file without a suffix'!r}; {_FORMATS}")
    with _told(path):
        yield from _json(path, key) if suffix == ".json" else readers[suffix](path)


def keyed(path: Path) -> Iterator[tuple[str, Record]]:
    """Reads (identifier, record) pairs lazily from a JSON object that maps identifiers to records.

    Raises:
        UsageError: The file is not such an object; says where.
    """
    with _told(path), path.open(encoding="utf-8-sig") as file:
        stream = _Stream(file, path)
        for n, name in enumerate(_members(stream), 1):
            yield name, _record(stream.value(), path, n)


_FORMATS = "sets must be .json, .jsonl, .csv, .tsv or .parquet files"


@contextmanager
def _told(path: Path) -> Generator[None]:
    """Turns read errors into a `UsageError` that names the file."""
    try:
        yield
    except UnicodeDecodeError as fault:
        raise UsageError(f"{path}: not UTF-8 text: {fault.reason} at byte {fault.start}") from None
    except OSError as fault:
        raise UsageError(f"{path}: cannot be read: {fault.strerror or fault}") from None


def _record(value: object, path: Path, n: int) -> Record:
    if isinstance(value, dict):
        return cast(Record, value)
    if isinstance(value, list):
        return {f"item{at}": item for at, item in enumerate(cast(list[Any], value))}
    raise UsageError(f"{path}: record {n} is {type(value).__name__}, not an object")


def _lines(path: Path) -> Iterator[Record]:
    with path.open(encoding="utf-8-sig") as file:
        for n, line in enumerate(file, 1):
            if line.strip():
                try:
                    value = json.loads(line)
                except ValueError as fault:
                    raise UsageError(f"{path}:{n}: not JSON: {fault}") from None
                yield _record(value, path, n)


def _table(path: Path) -> Iterator[Record]:
    csv.field_size_limit(min(sys.maxsize, 1 << 30))  # MMBench's fields contain pictures in base64
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = csv.DictReader(file, delimiter="\t" if path.suffix.casefold() == ".tsv" else ",")
        for n, row in enumerate(rows, 2):
            if None in row or None in row.values():
                raise UsageError(
                    f"{path}:{n}: not as many fields as the header, which has {len(rows.fieldnames or ())}"
                )
            yield dict(row)


def _parquet(path: Path) -> Iterator[Record]:
    try:
        parquet: Any = import_module("pyarrow.parquet")  # an optional extra, which has no type annotations
    except ImportError:
        raise ExtraMissing(f"reading {path.name}", "bench") from None
    arrow: Any = import_module("pyarrow")
    try:
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=16):
                yield from cast(list[Record], batch.to_pylist())
    except arrow.ArrowException as fault:
        raise UsageError(f"{path}: cannot be read as Parquet: {fault}") from None


class _Stream:
    """A JSON text that is read value by value."""

    def __init__(self, file: io.TextIOBase, path: Path) -> None:
        self._file, self._path, self._decoder = file, path, json.JSONDecoder()
        self._held, self._at, self._ended = "", 0, False

    def _more(self) -> None:
        chunk = self._file.read(max(_CHUNK, len(self._held) - self._at))
        self._held, self._at, self._ended = self._held[self._at :] + chunk, 0, not chunk

    def peek(self) -> str:
        """The next character that is not whitespace; "" at the end."""
        while True:
            while self._at < len(self._held) and self._held[self._at] in _SPACE:
                self._at += 1
            if self._at < len(self._held):
                return self._held[self._at]
            if self._ended:
                return ""
            self._more()

    def take(self, expected: str) -> None:
        """Consumes one character.

        Raises:
            UsageError: It is not the expected one.
        """
        found = self.peek()
        if found != expected:
            raise UsageError(f"{self._path}: not JSON: expected {expected!r}, found {found or 'the end'!r}")
        self._at += 1

    def value(self) -> object:
        """Reads the next complete value.

        Raises:
            UsageError: It is not JSON.
        """
        self.peek()
        while True:
            try:
                value, end = self._decoder.raw_decode(self._held, self._at)
            except ValueError as fault:
                if self._ended:
                    raise UsageError(f"{self._path}: not JSON: {fault}") from None
            else:
                # A number at the end of the buffer may be incomplete.
                if end < len(self._held) or self._ended:
                    self._at = end
                    return value
            self._more()


def _json(path: Path, key: str) -> Iterator[Record]:
    with path.open(encoding="utf-8-sig") as file:
        stream = _Stream(file, path)
        if stream.peek() == "{" and not key:  # JSON lines with the suffix .json
            n = 0
            while stream.peek():
                yield _record(stream.value(), path, n := n + 1)
            return
        if key and stream.peek() == "{":
            _find(stream, path, key)
        yield from (_record(value, path, n) for n, value in enumerate(_array(stream), 1))


def _members(stream: _Stream) -> Iterator[str]:
    """The names in an object; the caller must read each value before it asks for the next name."""
    stream.take("{")
    while stream.peek() != "}":
        name = str(stream.value())
        stream.take(":")
        yield name
        if stream.peek() != "}":
            stream.take(",")


def _find(stream: _Stream, path: Path, key: str) -> None:
    """Moves to the array in a field of the outermost object."""
    seen: list[str] = []
    for name in _members(stream):
        if name == key:
            if stream.peek() != "[":
                raise UsageError(f"{path}: field {key!r} is not an array")
            return
        seen.append(name)
        stream.value()
    raise UsageError(f"{path}: has no field {key!r} (its fields: {', '.join(seen) or 'none'})")


def _array(stream: _Stream) -> Iterator[object]:
    stream.take("[")
    while stream.peek() != "]":
        yield stream.value()
        if stream.peek() != "]":
            stream.take(",")
