"""What a mindstorm under way has come to: its scheduler and its supersteps share it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from nlsom.agent import Agent
from nlsom.budget import Budget, Spent
from nlsom.bus.contract import Bus
from nlsom.form import Form
from nlsom.journal import Journal
from nlsom.message import Message
from nlsom.minutes import Minutes
from nlsom.program import Program, Step
from nlsom.task import Task
from nlsom.verdict import Abstention, Vote
from nlsom.voting import settled

LOOKS = 128
"""How often it is looked, at most, whether the outcome of a phase is certain: a look counts every vote."""


@dataclass(slots=True)
class Underway:
    """A mindstorm under way.

    Attributes:
        id: Of the mindstorm.
        program: What it runs.
        task: What is asked.
        bus: Carries its turns.
        agents: Of the members, in declaration order.
        journal: Its side of the trace.
        budget: What it may still spend.
        retry_failed: Whether what failed in an earlier run is asked again.
        minutes: What was said.
        abstained: Who did not answer, and why.
        now: What this run spent.
        total: What the whole mindstorm cost, earlier runs included.
        saved: Turns that were never begun, since the outcome was certain or enough had replied.
        cut: Which limit ended it, if one did.
        deadline: When its time is up, on the loop's clock.
        votes: What was read of the last phase's ballots so far, by the digest of their message.
    """

    id: str
    program: Program
    task: Task
    bus: Bus
    agents: Sequence[Agent]
    journal: Journal
    budget: Budget
    retry_failed: bool
    minutes: Minutes
    abstained: list[Abstention] = field(default_factory=list[Abstention])
    now: Spent = field(default_factory=Spent)
    total: Spent = field(default_factory=Spent)
    saved: int = 0
    cut: str | None = None
    deadline: float | None = None
    votes: dict[str, Vote] = field(default_factory=dict[str, Vote])

    def enough(
        self, step: Step, form: Form, said: Mapping[int, Message], waiting: Collection[int]
    ) -> str | None:
        """Why a phase has what its `wait` asks for; None while it has not, or nobody is left to wait for."""
        wait = step.ask.wait
        if wait == "all" or not waiting or len(said) < min(step.quorum, len(step.who)):
            return None
        if wait != "certain":
            return f"{wait} replied" if len(said) >= wait else None
        if len(waiting) % max(1, len(step.who) // LOOKS):
            return None
        certain = settled(self.program, self.minutes, said, waiting, self.task, form, self.votes)
        return "certain" if certain else None
