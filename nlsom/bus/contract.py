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
        """Hosts an agent at an address; at most `limit` of its turns run at once.

        Raises:
            UsageError: The address is taken.
            BusClosed: The bus is closed.
        """
        ...

    def request(
        self, turn: Turn, *, to: str, deadline: float | None = None
    ) -> Coroutine[Any, Any, Said | None]:
        """Asks the agent at an address. Cancelling the request cancels the agent.

        Args:
            turn: What is asked.
            to: The address.
            deadline: On the event loop's clock, in seconds; None waits as long as the agent takes.

        Returns:
            What the agent returned: what it says, or None if it has nothing to say.

        Raises:
            UnknownAddress: No agent is hosted there.
            DeadlineExceeded: The agent did not answer in time, and was cancelled.
            BusClosed: The bus is closed, or was closed meanwhile.
            Exception: Whatever the agent raised.
        """
        ...

    async def describe(self, addresses: Sequence[str]) -> list[str]:
        """The identities of the agents at these addresses (`nlsom.agent.identity`), in the same order.

        Raises:
            UnknownAddress: No agent is hosted at one of them.
            BusClosed: The bus is closed.
        """
        ...

    @property
    def observed(self) -> bool:
        """Whether anybody listens; if not, events need not be made."""
        ...

    def publish(self, event: Event) -> None:
        """Passes an event to all listeners. Never waits: a slow listener misses events instead."""
        ...

    def listen(
        self, mindstorm: str | None = None, *, backlog: int = 4096
    ) -> AbstractAsyncContextManager[AsyncIterator[Event]]:
        """Listens to the events of one mindstorm, or of all if None.

        The iterator for one mindstorm ends after its last event. A listener that falls more than `backlog`
        events behind misses the oldest of them; a `Lagged` event says how many.
        """
        ...

    async def close(self) -> None:
        """Closes the bus: waiting requests raise `BusClosed`, agents are cancelled, listeners end."""
        ...
