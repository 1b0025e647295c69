"""What a society is made of, before it is checked and bound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from nlsom.agent import Agent
from nlsom.member import Member
from nlsom.phase import Limits, Phase
from nlsom.rules import TieBreak
from nlsom.structure import Democracy, StructureSpec
from nlsom.task import Task, VqaTask
from nlsom.template import Templates
from nlsom.verdict import Rule


@dataclass(frozen=True, slots=True)
class Seat:
    """A member and the agent that speaks for it.

    Attributes:
        member: Who sits there.
        agent: Who speaks for it.
        limit: How many turns of it may run at once; None is without limit.
    """

    member: Member
    agent: Agent
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class VerdictBy:
    """How the verdict comes about.

    Attributes:
        rule: Counts the votes.
        name: What the rule is called in the verdict.
        of: Whose votes count: a member, a group, a role, or `everyone`; None takes all who were asked.
        over: Label of the votes; None takes `ballot` if a phase has it, else the last phase's.
        tie_break: What chooses among tied alternatives.
        competence: Probability that a member is right, by name: its reputation.
    """

    rule: Rule
    name: str
    of: str | None = None
    over: str | None = None
    tie_break: TieBreak = "none"
    competence: Mapping[str, float] = field(default_factory=dict[str, float])


@dataclass
class Blueprint:
    """The declarations of a society.

    Attributes:
        name: What it is called.
        seats: Its members and their agents, in declaration order.
        phases: The phases of a mindstorm.
        verdict: How the verdict comes about.
        structure: Whose messages may reach whom: made from the members.
        task: The kind of task it works on.
        limits: What a mindstorm may spend.
        groups: Names that stand for several members, beside roles.
        templates: Where prompts are found by name.
        about: What it is, in a sentence.
    """

    name: str
    seats: Sequence[Seat]
    phases: Sequence[Phase]
    verdict: VerdictBy
    structure: StructureSpec = field(default_factory=Democracy)
    task: type[Task] = VqaTask
    limits: Limits = field(default_factory=Limits)
    groups: Mapping[str, tuple[int, ...]] = field(default_factory=dict[str, "tuple[int, ...]"])
    templates: Templates = field(default_factory=lambda: Templates(()))
    about: str = ""
