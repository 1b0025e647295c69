"""Ranked pairs (Tideman 1987, "Independence of clones as a criterion for voting rules")."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby, permutations

from nlsom.rules.pairwise import Pairs, Pairwise, Strength, defeat
from nlsom.rules.universes import universes

Above = tuple[int, ...]
"""For each alternative a bit mask of those that it is locked above; transitive."""
State = tuple[int, Above]


@dataclass(frozen=True, slots=True)
class RankedPairs(Pairwise):
    """Locks defeats from the strongest down, except those that would close a cycle; whoever is on top wins.

    Equally strong defeats may be locked in any order; whoever wins in some order is a tied winner
    (`nlsom.rules.universes`). The tally counts the others not locked above it, in its best order.

    Attributes:
        by: Strength of a defeat: the votes of the winning side, or the margin.
    """

    by: Strength = "winning"

    def tally(self, pairs: Pairs) -> dict[str, Fraction]:
        """How many others are not locked above each."""
        names = list(pairs)
        strength = {
            (a, b): found
            for a, b in permutations(range(len(names)), 2)
            if (found := defeat(pairs, names[a], names[b], self.by))
        }
        strongest_first = sorted(strength, key=strength.__getitem__, reverse=True)
        groups = [list(group) for _, group in groupby(strongest_first, key=strength.__getitem__)]

        def step(state: State) -> Iterable[State] | None:
            at, above = state
            if at == len(groups):
                return None
            able = [(a, b) for a, b in groups[at] if not (above[b] >> a & 1 or above[a] >> b & 1)]
            whole = above
            for a, b in able:
                whole = lock(whole, a, b)
            # A pair on no cycle is locked in every order, so these pairs need no universes of their own.
            for a, b in able:
                if not whole[b] >> a & 1:
                    above = lock(above, a, b)
            contested = [
                (a, b) for a, b in able if whole[b] >> a & 1 and not (above[b] >> a & 1 or above[a] >> b & 1)
            ]
            if not contested:
                return [(at + 1, above)]
            return ((at, lock(above, a, b)) for a, b in contested)

        ends = universes((0, tuple(0 for _ in names)), step)
        return {
            name: Fraction(max(len(names) - 1 - sum(row >> place & 1 for row in above) for _, above in ends))
            for place, name in enumerate(names)
        }


def lock(above: Above, a: int, b: int) -> Above:
    """Locks a, and all above it, above b and all below it."""
    below = above[b] | 1 << b
    return tuple(row | below if at == a or row >> a & 1 else row for at, row in enumerate(above))
