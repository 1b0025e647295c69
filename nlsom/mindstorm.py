"""A mindstorm under way: its events, and its verdict."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Self

from nlsom.bus.contract import Bus
from nlsom.errors import NlsomError, NoVerdict
from nlsom.event import Decided, Event, stopped_by
from nlsom.scheduler import Scheduler
from nlsom.verdict import Verdict


class Mindstorm:
    """A mindstorm that runs while its block is open. Leaving the block cancels it, down to the models.

        async with society.mindstorm(task) as storm:
            async for event in storm:
                ...
            verdict = await storm.verdict()

    Iterating yields its events; the last is a `Decided` or a `Stopped`.

    Attributes:
        id: Its id, which names it in a trace.
    """

    def __init__(self, scheduler: Scheduler, bus: Bus) -> None:
        self.id = scheduler.id
        self._scheduler, self._bus = scheduler, bus
        self._events: AsyncIterator[Event] | None = None
        self._begun = asyncio.Event()
        self._told = False
        self._running: asyncio.Task[Verdict] | None = None

    async def __aenter__(self) -> Self:
        self._running = asyncio.create_task(self._run(), name=f"mindstorm {self.id}")
        return self

    async def _run(self) -> Verdict:
        try:
            # Listens only now: until then, another run may be at work on the same mindstorm of the trace.
            async with self._scheduler as scheduler, self._bus.listen(self.id) as self._events:
                self._begun.set()
                return await scheduler.run()
        finally:
            self._begun.set()

    async def __aexit__(self, *_: object) -> None:
        assert self._running is not None
        self._running.cancel()
        # Its error, if any, is raised by `verdict()` and told by the last event.
        await asyncio.gather(self._running, return_exceptions=True)

    async def __aiter__(self) -> AsyncIterator[Event]:
        running = self._opened()
        await self._begun.wait()
        if self._events is not None and not self._told:
            async for event in self._events:
                self._told = event.kind in ("decided", "stopped")
                yield event
        if self._told:
            return
        # It could not begin, or its bus was closed, which ended the events.
        self._told = True
        await asyncio.wait([running])
        error = asyncio.CancelledError() if running.cancelled() else running.exception()
        if error is None:
            yield Decided(mindstorm=self.id, verdict=running.result())
        else:
            yield stopped_by(self.id, error)

    async def verdict(self) -> Verdict:
        """Waits for the verdict.

        Raises:
            NoVerdict: The mindstorm was cancelled, or a member failed under `on_error: raise`.
            NlsomError: It failed otherwise, such as `TraceError` or `BusClosed`.
        """
        running = self._opened()
        await asyncio.wait([running])
        if running.cancelled():
            # The mindstorm was, not its caller: a `CancelledError` would end the caller's task in silence.
            raise NoVerdict(f"mindstorm {self.id} was cancelled: its block was left before it had a verdict")
        return running.result()

    def _opened(self) -> asyncio.Task[Verdict]:
        if self._running is None:
            raise NlsomError("open the mindstorm first: `async with society.mindstorm(task) as storm:`")
        return self._running
