"""Verdicts: votes, how a rule counts them, and what comes out. Pure: no I/O, no clock, no randomness."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from nlsom.message import NO_USAGE, Ballot, Frozen, Usage


@dataclass(frozen=True, slots=True)
class Vote:
    """A ballot, with who cast it.

    Attributes:
        voter: Name of the member.
        ballot: The vote, its alternatives in canonical form (`Task.canonical`); None is an abstention.
        confidence: Between 0 and 1; None if the voter could not tell.
        competence: Probability that the voter is right, from a record of past tasks; None if unknown.
    """

    voter: str
    ballot: Ballot | None
    confidence: float | None = None
    competence: float | None = None


@dataclass(frozen=True, slots=True)
class Count:
    """What a rule makes of the votes.

    Attributes:
        winners: The winner; several if tied; empty if nobody voted or nobody wins by this rule.
        tally: The figure that the rule compares, by alternative; more is better.
        pairwise: `pairwise[a][b]`: how many voters put a above b; for rules that look at pairs.
        confidence: Between 0 and 1: the winner's share of what was counted; None if the rule has none.
        cast: How many votes were counted, without abstentions.
        uncounted: Ballots that this rule cannot count, which become abstentions: the reason, by voter.
    """

    winners: tuple[str, ...]
    tally: dict[str, float]
    pairwise: dict[str, dict[str, float]] | None = None
    confidence: float | None = None
    cast: int = 0
    uncounted: dict[str, str] = field(default_factory=dict[str, str])


@runtime_checkable
class Rule(Protocol):
    """A voting rule: a pure function of the votes; their order does not matter."""

    def __call__(self, votes: Sequence[Vote], alternatives: Sequence[str]) -> Count:
        """Counts the votes.

        Args:
            votes: One per voter, abstentions included.
            alternatives: All that could be voted for, in declaration order; for an open question, all
                different answers that were given.
        """
        ...


@runtime_checkable
class SettlingRule(Rule, Protocol):
    """A rule that can tell when votes still to come can no longer change its winners."""

    def settled(
        self, votes: Sequence[Vote], outstanding: Sequence[float | None], alternatives: Sequence[str]
    ) -> bool:
        """Whether the winners are certain, however the outstanding voters vote, or if they abstain.

        Args:
            votes: The votes so far, abstentions included.
            outstanding: For each vote still to come, the voter's competence; None if unknown.
            alternatives: All that can be voted for; empty for an open question, in which a vote to come may
                name something new.
        """
        ...


class Abstention(Frozen):
    """Who did not answer or vote, when, and why."""

    member: str
    phase: str
    round: int
    cause: str


class Verdict(Frozen):
    """The verdict of a mindstorm.

    Attributes:
        answer: The answer; None if nobody voted, or the votes are tied and no tie-break was declared. An
            answer to an open question is in the words most used by those who gave it.
        counted: The answer in canonical form (`Task.canonical`), which is what a benchmark scores.
        confidence: Between 0 and 1; None if the rule gives none.
        rule: Name of the rule.
        tally: The figure that the rule compared, by alternative; worded like `answer`.
        pairwise: `pairwise[a][b]`: how many voters put a above b; for rules that compare pairs.
        tied: Alternatives that were tied, also if a declared tie-break then chose one.
        abstained: All abstentions, with their causes. A member of a nested society is `MEMBER/INNER_MEMBER`.
        cut_short: The limit that ended the mindstorm early; None if it ran to its end.
        rounds: How many times a phase was run.
        usage: Spent by this run.
        usage_total: Spent by the whole mindstorm, earlier runs included; except `seconds`, which are those of
            this run, since a trace stores no times.
        saved: Turns that an early end of their phase made unnecessary: their models had not been called yet.
        mindstorm: Id of the mindstorm.
    """

    answer: str | None
    counted: str | None = None
    confidence: float | None = None
    rule: str
    tally: dict[str, float] = {}
    pairwise: dict[str, dict[str, float]] | None = None
    tied: tuple[str, ...] = ()
    abstained: tuple[Abstention, ...] = ()
    cut_short: str | None = None
    rounds: int = 0
    usage: Usage = NO_USAGE
    usage_total: Usage = NO_USAGE
    saved: int = 0
    mindstorm: str = ""
