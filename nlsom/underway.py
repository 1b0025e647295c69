"""The state of a running mindstorm, shared by its scheduler and its supersteps."""

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

CHECKS = 128
"""Most times per phase that certainty is checked: each check counts all votes."""


@dataclass(slots=True)
class Underway:
    """A mindstorm under way.

    Attributes:
        id: The id of the mindstorm.
        program: What it runs.
        task: What is asked.
        bus: Carries its turns.
        agents: The members' agents, in declaration order.
        journal: Reads and writes its trace.
        budget: What it may still spend.
        retry_failed: Whether what failed in an earlier run is asked again.
        minutes: What was said.
        abstained: Who did not answer, and why.
        now: What this run has spent.
        total: What the whole mindstorm has cost, earlier runs included.
        saved: Turns that an early end of their phase made unnecessary.
        cut: The limit that ended it early, if one did.
        deadline: When its time is up, on the event loop's clock.
        votes: Ballots of the last phase that have been read, by the digest of their message.
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
        """The reason why a phase may end early, as its `wait` says; None if it may not (yet)."""
        wait = step.ask.wait
        if wait == "all" or not waiting or len(said) < min(step.quorum, len(step.who)):
            return None
        if wait != "certain":
            return f"{wait} replied" if len(said) >= wait else None
        if len(waiting) % max(1, len(step.who) // CHECKS):
            return None
        certain = settled(self.program, self.minutes, said, waiting, self.task, form, self.votes)
        return "certain" if certain else None
