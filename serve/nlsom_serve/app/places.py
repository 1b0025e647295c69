"""Places: how many mindstorms run at once, and how many wait."""

from __future__ import annotations

import asyncio
from typing import Self

from nlsom_serve.app.errors import busy


class Places:
    """So many at once, so many waiting in the order they came; the rest is refused at once."""

    def __init__(self, at_once: int, queue: int) -> None:
        self.at_once, self.queue = at_once, queue
        self._free = asyncio.Semaphore(at_once)
        self._taken = 0
        self._running = 0
        self._usual = 1.0

    @property
    def running(self) -> int:
        """How many run."""
        return self._running

    @property
    def waiting(self) -> int:
        """How many wait."""
        return self._taken - self._running

    def reserve(self, count: int = 1, *, always: bool = False) -> list[Place]:
        """Takes places, of which each is then waited for by `async with`.

        Args:
            count: How many.
            always: Takes them although the queue is full.

        Raises:
            ApiError: 429: there are not as many.
        """
        if not always and self._taken + count > self.at_once + self.queue:
            seconds = min(60, max(1, round(self._usual * self._taken / self.at_once)))
            raise busy("the server is busy; the queue is full", seconds=seconds, code="queue_full")
        self._taken += count
        return [Place(self) for _ in range(count)]

    async def enter(self) -> None:
        """Waits for a free place."""
        await self._free.acquire()
        self._running += 1

    def leave(self, seconds: float | None) -> None:
        """Gives a place back; `seconds` says how long it was used, None that it never was."""
        self._taken -= 1
        if seconds is not None:
            self._running -= 1
            self._free.release()
            self._usual += (seconds - self._usual) / 8  # a running mean, for Retry-After


class Place:
    """A reserved place. Entered once; given back when it is left, or by `drop` if it is never entered."""

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
        """Gives back a place that was not entered."""
        places, self._places = self._places, None
        if places is not None:
            places.leave(None)
