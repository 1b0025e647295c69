"""A superstep: one phase under way, for the scheduler that runs it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from nlsom.budget import Budget, Calls
from nlsom.errors import NlsomError
from nlsom.form import Form
from nlsom.message import Message
from nlsom.program import Step
from nlsom.turn import Turn
from nlsom.verdict import Abstention

LIMIT = "limit of seconds"
LATE = "seconds of the phase"
"""Why a phase was closed: the mindstorm's time is over, or its own."""

REFUSED = "over the budget of "
"""How the cause of an abstention begins that a budget is the reason for."""


@dataclass(slots=True)
class Superstep:
    """One phase under way: its turns, what came of them, and whether it was closed early.

    Attributes:
        step: The phase.
        round: From 1.
        form: The shape of the answers.
        turns: Who is asked, and what, in declaration order.
        done: Whose outcome is known.
        messages: What was said.
        missed: Who abstained.
        meters: What each turn may take of the budget.
        calls: Of models, by the turn that was begun.
        in_flight: Calls of members that were cut off after they had been asked, by name.
        stands: Whether failures stand, since what an earlier run made of them does.
        tasks: The turns under way.
        closed: Why it ended early.
        failed: What ends the mindstorm.
    """

    step: Step
    round: int
    form: Form
    turns: list[tuple[int, Turn]]
    done: set[int] = field(default_factory=set[int])
    messages: dict[int, Message] = field(default_factory=dict[int, Message])
    missed: dict[int, Abstention] = field(default_factory=dict[int, Abstention])
    meters: dict[int, Budget] = field(default_factory=dict[int, Budget])
    calls: dict[int, Calls] = field(default_factory=dict[int, Calls])
    in_flight: dict[str, int] = field(default_factory=dict[str, int])
    stands: bool = False
    tasks: list[asyncio.Task[None]] = field(default_factory=list["asyncio.Task[None]"])
    closed: str | None = None
    failed: NlsomError | None = None

    @property
    def alone(self) -> str:
        """The one who is asked, where members are asked in turn; "" where they are asked together."""
        return "" if self.step.ask.order == "together" else self.turns[0][1].member.name

    def close(self, reason: str) -> None:
        """Ends the phase: whoever has not answered is cancelled."""
        if self.closed is None:
            self.closed = reason
            for task in self.tasks:
                task.cancel()

    def fail(self, error: NlsomError) -> None:
        """Ends the mindstorm with an error."""
        if self.failed is None:
            self.failed = error
            self.close("failed")
