"""Who is at work on which mindstorm: one scheduler at a time, however many processes share a trace.

Whoever comes second waits for the first to end, and then finds its outcomes in the trace.
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
_AGAIN = 0.05
_TOLD_AFTER = 20

# A lock of an open file, where the system has it; elsewhere locks belong to the process, and two traces over
# one file in one process do not see each other's.
_SET: int = getattr(fcntl, "F_OFD_SETLK", 0)


class Claims:
    """Mindstorms that are taken by this trace; a lock in a file beside it keeps out other processes.

    The system lets go of the lock of a process that ends, by whatever means.
    """

    def __init__(self, path: Path | None) -> None:
        """Nothing is taken yet.

        Args:
            path: The file of locks, made when it is first needed; None where no other process can come.
        """
        self._path = path
        self._file: int | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._held: dict[str, asyncio.Lock] = {}
        self._known: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @property
    def held(self) -> tuple[str, ...]:
        """The mindstorms that are taken."""
        return tuple(self._held)

    def __contains__(self, mindstorm: str) -> bool:
        return mindstorm in self._held

    async def take(self, mindstorm: str, *, wait: bool = True) -> bool:
        """Takes a mindstorm, once nobody else is at work on it.

        Args:
            mindstorm: Its id.
            wait: Whether to wait for whoever is at work on it.

        Returns:
            Whether it was taken; always, if `wait` is set.

        Raises:
            OSError: The file of locks cannot be made.
        """
        loop = asyncio.get_running_loop()
        if self._loop is not loop and (self._loop is None or self._loop.is_closed()):
            self.close()  # Whoever was at work in an event loop that has ended is not any more.
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
        """Leaves a mindstorm to the next."""
        if (lock := self._held.pop(mindstorm, None)) is not None:
            self._lock(mindstorm, fcntl.F_UNLCK)
            lock.release()

    def close(self) -> None:
        """Lets go of everything."""
        for mindstorm in list(self._held):
            self.let_go(mindstorm)
        file, self._file = self._file, None
        if file is not None:
            os.close(file)

    def _lock(self, mindstorm: str, kind: int) -> bool:
        """Locks or unlocks the byte that stands for a mindstorm, of a file that stays empty."""
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
