"""Claims on mindstorms: one scheduler at a time works on each, however many processes share a trace.

Whoever comes second waits for the first to finish, and then finds its outcomes in the trace.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import logging
import os
import struct
from pathlib import Path
from weakref import WeakValueDictionary

_LOG = logging.getLogger("nlsom.trace")
_AGAIN = 0.05  # seconds between attempts to lock
_TOLD_AFTER = 20  # attempts after which the wait is logged

# Locks of open file descriptions, where the system has them. Elsewhere locks belong to the process, so two
# traces over one file in the same process do not exclude each other.
_SET: int = getattr(fcntl, "F_OFD_SETLK", 0)


class Claims:
    """The mindstorms claimed by this trace. A lock in a file beside it keeps other processes out.

    The system releases the locks of a process that ends in any way.
    """

    def __init__(self, path: Path | None) -> None:
        """Claims nothing yet.

        Args:
            path: The lock file, made when it is first needed; None if no other process can use the trace.
        """
        self._path = path
        self._file: int | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._held: dict[str, asyncio.Lock] = {}
        self._known: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @property
    def held(self) -> tuple[str, ...]:
        """The ids of the claimed mindstorms."""
        return tuple(self._held)

    def __contains__(self, mindstorm: str) -> bool:
        return mindstorm in self._held

    async def take(self, mindstorm: str, *, wait: bool = True) -> bool:
        """Claims a mindstorm.

        Args:
            mindstorm: Its id.
            wait: Whether to wait while someone else is at work on it.

        Returns:
            Whether it was claimed; always true if `wait` is set.

        Raises:
            OSError: The lock file cannot be made.
        """
        loop = asyncio.get_running_loop()
        if self._loop is not loop and (self._loop is None or self._loop.is_closed()):
            self.close()  # Claims made in an event loop that has ended are void.
            self._loop = loop
        lock = self._known.setdefault(mindstorm, asyncio.Lock())
        if not wait and lock.locked():
            return False
        await lock.acquire()
        try:
            tries = 0
            while not self._lock(mindstorm, fcntl.F_WRLCK):
                if not wait:
                    lock.release()
                    return False
                if tries == _TOLD_AFTER:
                    _LOG.warning("another process is at work on mindstorm %s; waiting for its end", mindstorm)
                tries += 1
                await asyncio.sleep(_AGAIN)
        except BaseException:
            lock.release()
            raise
        self._held[mindstorm] = lock
        return True

    def let_go(self, mindstorm: str) -> None:
        """Releases a mindstorm."""
        if (lock := self._held.pop(mindstorm, None)) is not None:
            self._lock(mindstorm, fcntl.F_UNLCK)
            lock.release()

    def close(self) -> None:
        """Releases all mindstorms, and closes the lock file."""
        for mindstorm in list(self._held):
            self.let_go(mindstorm)
        file, self._file = self._file, None
        if file is not None:
            os.close(file)

    def _lock(self, mindstorm: str, kind: int) -> bool:
        """Locks or unlocks the byte that stands for a mindstorm, in a file that stays empty."""
        if self._path is None:
            return True
        if self._file is None:
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        at = int.from_bytes(hashlib.sha256(mindstorm.encode()).digest()[:8]) >> 2
        try:
            if _SET:
                fcntl.fcntl(self._file, _SET, struct.pack("hhqqi4x", kind, os.SEEK_SET, at, 1, 0))
            else:
                how = fcntl.LOCK_UN if kind == fcntl.F_UNLCK else fcntl.LOCK_EX | fcntl.LOCK_NB
                fcntl.lockf(self._file, how, 1, at)
        except (BlockingIOError, PermissionError):
            return False
        return True
