"""The program of a society: its phases, checked and bound to members, prompts and rules."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from pydantic import JsonValue

from nlsom.errors import UsageError, meant
from nlsom.member import Member
from nlsom.phase import Ask, Limits, OnError, Until
from nlsom.rules import TieBreak
from nlsom.structure import Structure, hearing_classes
from nlsom.template import Template
from nlsom.verdict import Rule


@dataclass(frozen=True, slots=True)
class Seating:
    """Finds the members that a selector means: a member's name, a group, a role, or `everyone`."""

    members: tuple[Member, ...]
    groups: Mapping[str, tuple[int, ...]]

    def select(self, selector: str) -> tuple[int, ...]:
        """The places of the members that `selector` names, in declaration order.

        Raises:
            UsageError: It means nobody, or is the name of a member and the role of others.
        """
        if selector == "everyone":
            return tuple(range(len(self.members)))
        named = tuple(at for at, member in enumerate(self.members) if member.name == selector)
        if not named and selector in self.groups:
            named = self.groups[selector]
            if not named:
                return ()
        role = tuple(at for at, member in enumerate(self.members) if member.role == selector)
        if named and role and named != role:
            raise UsageError(
                f"{selector!r} is a member and a role, but not of the same members; rename one of them"
            )
        if found := named or role:
            return found
        known = (
            {"everyone"} | {member.name for member in self.members} | {member.role for member in self.members}
        )
        known = sorted(known | set(self.groups))
        raise UsageError(f"no member or role is called {selector!r}; {meant(selector, known)}")


@dataclass(frozen=True, slots=True)
class Step:
    """A phase, bound to its members and prompt.

    Attributes:
        ask: The phase as it was declared.
        name: Its name, unique in the program.
        who: Places of the members it asks.
        template: What they are asked.
        structure: Whose messages may reach whom in it.
        quorum: With fewer replies the mindstorm ends.
        on_error: What happens when a member fails.
        rounds: How many times it can run at most.
    """

    ask: Ask
    name: str
    who: tuple[int, ...]
    template: Template
    structure: Structure
    quorum: int
    on_error: OnError
    rounds: int


@dataclass(frozen=True, slots=True)
class Rounds:
    """Steps that are repeated.

    Attributes:
        count: Most rounds.
        steps: The steps of a round.
        until: When to end before that; None to run all rounds.
        of: Places of the members meant by `until.of`.
    """

    count: int
    steps: tuple[Step, ...]
    until: Until | None
    of: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Decision:
    """How the verdict is reached.

    Attributes:
        rule: Counts the votes.
        name: Name of the rule.
        over: Label of the votes; the last message of each voter with this label counts.
        of: Places of the voters.
        tie_break: What chooses among tied alternatives; `none` leaves them tied.
        proposals: Label of the proposals voted on, which votes call by who made them; None for other votes.
        competence: Probability that a voter is right, by name, from a record of past tasks.
    """

    rule: Rule
    name: str
    over: str
    of: tuple[int, ...]
    tie_break: TieBreak = "none"
    proposals: str | None = None
    competence: Mapping[str, float] = field(default_factory=dict[str, float])

    @property
    def frozen(self) -> JsonValue:
        """The reputations used throughout the mindstorm, with their digest; None if none are used."""
        if not self.competence:
            return None
        competence = dict(sorted(self.competence.items()))
        return {"competence": {**competence}, "digest": _digest([competence])}


@dataclass(frozen=True)
class Program:
    """All that the scheduler needs to know of a society.

    Attributes:
        name: Name of the society.
        members: In declaration order.
        identities: Identity of each member's agent (`nlsom.agent.identity`); "" until the society is open.
        steps: What happens, in order.
        decision: How the verdict comes about.
        limits: What it may spend.
    """

    name: str
    members: tuple[Member, ...]
    identities: tuple[str, ...]
    steps: tuple[Step | Rounds, ...]
    decision: Decision
    limits: Limits

    @property
    def flat(self) -> list[Step]:
        """All steps in order; those of repeated rounds once."""
        return flatten(self.steps)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The members' names."""
        return tuple(member.name for member in self.members)

    @cached_property
    def member_digests(self) -> tuple[str, ...]:
        """A digest per member, of everything that its replies depend on besides the turn."""
        return tuple(
            _digest([identity, member.name, member.role, member.persona, *(member.part or ())])
            for identity, member in zip(self.identities, self.members, strict=True)
        )

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of the whole program: societies with equal digests do the same."""
        return _digest(
            [
                self.name,
                self.member_digests,
                [_told(step) for step in self.steps],
                [self.decision.name, _rule(self.decision.rule), self.decision.over, self.decision.of],
                [self.decision.tie_break, self.decision.proposals, dict(self.decision.competence)],
                self.limits.model_dump(),
            ]
        )


def flatten(steps: Sequence[Step | Rounds]) -> list[Step]:
    """All steps in order; those of repeated rounds once."""
    return [inner for step in steps for inner in (step.steps if isinstance(step, Rounds) else (step,))]


def _told(step: Step | Rounds) -> object:
    if isinstance(step, Rounds):
        until = step.until.model_dump() if step.until else None
        return [step.count, until, [_told(inner) for inner in step.steps]]
    # By class, not by member: what 5,000 members hear alike is written once.
    hearing = [[repr(whom), who] for whom, who in hearing_classes(step.structure, step.who).items()]
    return [step.name, step.who, step.template.source, step.ask.model_dump(), hearing]


def _rule(rule: Rule) -> str:
    """A rule with its parameters, without the memory address in the `repr` of a plain function."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(rule))


def _digest(told: Sequence[object]) -> str:
    return hashlib.sha256(json.dumps(told, ensure_ascii=True).encode()).hexdigest()
