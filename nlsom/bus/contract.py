"""The contract of a bus."""

from __future__ import annotations

from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from nlsom.agent import Agent
from nlsom.event import Event
from nlsom.message import Said
from nlsom.turn import Turn


class Bus(Protocol):
    """Carries turns to agents and events to observers."""

    async def host(self, address: str, agent: Agent, *, limit: int | None = None) -> None:
        """Answers for `address` with `agent`, at most `limit` turns at once.

        Raises:
            UsageError: The address is taken.
            BusClosed: The bus is closed.
        """
        ...

    def request(
        self, turn: Turn, *, to: str, deadline: float | None = None
    ) -> Coroutine[Any, Any, Said | None]:
        """Asks the agent at `to`; cancelling the request cancels the agent.

        Args:
            turn: What is asked.
            to: The address.
            deadline: In seconds of the event loop's clock; None waits as long as the agent takes.

        Raises:
            UnknownAddress: Nobody is hosted there.
            DeadlineExceeded: The agent did not answer in time; it was cancelled.
            BusClosed: The bus is closed, or was while this waited.
            Exception: Whatever the agent raised.
        """
        ...

    async def describe(self, addresses: Sequence[str]) -> list[str]:
        """The identities of the agents at these addresses (`nlsom.agent.identity`), in the same order.

        Raises:
            UnknownAddress: Nobody is hosted at one of them.
            BusClosed: The bus is closed.
        """
        ...

    @property
    def observed(self) -> bool:
        """Whether anybody listens; where not, events need not be made."""
        ...

    def publish(self, event: Event) -> None:
        """Hands an event to all who listen. Never waits: a slow listener misses events instead."""
        ...

    def listen(
        self, mindstorm: str | None = None, *, backlog: int = 4096
    ) -> AbstractAsyncContextManager[AsyncIterator[Event]]:
        """Listens to the events of a mindstorm, or of all.

        The iterator of one mindstorm ends after its last event. A listener that falls more than `backlog`
        events behind misses the oldest of them, and is told how many by a `Lagged`.
        """
        ...

    async def close(self) -> None:
        """Closes the bus: whoever waits gets `BusClosed`, agents are cancelled, listeners end."""
        ...
