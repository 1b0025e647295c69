"""Rules that go down strict rankings: instant run-off and Bucklin."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from nlsom.rules.ballots import UNSEEN, field_of, read, strict_order
from nlsom.rules.options import Options
from nlsom.rules.universes import universes
from nlsom.verdict import Count, Vote

Orders = Counter[tuple[str, ...]]


def orders_of(votes: Sequence[Vote], field: Sequence[str]) -> tuple[Orders, dict[str, str]]:
    """How many ballots have each order; and why others were not counted, by voter."""
    counted, uncounted = read(votes, field, lambda _, ballot: strict_order(ballot, field))
    return Counter(order for _, order in counted), uncounted


class _Majority(Options):
    """Base of rules by which more than half of the first places win.

    The outcome is certain once an alternative has that majority even if all votes to come go against it. That
    is sufficient, but not necessary.
    """

    __slots__ = ()

    def settled(
        self, votes: Sequence[Vote], outstanding: Sequence[float | None], alternatives: Sequence[str]
    ) -> bool:
        """Whether one alternative has more than half of the first places for good; see `SettlingRule`."""
        if not outstanding:
            return True
        orders, _ = orders_of(votes, tuple(alternatives) or (*field_of(votes, ()), UNSEEN))
        firsts: Counter[str] = Counter()
        for order, n in orders.items():
            firsts.update({order[0]: n} if order else {})
        return any(2 * n > orders.total() + len(outstanding) for n in firsts.values())


@dataclass(frozen=True, slots=True)
class InstantRunoff(_Majority):
    """Drops the alternative with the fewest first places until one has more than half of them.

    A ballot without any alternative left no longer counts. If several have the fewest, each of them may be
    dropped first; whoever wins in some order is a tied winner (`nlsom.rules.universes`). The tally counts the
    others dropped before it, in its best order.
    """

    def __call__(self, votes: Sequence[Vote], alternatives: Sequence[str]) -> Count:
        """Counts the votes."""
        field = field_of(votes, alternatives)
        orders, uncounted = orders_of(votes, field)
        if not (orders and field):
            return Count((), dict.fromkeys(field, 0.0), cast=orders.total(), uncounted=uncounted)
        outlasts = dict.fromkeys(field, 0)

        def drop(left: frozenset[str], gone: Iterable[str]) -> frozenset[str]:
            for name in gone:
                outlasts[name] = max(outlasts[name], len(field) - len(left))
            return left.difference(gone)

        def step(left: frozenset[str]) -> list[frozenset[str]] | None:
            firsts = dict.fromkeys(left, 0)
            for order, n in orders.items():
                top = next((name for name in order if name in left), None)
                if top is not None:
                    firsts[top] += n
            most, whole = max(firsts.values()), sum(firsts.values())
            if len(left) == 1 or not whole:
                return None
            if 2 * most > whole:
                return [drop(left, [name for name, n in firsts.items() if n < most])]
            # Dropping one that is first on no ballot changes nothing else, so all of these go at once.
            if none := [name for name, n in firsts.items() if not n]:
                return [drop(left, none)]
            fewest = min(firsts.values())
            return [drop(left, [name]) for name, n in firsts.items() if n == fewest]

        winners = frozenset[str]().union(*universes(frozenset(field), step))
        outlasts.update(dict.fromkeys(winners, len(field) - 1))
        return Count(
            winners=tuple(name for name in field if name in winners),
            tally={name: float(n) for name, n in outlasts.items()},
            cast=orders.total(),
            uncounted=uncounted,
        )


@dataclass(frozen=True, slots=True)
class Bucklin(_Majority):
    """Counts first places, then first and second ones, and so on, until one is on over half of the ballots.

    Whoever is then on most ballots wins; also if none ever reaches half, because ballots leave alternatives
    out.
    """

    def __call__(self, votes: Sequence[Vote], alternatives: Sequence[str]) -> Count:
        """Counts the votes; the tally is the one of the deciding round."""
        field = field_of(votes, alternatives)
        orders, uncounted = orders_of(votes, field)
        tally = dict.fromkeys(field, 0)
        if not (orders and field):
            return Count((), dict.fromkeys(field, 0.0), cast=orders.total(), uncounted=uncounted)
        for place in range(len(field)):
            for order, n in orders.items():
                if place < len(order):
                    tally[order[place]] += n
            if 2 * max(tally.values()) > orders.total():
                break
        best = max(tally.values())
        return Count(
            winners=tuple(name for name in field if tally[name] == best),
            tally={name: float(n) for name, n in tally.items()},
            confidence=best / orders.total(),
            cast=orders.total(),
            uncounted=uncounted,
        )
