"""Societies within societies: which files are being read, so that paths are found and circles are told."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from nlsom.errors import UsageError

_reading: ContextVar[tuple[tuple[str, Path | None], ...]] = ContextVar("reading", default=())


@contextmanager
def within(society: str, folder: Path | None) -> Generator[None]:
    """The members of a society are being made: societies that they name are nested in it.

    Args:
        society: What tells it from others: the name of an installed one, or the whole path of its file.
        folder: Of its file; paths that its members name start there.

    Raises:
        UsageError: It is nested in itself.
    """
    chain = _reading.get()
    names = [name for name, _ in chain]
    if society in names:
        circle = [*names[names.index(society) :], society]
        raise UsageError(f"a society cannot be a member of itself: {' → '.join(circle)}")
    token = _reading.set((*chain, (society, folder)))
    try:
        yield
    finally:
        _reading.reset(token)


def beside(path: Path) -> Path:
    """A path as the file that names it means it: from the folder of that file, or from here outside any."""
    chain = _reading.get()
    folder = chain[-1][1] if chain else None
    return path if folder is None else folder / path.expanduser()
