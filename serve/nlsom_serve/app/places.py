"""Limits how many mindstorms run concurrently, and how many wait."""

from __future__ import annotations

import asyncio
from typing import Self

from nlsom_serve.app.errors import busy


class Places:
    """Lets `at_once` mindstorms run and `queue` more wait, first in, first out; further ones are refused."""

    def __init__(self, at_once: int, queue: int) -> None:
        self.at_once, self.queue = at_once, queue
        self._free = asyncio.Semaphore(at_once)
        self._taken = 0
        self._running = 0
        self._mean_seconds = 1.0

    @property
    def running(self) -> int:
        """How many are running."""
        return self._running

    @property
    def waiting(self) -> int:
        """How many are waiting."""
        return self._taken - self._running

    def reserve(self, count: int = 1, *, always: bool = False) -> list[Place]:
        """Reserves places; `async with` on each waits until it may run.

        Args:
            count: How many.
            always: Whether to reserve them even if the queue is full.

        Raises:
            ApiError: 429: the queue has too little room.
        """
        if not always and self._taken + count > self.at_once + self.queue:
            seconds = min(60, max(1, round(self._mean_seconds * self._taken / self.at_once)))
            raise busy("the server is busy: its queue is full", seconds=seconds, code="queue_full")
        self._taken += count
        return [Place(self) for _ in range(count)]

    async def enter(self) -> None:
        """Waits until a mindstorm may run."""
        await self._free.acquire()
        self._running += 1

    def leave(self, seconds: float | None) -> None:
        """Gives a place back after `seconds` of use; None if it was never entered."""
        self._taken -= 1
        if seconds is not None:
            self._running -= 1
            self._free.release()
            self._mean_seconds += (seconds - self._mean_seconds) / 8  # a moving average, for Retry-After


class Place:
    """A reserved place: enter it once with `async with`, or give it back with `drop`."""

    def __init__(self, places: Places) -> None:
        self._places: Places | None = places
        self._since = 0.0

    async def __aenter__(self) -> Self:
        assert self._places is not None
        try:
            await self._places.enter()
        except BaseException:
            self.drop()
            raise
        self._since = asyncio.get_running_loop().time()
        return self

    async def __aexit__(self, *_: object) -> None:
        places, self._places = self._places, None
        assert places is not None
        places.leave(asyncio.get_running_loop().time() - self._since)

    def drop(self) -> None:
        """Gives the place back if it was not entered; no effect if it was given back already."""
        places, self._places = self._places, None
        if places is not None:
            places.leave(None)
