"""Societies within societies: which files are being read, to resolve paths and to detect circles."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from nlsom.errors import UsageError

_reading: ContextVar[tuple[tuple[str, Path | None], ...]] = ContextVar("reading", default=())


@contextmanager
def within(society: str, folder: Path | None) -> Generator[None]:
    """A context in which the members of a society are made; societies that they name are nested in it.

    Args:
        society: What identifies it: the name of an installed society, or the full path of its file.
        folder: The folder of its file, to which paths in the file are relative.

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
    """Resolves a path against the folder of the society file being read, if one is."""
    chain = _reading.get()
    folder = chain[-1][1] if chain else None
    return path if folder is None else folder / path.expanduser()
