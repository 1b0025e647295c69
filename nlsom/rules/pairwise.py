"""Rules that compare pairs: how many voters put a above b.

If one alternative beats every other (the Condorcet winner), all of these rules choose it, and it alone. So
the outcome is certain once an alternative beats every other by more votes than are still to come. That is
sufficient, but not necessary.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Literal

from nlsom.rules.ballots import UNSEEN, field_of, order, read
from nlsom.rules.options import Options
from nlsom.verdict import Count, Vote

Pairs = dict[str, dict[str, int]]
Strength = Literal["winning", "margin"]


def pairs_of(votes: Sequence[Vote], field: Sequence[str]) -> tuple[Pairs, int, dict[str, str]]:
    """Returns `pairs[a][b]`, how many voters put a above b; votes counted; why others were not, by voter."""
    counted, uncounted = read(votes, field, lambda _, ballot: order(ballot, field))
    pairs: Pairs = {a: {b: 0 for b in field if b != a} for a in field}
    for _, levels in counted:
        for upper, lower in combinations(levels, 2):
            for a in upper:
                for b in lower:
                    pairs[a][b] += 1
    return pairs, len(counted), uncounted


def defeat(pairs: Pairs, a: str, b: str, by: Strength) -> int:
    """How strongly a beats b: by the votes of the winning side or by the margin; 0 if it does not."""
    margin = pairs[a][b] - pairs[b][a]
    if margin <= 0:
        return 0
    return pairs[a][b] if by == "winning" else margin


class Pairwise(Options, ABC):
    """Base of the rules that compare pairs."""

    __slots__ = ()

    @abstractmethod
    def tally(self, pairs: Pairs) -> dict[str, Fraction]:
        """The figure that is compared, by alternative."""

    def __call__(self, votes: Sequence[Vote], alternatives: Sequence[str]) -> Count:
        """Counts the votes."""
        field = field_of(votes, alternatives)
        pairs, cast, uncounted = pairs_of(votes, field)
        shown = {a: {b: float(n) for b, n in row.items()} for a, row in pairs.items()}
        if not (cast and field):
            return Count((), dict.fromkeys(field, 0.0), pairwise=shown, cast=cast, uncounted=uncounted)
        tally = self.tally(pairs)
        best = max(tally.values())
        return Count(
            winners=tuple(name for name in field if tally[name] == best),
            tally={name: float(tally[name]) for name in field},
            pairwise=shown,
            cast=cast,
            uncounted=uncounted,
        )

    def settled(
        self, votes: Sequence[Vote], outstanding: Sequence[float | None], alternatives: Sequence[str]
    ) -> bool:
        """Whether one alternative beats all others however the rest vote; see `SettlingRule`."""
        if not outstanding:
            return True
        if sum(vote.ballot is not None for vote in votes) <= len(outstanding):
            return False  # no margin can be larger than the number of votes so far
        field = tuple(alternatives) or (*field_of(votes, ()), UNSEEN)
        pairs, cast, _ = pairs_of(votes, field)
        return cast > 0 and any(
            all(pairs[a][b] - pairs[b][a] > len(outstanding) for b in field if b != a) for a in field
        )


@dataclass(frozen=True, slots=True)
class Copeland(Pairwise):
    """Wins against the most others; a tie is half a win."""

    def tally(self, pairs: Pairs) -> dict[str, Fraction]:
        """Wins, and half the ties."""
        return {
            a: sum(
                (Fraction(1 + (n > pairs[b][a]) - (n < pairs[b][a]), 2) for b, n in row.items()), Fraction(0)
            )
            for a, row in pairs.items()
        }


@dataclass(frozen=True, slots=True)
class Minimax(Pairwise):
    """The alternative whose worst defeat is the mildest (Simpson, Kramer).

    Attributes:
        by: Strength of a defeat: the votes of the winning side, or the margin. They can differ if ballots
            leave alternatives out.
    """

    by: Strength = "winning"

    def tally(self, pairs: Pairs) -> dict[str, Fraction]:
        """The worst defeat, negative."""
        return {
            a: Fraction(-max((defeat(pairs, b, a, self.by) for b in pairs if b != a), default=0))
            for a in pairs
        }


@dataclass(frozen=True, slots=True)
class Schulze(Pairwise):
    """The beatpath method (Schulze 2011, Social Choice and Welfare 36).

    A path of defeats is as strong as its weakest one. An alternative wins if no other has a stronger path to
    it than it has back. The tally counts the others of which that is true.

    Attributes:
        by: Strength of a defeat: the votes of the winning side, or the margin.
    """

    by: Strength = "winning"

    def tally(self, pairs: Pairs) -> dict[str, Fraction]:
        """How many others have no stronger path to it than it has to them."""
        path = {a: {b: defeat(pairs, a, b, self.by) for b in pairs if b != a} for a in pairs}
        for via in pairs:
            for a in pairs:
                for b in pairs:
                    if via not in (a, b) and a != b:
                        path[a][b] = max(path[a][b], min(path[a][via], path[via][b]))
        return {a: Fraction(sum(path[b][a] <= path[a][b] for b in pairs if b != a)) for a in pairs}
