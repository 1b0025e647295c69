"""Small tools for files that several processes share."""

from __future__ import annotations

import fcntl
import hashlib
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path


def sha256_of(path: Path) -> str:
    """SHA-256 (hex) of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def locked(path: Path) -> Generator[None]:
    """Holds a lock that other processes and threads respect; waits while another holds it.

    The lock belongs to the open file, so that the system frees it when its holder dies.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
