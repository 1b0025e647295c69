"""Rules in which votes give points and most points win.

A vote to come can move a rival against the leader by at most its `swing`, and all votes to come may do so for
the same rival. So the leader is certain exactly if it leads every rival by more than the sum of the swings; a
lead as large as that sum could still become a tie.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from nlsom.message import Ballot
from nlsom.rules.ballots import UNSEEN, BallotError, approvals, choice, exact, field_of, order, read, scores
from nlsom.rules.options import Options
from nlsom.verdict import Count, Vote

ONE = Fraction(1)


class Points(Options, ABC):
    """Base of the rules that add up points."""

    __slots__ = ()

    @abstractmethod
    def points(self, vote: Vote, ballot: Ballot, alternatives: Sequence[str]) -> Mapping[str, Fraction]:
        """The points that a vote gives, by alternative; missing ones get none."""

    def swing(
        self, competence: float | None, alternatives: Sequence[str], *, is_open: bool
    ) -> Fraction | None:
        """The most that one vote to come can move a rival against the leader; None if that is not known."""
        del competence, alternatives, is_open
        return ONE

    def share(self, best: Fraction, tally: Mapping[str, Fraction], cast: int) -> float:
        """The winner's share of what was counted; by default, of the votes."""
        del tally
        return float(best / cast)

    def __call__(self, votes: Sequence[Vote], alternatives: Sequence[str]) -> Count:
        """Counts the votes; all alternatives with the most points win."""
        field = field_of(votes, alternatives)
        tally, cast, uncounted = self._sum(votes, field)
        if not (cast and field):
            return Count((), dict.fromkeys(field, 0.0), cast=cast, uncounted=uncounted)
        best = max(tally.values())
        return Count(
            winners=tuple(name for name in field if tally[name] == best),
            tally={name: float(points) for name, points in tally.items()},
            confidence=self.share(best, tally, cast),
            cast=cast,
            uncounted=uncounted,
        )

    def settled(
        self, votes: Sequence[Vote], outstanding: Sequence[float | None], alternatives: Sequence[str]
    ) -> bool:
        """Whether votes still to come can no longer change the winners; see `SettlingRule`."""
        if not outstanding:
            return True
        is_open = not alternatives
        field = (*field_of(votes, ()), UNSEEN) if is_open else tuple(alternatives)
        tally, cast, _ = self._sum(votes, field)
        if not cast:
            return False
        swing = Fraction(0)
        for competence, times in Counter(outstanding).items():
            most = self.swing(competence, field, is_open=is_open)
            if most is None:
                return False
            swing += times * most
        best = max(tally.values())
        winners = [name for name in field if tally[name] == best]
        if UNSEEN in winners or (swing and len(winners) > 1):
            return False
        return all(best - points > swing for points in tally.values() if points < best)

    def _sum(
        self, votes: Sequence[Vote], field: Sequence[str]
    ) -> tuple[dict[str, Fraction], int, dict[str, str]]:
        counted, uncounted = read(votes, field, lambda vote, ballot: self.points(vote, ballot, field))
        # Separately, since adding fractions is fifty times slower and most points are whole numbers.
        whole, rest = dict.fromkeys(field, 0), dict[str, Fraction]()
        for _, given in counted:
            for name, points in given.items():
                if points.denominator == 1:
                    whole[name] += points.numerator
                else:
                    rest[name] = rest.get(name, 0) + points
        tally = {name: Fraction(points) for name, points in whole.items()}
        for name, points in rest.items():
            tally[name] += points
        return tally, len(counted), uncounted


@dataclass(frozen=True, slots=True)
class Plurality(Points):
    """Most first places win."""

    def points(self, vote: Vote, ballot: Ballot, alternatives: Sequence[str]) -> Mapping[str, Fraction]:
        """One to the first place."""
        del vote
        return {choice(ballot, alternatives): ONE}


@dataclass(frozen=True, slots=True)
class Approval(Points):
    """Most approvals win.

    Attributes:
        at_least: The lowest score that counts as approval; None: ballots with scores are not counted.
    """

    at_least: float | None = None

    def points(self, vote: Vote, ballot: Ballot, alternatives: Sequence[str]) -> Mapping[str, Fraction]:
        """One to each approved alternative."""
        del vote, alternatives
        return dict.fromkeys(approvals(ballot, self.at_least), ONE)


@dataclass(frozen=True, slots=True)
class Range(Points):
    """The highest sum of scores wins; an alternative that a ballot leaves out gets `low` from it.

    Attributes:
        low: Lowest score.
        high: Highest score. A ballot with a score out of these bounds is not counted.
    """

    low: float = 0
    high: float = 10

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise ValueError(f"range: low ({self.low}) must be below high ({self.high})")

    def points(self, vote: Vote, ballot: Ballot, alternatives: Sequence[str]) -> Mapping[str, Fraction]:
        """The scores."""
        del vote
        return dict.fromkeys(alternatives, exact(self.low)) | scores(ballot, self.low, self.high)

    def swing(
        self, competence: float | None, alternatives: Sequence[str], *, is_open: bool
    ) -> Fraction | None:
        """The whole scale."""
        del competence, alternatives, is_open
        return exact(self.high) - exact(self.low)

    def share(self, best: Fraction, tally: Mapping[str, Fraction], cast: int) -> float:
        """The winner's mean score, scaled to 0 to 1."""
        del tally
        low, high = exact(self.low), exact(self.high)
        return float((best / cast - low) / (high - low))


