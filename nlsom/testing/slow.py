"""Agents that take their time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from nlsom.message import Said, Usage
from nlsom.turn import Turn


@dataclass(slots=True)
class Slow:
    """Says one line after some seconds, and knows how many of its turns are under way.

    Attributes:
        says: The line.
        seconds: How long it takes.
        usage: What a turn costs.
        running: Turns under way.
        begun: Turns that were ever begun.
        cancelled: Turns that were cancelled.
    """

    says: str = "yes"
    seconds: float = 0.01
    usage: Usage = field(default_factory=Usage)
    running: int = 0
    begun: int = 0
    cancelled: int = 0

    @property
    def identity(self) -> str:
        """What its replies depend on."""
        return f"slow/1 {self.says!r}"

    async def speak(self, turn: Turn) -> Said | None:
        """The line, once the time has passed."""
        async with self._turn():
            await asyncio.sleep(self.seconds)
        return Said.words(self.says, usage=self.usage)

    @asynccontextmanager
    async def _turn(self) -> AsyncGenerator[None]:
        self.running += 1
        self.begun += 1
        try:
            yield
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.running -= 1
