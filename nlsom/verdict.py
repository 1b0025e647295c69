"""Verdicts: votes, how a rule counts them, and what comes out. Pure: no I/O, no clock, no randomness."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from nlsom.message import NO_USAGE, Ballot, Frozen, Usage


@dataclass(frozen=True, slots=True)
class Vote:
    """A ballot with the name of who cast it.

    Attributes:
        voter: Name of the member.
        ballot: What was voted for; None is an abstention. Its alternatives are canonical already.
        confidence: Between 0 and 1, where the voter could tell.
        competence: Probability that this voter is right, from a record of past tasks; None where unknown.
    """

    voter: str
    ballot: Ballot | None
    confidence: float | None = None
    competence: float | None = None


@dataclass(frozen=True, slots=True)
class Count:
    """What a rule makes of the votes.

    Attributes:
        winners: One: the winner. Several: tied. None: nobody voted, or the rule found nobody.
        tally: The figure that the rule compares, by alternative; more is better.
        pairwise: `pairwise[a][b]`: how many voters put a above b; for rules that look at pairs.
        confidence: Between 0 and 1: the winner's share of what was counted, where that has a meaning.
        cast: How many votes were counted; abstentions are not.
        uncounted: Why a ballot could not be counted by this rule, by voter; they count as abstentions.
    """

    winners: tuple[str, ...]
    tally: dict[str, float]
    pairwise: dict[str, dict[str, float]] | None = None
    confidence: float | None = None
    cast: int = 0
    uncounted: dict[str, str] = field(default_factory=dict[str, str])


@runtime_checkable
class Rule(Protocol):
    """A voting rule: a pure function of votes, in whatever order they come."""

    def __call__(self, votes: Sequence[Vote], alternatives: Sequence[str]) -> Count:
        """Counts the votes.

        Args:
            votes: One a voter; abstentions are among them.
            alternatives: All that could be voted for, in declaration order; those that open answers
                came down to, where the task has no choices.
        """
        ...


@runtime_checkable
class SettlingRule(Rule, Protocol):
    """A rule that can tell when the votes still to come cannot change its winners."""

    def settled(
        self, votes: Sequence[Vote], outstanding: Sequence[float | None], alternatives: Sequence[str]
    ) -> bool:
        """Whether the winners stand, whatever the outstanding voters say, abstaining included.

        Args:
            votes: Those that came in; abstentions are among them.
            outstanding: For each vote still to come, the voter's competence; None where unknown.
            alternatives: All that can be voted for; empty for an open question, where a vote to come may
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
    """What a mindstorm comes to.

    Attributes:
        answer: The answer; None where the votes are tied and no tie-break was declared, or nobody voted. To
            an open question: in the words that most of those who gave it used (of such words, the first).
        counted: The answer as the task counts it, which is what a benchmark scores.
        confidence: Between 0 and 1, where the rule has a meaning for it.
        rule: Name of the rule.
        tally: The figure that the rule compared, by alternative, in the words that `answer` is told in.
        pairwise: `pairwise[a][b]`: voters who put a above b, for rules that look at pairs.
        tied: The alternatives that were tied, also where a declared tie-break then chose one.
        abstained: Every abstention of the mindstorm, with its cause; those within a society that is a member
            as `SEAT/MEMBER`.
        cut_short: The limit that ended the mindstorm early; None if it ran to its end.
        rounds: How many rounds of phases were closed.
        usage: Spent by the calls made now.
        usage_total: Spent by the whole mindstorm, stored replies of earlier runs included; its seconds are
            those of this run, since a trace stores no clock.
        saved: Turns that the early end of a phase made unnecessary: nobody was asked, or waited for a model
            and had not called it. What was in flight counts as spent.
        mindstorm: Its id.
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