@dataclass(frozen=True, slots=True)
class Borda(Points):
    """One point for each alternative that a ballot puts lower, half a point for each on the same level."""

    def points(self, vote: Vote, ballot: Ballot, alternatives: Sequence[str]) -> Mapping[str, Fraction]:
        """Points by place; tied alternatives share the mean of their places."""
        del vote
        given: dict[str, Fraction] = {}
        below = len(alternatives)
        for level in order(ballot, alternatives):
            below -= len(level)
            given |= dict.fromkeys(level, below + Fraction(len(level) - 1, 2))
        return given

    def swing(
        self, competence: float | None, alternatives: Sequence[str], *, is_open: bool
    ) -> Fraction | None:
        """First place against last; unknown while the number of alternatives is."""
        del competence
        return None if is_open else Fraction(len(alternatives) - 1)

    def share(self, best: Fraction, tally: Mapping[str, Fraction], cast: int) -> float:
        """Share of the points for first place on every ballot."""
        return float(best / (cast * (len(tally) - 1))) if len(tally) > 1 else 1.0


@dataclass(frozen=True, slots=True)
class Confidence(Points):
    """Plurality with votes weighted by their voters' confidence.

    Attributes:
        unknown: Weight of a vote without confidence, between 0 and 1.
        calibration: `reconcile` uses the steps of ReConcile (Chen et al. 2023, arXiv 2309.13007), which
            correct for the over-confidence of language models.
    """

    unknown: float = 0.5
    calibration: Literal["none", "reconcile"] = "none"

    def __post_init__(self) -> None:
        if not 0 <= self.unknown <= 1:
            raise ValueError(f"confidence: unknown ({self.unknown}) must be between 0 and 1")

    def points(self, vote: Vote, ballot: Ballot, alternatives: Sequence[str]) -> Mapping[str, Fraction]:
        """The voter's confidence, to the first place."""
        if vote.confidence is None:
            weight = self.unknown
        elif not 0 <= vote.confidence <= 1:
            raise BallotError(f"its confidence, {vote.confidence}, is not between 0 and 1")
        else:
            weight = reconcile(vote.confidence) if self.calibration == "reconcile" else vote.confidence
        return {choice(ballot, alternatives): exact(weight)}

    def share(self, best: Fraction, tally: Mapping[str, Fraction], cast: int) -> float:
        """The winner's share of all confidence; 0 where nobody had any."""
        del cast
        whole = sum(tally.values())
        return float(best / whole) if whole else 0.0


def reconcile(confidence: float) -> float:
    """The weight that ReConcile gives to a stated confidence (arXiv 2309.13007, section 3.3)."""
    if confidence >= 1.0:
        return 1.0
    if confidence >= 0.9:
        return 0.8
    if confidence >= 0.8:
        return 0.5
    return 0.3 if confidence > 0.6 else 0.1


@dataclass(frozen=True, slots=True)
class Competence(Points):
    """Votes weighted by the log-odds that their voters are right, so that the most probable answer wins.

    The weight is log(p (m - 1) / (1 - p)) for a voter who is right with probability p, and otherwise names
    each of the m - 1 wrong alternatives with equal probability. For m = 2 it is the optimal weight of Nitzan
    and Paroush (1982), "Optimal decision rules in uncertain dichotomous choice situations". A voter worse
    than chance counts against what it votes for.

    Attributes:
        prior: Competence of a voter without a record.
        most: Competences are limited to between 1 - most and most, so that nobody always decides alone.
        options: m; None for the number of alternatives, at least 2. For open questions it has to be given if
            votes are to end early.
    """

    prior: float = 0.6
    most: float = 0.99
    options: int | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.prior <= 1:
            raise ValueError(f"competence: prior ({self.prior}) must be between 0 and 1")
        if not 0.5 < self.most < 1:
            raise ValueError(f"competence: most ({self.most}) must be above 0.5 and below 1")
        if self.options is not None and self.options < 2:
            raise ValueError(f"competence: options ({self.options}) must be 2 or more")

    def weight(self, competence: float | None, options: int) -> float:
        """The weight of a voter for a number of options, in nats."""
        p = min(max(self.prior if competence is None else competence, 1 - self.most), self.most)
        return math.log(p) - math.log(1 - p) + math.log((self.options or max(2, options)) - 1)

    def points(self, vote: Vote, ballot: Ballot, alternatives: Sequence[str]) -> Mapping[str, Fraction]:
        """The voter's weight, to the first place."""
        if vote.competence is not None and not 0 <= vote.competence <= 1:
            raise BallotError(f"its competence, {vote.competence}, is not between 0 and 1")
        return {choice(ballot, alternatives): Fraction(self.weight(vote.competence, len(alternatives)))}

    def swing(
        self, competence: float | None, alternatives: Sequence[str], *, is_open: bool
    ) -> Fraction | None:
        """The weight, whether it counts for or against."""
        if is_open and self.options is None:
            return None
        return abs(Fraction(self.weight(competence, len(alternatives))))

    def share(self, best: Fraction, tally: Mapping[str, Fraction], cast: int) -> float:
        """The probability that it is right, for voters that err independently and equal priors."""
        del cast
        return 1 / math.fsum(math.exp(float(points - best)) for points in tally.values())
