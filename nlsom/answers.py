"""Answers from people: turns that wait until somebody answers them by key.

An agent for which a person speaks waits here. Whatever reaches the person (a web page, a terminal) lists the
open turns and gives the answer. It may come from anywhere before the deadline; the first one counts.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from nlsom.errors import DeadlineExceeded, NlsomError
from nlsom.turn import Turn


class NotOpen(NlsomError):
    """No turn with that key waits for an answer: it was answered, was never asked, or is over."""


@dataclass(frozen=True, slots=True)
class OpenTurn:
    """A turn that waits for a person.

    Attributes:
        turn: What is asked, in which form, and what was heard.
        deadline: Latest time for an answer, in seconds since 1970 (UTC); None: as long as the mindstorm runs.
    """

    turn: Turn
    deadline: float | None


@dataclass(slots=True)
class _Waiting:
    open: OpenTurn
    answer: asyncio.Future[str]
    waiters: int = 0


@dataclass(slots=True)
class Answers:
    """The open turns of one event loop. Turns with one key are the same turn: one answer serves them all."""

    _open: dict[str, _Waiting] = field(default_factory=dict[str, _Waiting])

    async def ask(self, turn: Turn, *, seconds: float | None = None) -> str:
        """Waits for the answer to a turn.

        Args:
            turn: What is asked.
            seconds: How long the person has; None: as long as the mindstorm runs.

        Raises:
            DeadlineExceeded: Nobody answered in time.
        """
        waiting = self._open.get(turn.key)
        if waiting is None:
            deadline = None if seconds is None else time.time() + seconds
            answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
            waiting = self._open[turn.key] = _Waiting(OpenTurn(turn, deadline), answer)
        waiting.waiters += 1
        try:
            async with asyncio.timeout(seconds):
                return await asyncio.shield(waiting.answer)
        except TimeoutError:
            raise DeadlineExceeded(
                f"{turn.member.name!r} did not answer within {seconds:g} seconds"
            ) from None
        finally:
            waiting.waiters -= 1
            if not waiting.waiters and self._open.get(turn.key) is waiting:
                del self._open[turn.key]

    def get(self, key: str) -> OpenTurn | None:
        """The open turn with that key; None if there is none."""
        waiting = self._open.get(key)
        return waiting.open if waiting is not None and not waiting.answer.done() else None

    def waiting(self) -> tuple[OpenTurn, ...]:
        """All open turns, in the order they were opened."""
        return tuple(one.open for one in self._open.values() if not one.answer.done())

    def give(self, key: str, text: str) -> None:
        """Answers a turn; the first answer counts.

        Raises:
            NotOpen: No turn with that key waits for an answer.
        """
        waiting = self._open.get(key)
        if waiting is None or waiting.answer.done():
            raise NotOpen("no turn of this key waits for an answer")
        waiting.answer.set_result(text)


@runtime_checkable
class Answered(Protocol):
    """An agent for which a person speaks. Whoever runs its society sets where answers come in."""

    answers: Answers | None
