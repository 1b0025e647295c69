"""Agents for tests, without models or network: they say what they are told to, late, or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from nlsom.agent import Agent
from nlsom.blueprint import Seat, VerdictBy
from nlsom.member import Member
from nlsom.message import Said, Usage
from nlsom.phase import Ask, Inline, Limits, Phase
from nlsom.rules import Plurality
from nlsom.society import Society
from nlsom.trace.contract import Trace
from nlsom.turn import Turn


@dataclass
class Saying:
    """Says given words, or what a function of the turn returns; records its turns.

    Attributes:
        say: What to say, or a function of the turn that returns it (None for "nothing to say").
        seconds: How long it takes.
        usage: The usage that it reports.
        identity: Its identity.
        turns: The turns that it was asked.
        running: Turns under way.
        most: Most turns that were ever under way at once.
        cancelled: Turns that were cancelled.
    """

    say: str | Said | Callable[[Turn], str | Said | None] = "yes"
    seconds: float = 0.0
    usage: Usage = field(default_factory=Usage)
    identity: str = "saying/1"
    turns: list[Turn] = field(default_factory=list[Turn])
    running: int = 0
    most: int = 0
    cancelled: int = 0

    async def speak(self, turn: Turn) -> Said | None:
        """Says it."""
        self.turns.append(turn)
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            if self.seconds:
                await asyncio.sleep(self.seconds)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.running -= 1
        said = self.say(turn) if callable(self.say) else self.say
        return Said.words(said, usage=self.usage) if isinstance(said, str) else said


@dataclass
class Failing:
    """Raises an error: always, or in the first `times` turns only.

    Attributes:
        error: What it raises.
        times: In how many turns; None for always.
        then: What it says afterwards.
        asked: How many turns it was asked.
    """

    error: BaseException = field(default_factory=lambda: RuntimeError("broken"))
    times: int | None = None
    then: str = "yes"
    asked: int = 0

    async def speak(self, turn: Turn) -> Said | None:
        """Raises, or says `then`."""
        self.asked += 1
        if self.times is None or self.asked <= self.times:
            raise self.error
        return Said.words(self.then)


class Hanging:
    """Never answers: its turns end only by cancellation.

    Attributes:
        asked: How many turns it was asked.
        cancelled: How many of them were cancelled.
    """

    def __init__(self) -> None:
        self.asked = 0
        self.cancelled = 0

    async def speak(self, turn: Turn) -> Said | None:
        """Waits for ever."""
        self.asked += 1
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return None


VOTE = Ask(ask="everyone", prompt=Inline(text="Vote."), label="ballot", form="answer")


def panel(
    agents: Sequence[Agent],
    phases: Sequence[Phase] = (VOTE,),
    *,
    limits: Limits | None = None,
    verdict: VerdictBy | None = None,
    trace: Trace | None = None,
    roles: Sequence[str] = (),
) -> Society:
    """A democracy of members `m0`, `m1`, …, one per agent, that by default votes by plurality."""
    seats = [
        Seat(Member(f"m{at}", roles[at] if roles else "member"), agent) for at, agent in enumerate(agents)
    ]
    return Society(
        name="panel",
        seats=seats,
        phases=phases,
        verdict=verdict or VerdictBy(Plurality(), "plurality"),
        limits=limits or Limits(),
        trace=trace,
    )
