"""The bus within one process.

A request looks the agent up and awaits it in the caller's own task. So failure and cancellation need no
machinery, and an idle member costs a dictionary entry.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from nlsom.agent import Agent, identity
from nlsom.errors import AgentFailed, BusClosed, DeadlineExceeded, NlsomError, UnknownAddress, UsageError
from nlsom.event import Event, Lagged
from nlsom.message import Said
from nlsom.turn import Turn


class MemoryBus:
    """Carries turns and events within one event loop."""

    def __init__(self) -> None:
        self._agents: dict[str, Agent] = {}
        self._slots: dict[str, asyncio.Semaphore] = {}
        self._waiting: set[asyncio.Task[Any]] = set()
        self._all: list[_Listener] = []
        self._one: dict[str, list[_Listener]] = {}
        self._closed = False

    async def host(self, address: str, agent: Agent, *, limit: int | None = None) -> None:
        """Hosts an agent at an address; see `Bus.host`."""
        if self._closed:
            raise BusClosed("the bus is closed")
        if address in self._agents:
            raise UsageError(f"an agent is already hosted at {address!r}")
        self._agents[address] = agent
        if limit is not None:
            self._slots[address] = asyncio.Semaphore(limit)

    async def request(self, turn: Turn, *, to: str, deadline: float | None = None) -> Said | None:
        """Asks the agent at an address; see `Bus.request`."""
        if self._closed:
            raise BusClosed("the bus is closed")
        agent = self._agents.get(to)
        if agent is None:
            raise UnknownAddress(to, sorted(self._agents))
        task = asyncio.current_task()
        assert task is not None
        self._waiting.add(task)
        try:
            slot = self._slots.get(to)
            if slot is None and deadline is None:
                return await agent.speak(turn)
            try:
                async with asyncio.timeout_at(deadline):
                    if slot is None:
                        return await agent.speak(turn)
                    async with slot:
                        return await agent.speak(turn)
            except TimeoutError:
                if deadline is not None and asyncio.get_running_loop().time() >= deadline:
                    raise DeadlineExceeded(f"{to!r} did not answer in time") from None
                raise
        except asyncio.CancelledError:
            # Only `close` takes a task out of the set; any other cancellation is the caller's own.
            if task not in self._waiting:
                task.uncancel()
                raise BusClosed(f"the bus was closed while {to!r} was asked") from None
            raise
        except BusClosed as error:
            # Of another bus, such as that of a society that the agent asks: here the agent has failed.
            raise AgentFailed(f"BusClosed: {error}") from error
        finally:
            self._waiting.discard(task)

    async def describe(self, addresses: Sequence[str]) -> list[str]:
        """The identities of the agents at these addresses; see `Bus.describe`."""
        if self._closed:
            raise BusClosed("the bus is closed")
        for address in addresses:
            if address not in self._agents:
                raise UnknownAddress(address, sorted(self._agents))
        return [identity(self._agents[address]) for address in addresses]

    @property
    def observed(self) -> bool:
        """Whether anybody listens."""
        return bool(self._all or self._one)

    def publish(self, event: Event) -> None:
        """Passes an event to all listeners; see `Bus.publish`."""
        for listener in self._all:
            listener.put(event)
        for listener in self._one.get(event.mindstorm, ()):
            listener.put(event)

    @asynccontextmanager
    async def listen(
        self, mindstorm: str | None = None, *, backlog: int = 4096
    ) -> AsyncGenerator[AsyncIterator[Event]]:
        """Listens to the events of a mindstorm, or of all; see `Bus.listen`."""
        if self._closed:
            raise BusClosed("the bus is closed")
        listener = _Listener(mindstorm, backlog)
        group = self._all if mindstorm is None else self._one.setdefault(mindstorm, [])
        group.append(listener)
        try:
            yield listener
        finally:
            group.remove(listener)
            if mindstorm is not None and not group:
                self._one.pop(mindstorm, None)

    async def close(self) -> None:
        """Closes the bus; see `Bus.close`."""
        self._closed = True
        waiting, self._waiting = self._waiting, set()
        for task in waiting:
            task.cancel()
        for listener in [*self._all, *(one for group in self._one.values() for one in group)]:
            listener.end()
        self._agents.clear()


class _Listener:
    """A bounded queue that drops its oldest events rather than make the publisher wait."""

    def __init__(self, mindstorm: str | None, backlog: int) -> None:
        self._mindstorm = mindstorm
        self._backlog = max(1, backlog)
        self._events: deque[Event] = deque(maxlen=self._backlog)
        self._missed = 0
        self._ended = False
        self._wake: asyncio.Future[None] | None = None

    def put(self, event: Event) -> None:
        events = self._events
        if len(events) == self._backlog:
            self._missed += 1
        events.append(event)
        # Written out instead of called, as it runs for each event and each listener.
        wake = self._wake
        if wake is not None:
            self._wake = None
            if not wake.done():
                wake.set_result(None)

    def end(self) -> None:
        self._ended = True
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    def __aiter__(self) -> AsyncIterator[Event]:
        return self

    async def __anext__(self) -> Event:
        while not self._events:
            if self._ended:
                raise StopAsyncIteration
            if self._wake is not None:
                raise NlsomError(
                    "two wait for the same events, and each would miss some: listen once for each"
                )
            wake = self._wake = asyncio.get_running_loop().create_future()
            try:
                await wake
            finally:
                if self._wake is wake:
                    self._wake = None
        if self._missed:
            missed, self._missed = self._missed, 0
            return Lagged(mindstorm=self._events[0].mindstorm, missed=missed)
        event = self._events.popleft()
        if self._mindstorm is not None and event.kind in ("decided", "stopped"):
            self._ended = True
        return event
