"""What each kind of ballot means to each kind of rule. What has no meaning here is not counted.

| ballot   | one choice          | order               | strict order        | approvals    | scores  |
|----------|---------------------|---------------------|---------------------|--------------|---------|
| Choice   | it                  | it, then the others | it alone            | it           | -       |
| Approval | it, if just one     | they, then others   | it, if just one     | as it says   | -       |
| Ranking  | the first           | as it says          | as it says          | -            | -       |
| Scores   | the highest, if one | by score            | by score if no ties | from a bound | as said |

Alternatives that a ballot leaves out are tied for last in an order, absent from a strict order, and have the
lowest score. A ballot that names an unknown alternative, or ranks one twice, is not counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import groupby
from typing import TypeVar

from nlsom.message import Approval, Ballot, Choice, Ranking
from nlsom.verdict import Vote

T = TypeVar("T")

UNSEEN = "\0 an answer that nobody has given yet"
"""Stands for any new answer that a vote to come may give to an open question."""


class BallotError(ValueError):
    """A ballot that a rule cannot count; the message says why."""


def named(ballot: Ballot) -> tuple[str, ...]:
    """The alternatives that a ballot names."""
    if isinstance(ballot, Choice):
        return (ballot.choice,)
    if isinstance(ballot, Approval):
        return ballot.approved
    if isinstance(ballot, Ranking):
        return ballot.ranking
    return tuple(ballot.scores)


def field_of(votes: Sequence[Vote], alternatives: Sequence[str]) -> tuple[str, ...]:
    """The alternatives; if none are given, all that ballots name, sorted."""
    if alternatives:
        return tuple(alternatives)
    return tuple(sorted({name for vote in votes if vote.ballot is not None for name in named(vote.ballot)}))


def read(
    votes: Sequence[Vote], alternatives: Sequence[str], take: Callable[[Vote, Ballot], T]
) -> tuple[list[tuple[Vote, T]], dict[str, str]]:
    """Reads every ballot with `take`, which may raise `BallotError`.

    Returns:
        The votes that could be read, each with what `take` returned; and for the others the reason, by voter.
    """
    known = frozenset(alternatives)
    counted: list[tuple[Vote, T]] = []
    uncounted: dict[str, str] = {}
    for vote in votes:
        if vote.ballot is None:
            continue
        try:
            _check(vote.ballot, known)
            counted.append((vote, take(vote, vote.ballot)))
        except BallotError as cause:
            uncounted[vote.voter] = str(cause)
    return counted, uncounted


def _check(ballot: Ballot, known: frozenset[str]) -> None:
    names = named(ballot)
    for name in names:
        if name not in known:
            raise BallotError(f"{name!r} is not among the alternatives")
    if isinstance(ballot, Ranking) and len(set(names)) < len(names):
        raise BallotError("the ranking names an alternative twice")


def exact(number: float) -> Fraction:
    """A number as its decimals say: 0.1 is one tenth, so 0.1 and 0.2 add up to exactly 0.3."""
    if not math.isfinite(number):
        raise BallotError(f"{number} is not a finite number")
    return Fraction(str(number))


def order(ballot: Ballot, alternatives: Sequence[str]) -> list[Sequence[str]]:
    """Levels from best to worst; alternatives on the same level are tied."""
    levels: list[Sequence[str]]
    if isinstance(ballot, Choice):
        levels = [(ballot.choice,)]
    elif isinstance(ballot, Approval):
        levels = [tuple(dict.fromkeys(ballot.approved))] if ballot.approved else []
    elif isinstance(ballot, Ranking):
        levels = [(name,) for name in ballot.ranking]
    else:
        score = {name: exact(given) for name, given in ballot.scores.items()}
        best_first = sorted(score, key=score.__getitem__, reverse=True)
        levels = [tuple(level) for _, level in groupby(best_first, key=score.__getitem__)]
    placed = {name for level in levels for name in level}
    rest = tuple(name for name in alternatives if name not in placed)
    return [*levels, rest] if rest else levels


def strict_order(ballot: Ballot, alternatives: Sequence[str]) -> tuple[str, ...]:
    """Alternatives from best to worst without ties; those that the ballot leaves out are missing.

    Raises:
        BallotError: The ballot puts two alternatives that it names on one level.
    """
    marked = set(named(ballot))
    names: list[str] = []
    for level in order(ballot, alternatives):
        if level[0] in marked:
            if len(level) > 1:
                raise BallotError(f"it puts {', '.join(map(repr, level))} on one level")
            names.append(level[0])
    return tuple(names)


def choice(ballot: Ballot, alternatives: Sequence[str]) -> str:
    """The one alternative that a ballot puts first.

    Raises:
        BallotError: It puts no alternative or several first.
    """
    if isinstance(ballot, Choice):
        return ballot.choice
    if not named(ballot):
        raise BallotError("it names no alternative")
    best = order(ballot, alternatives)[0]
    if len(best) > 1:
        raise BallotError(f"it puts {', '.join(map(repr, best))} first, not one alternative")
    return best[0]


def approvals(ballot: Ballot, at_least: float | None) -> frozenset[str]:
    """The alternatives that a ballot approves.

    Args:
        ballot: The ballot.
        at_least: The lowest score that is an approval; None if scores do not mean approval.

    Raises:
        BallotError: It does not say which alternatives it approves.
    """
    if isinstance(ballot, Choice | Approval):
        return frozenset(named(ballot))
    if isinstance(ballot, Ranking) or at_least is None:
        raise BallotError(f"a ballot of kind {ballot.kind!r} does not say what it approves")
    return frozenset(name for name, score in ballot.scores.items() if exact(score) >= exact(at_least))


def scores(ballot: Ballot, low: float, high: float) -> dict[str, Fraction]:
    """The scores that a ballot gives, by alternative.

    Raises:
        BallotError: It gives none, or one outside `low` to `high`.
    """
    if isinstance(ballot, Choice | Approval | Ranking):
        raise BallotError(f"a ballot of kind {ballot.kind!r} gives no scores")
    given = {name: exact(score) for name, score in ballot.scores.items()}
    for name, score in given.items():
        if not exact(low) <= score <= exact(high):
            raise BallotError(f"the score {ballot.scores[name]} of {name!r} is not between {low} and {high}")
    return given
