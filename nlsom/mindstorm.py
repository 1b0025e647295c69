"""A mindstorm under way: its events, and its verdict."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Self

from nlsom.bus.contract import Bus
from nlsom.errors import NlsomError
from nlsom.event import Event
from nlsom.scheduler import Scheduler
from nlsom.verdict import Verdict


class Mindstorm:
    """Runs while its block is open; leaving the block cancels it, down to the models.

    Iterating gives its events; the last is a `Decided` or a `Stopped`.
    """

    def __init__(self, scheduler: Scheduler, bus: Bus) -> None:
        self.id = scheduler.id
        self._scheduler, self._bus = scheduler, bus
        self._stack = AsyncExitStack()
        self._events: AsyncIterator[Event] | None = None
        self._running: asyncio.Task[Verdict] | None = None

    async def __aenter__(self) -> Self:
        self._events = await self._stack.enter_async_context(self._bus.listen(self.id))
        self._running = asyncio.create_task(self._scheduler.run(), name=f"mindstorm {self.id}")
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._running is not None
        try:
            self._running.cancel()
            # Its error, if any, was told by `verdict()` and by the last event.
            await asyncio.gather(self._running, return_exceptions=True)
        finally:
            await self._stack.aclose()

    async def __aiter__(self) -> AsyncIterator[Event]:
        if self._events is None:
            raise NlsomError("open the mindstorm first: `async with society.mindstorm(task) as storm:`")
        async for event in self._events:
            yield event

    async def verdict(self) -> Verdict:
        """Waits for the verdict.

        Raises:
            NlsomError: The mindstorm stopped without one.
        """
        if self._running is None:
            raise NlsomError("open the mindstorm first: `async with society.mindstorm(task) as storm:`")
        return await asyncio.shield(self._running)
