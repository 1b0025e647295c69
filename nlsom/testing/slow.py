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
    """Says a line after some seconds, and counts its turns.

    Attributes:
        says: The line.
        seconds: How long it takes.
        usage: The usage that it reports.
        running: Turns under way.
        begun: Turns begun so far.
        cancelled: Turns cancelled so far.
    """

    says: str = "yes"
    seconds: float = 0.01
    usage: Usage = field(default_factory=Usage)
    running: int = 0
    begun: int = 0
    cancelled: int = 0

    @property
    def identity(self) -> str:
        """Its identity, which depends on the line."""
        return f"slow/1 {self.says!r}"

    async def speak(self, turn: Turn) -> Said | None:
        """Says the line after `seconds`."""
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
