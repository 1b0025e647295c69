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
        limit: Most turns of this seat that may run at once; None for no limit.
    """

    member: Member
    agent: Agent
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class VerdictBy:
    """How the verdict is reached.

    Attributes:
        rule: Counts the votes.
        name: Name of the rule, as the verdict tells it.
        of: Whose votes count: a member, a group, a role, or `everyone`; None takes all who were asked.
        over: Label of the votes; None takes `ballot` if a phase has that label, else the last phase's label.
        tie_break: What chooses among tied alternatives.
        competence: Probability that each member is right (its reputation), by name.
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
        verdict: How the verdict is reached.
        structure: Whose messages may reach whom.
        task: The kind of task it works on.
        limits: What a mindstorm may spend.
        groups: Names for several members, in addition to roles; each with their places.
        templates: Finds prompts by name.
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
