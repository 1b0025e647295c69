"""Lines between members: single edges, or hubs where many hear the same many."""

from __future__ import annotations

from collections.abc import Collection, Sequence, Set
from dataclasses import dataclass
from itertools import count
from math import cos, hypot, sin

from nlsom.drawing.layout import Point
from nlsom.drawing.scene import Line
from nlsom.structure import Structure, hearing_classes

BUNDLE = 120
"""If members who hear the same have more edges than this together, the edges meet in a hub."""
HUB = 4.5
"""Radius of a hub, in pixels."""


@dataclass(slots=True)
class Hub:
    """A point where the lines of many who hear the same many meet.

    Attributes:
        at: Where it is.
        whom: Members who are heard.
        who: Members who hear all of them.
    """

    at: Point
    whom: frozenset[int]
    who: set[int]

    @property
    def closed(self) -> bool:
        """Whether all members connected to it hear each other."""
        return self.whom == frozenset(self.who)

    def lines(self, points: Sequence[Point], r: float) -> list[Line]:
        """One line per member, with a head if the member hears the others."""
        return [
            _between(self.at, points[at], HUB, r, arrow=at in self.who and not self.closed)
            for at in sorted(self.whom | self.who)
        ]


def ties(structure: Structure, points: Sequence[Point], r: float) -> tuple[set[tuple[int, int]], list[Hub]]:
    """Divides the edges into those drawn singly and those drawn as hubs; each edge is in one of them.

    Args:
        structure: Who hears whom.
        points: Where each member stands.
        r: Radius of a member.
    """
    hubs: list[Hub] = []
    few: list[tuple[frozenset[int], list[int]]] = []
    for hearing, who in hearing_classes(structure, range(len(points))).items():
        whom = frozenset(hearing)
        if len(whom) * len(who) > BUNDLE and min(len(whom), len(who)) > 2:
            taken = [*points, *(hub.at for hub in hubs)]
            hubs.append(Hub(_free(_middle(whom, who, points), taken, 2.5 * r), whom, set(who)))
        else:
            few.append((whom, who))
    direct: set[tuple[int, int]] = set()
    for whom, who in few:
        for b in who:
            rest = whom - {b}
            for hub in hubs:  # tie in whoever hears all of these, and others besides
                if hub.whom <= whom | {b}:
                    hub.who.add(b)
                    rest -= hub.whom
            direct.update((a, b) for a in rest)
    return direct, hubs


def _middle(whom: Collection[int], who: Collection[int], points: Sequence[Point]) -> Point:
    """The middle between two sets of members; in the gap, if one stands above the other."""
    x, y = (sum(sum(points[at][i] for at in side) / len(side) for side in (whom, who)) / 2 for i in (0, 1))
    low, high = max(points[at][1] for at in whom), min(points[at][1] for at in who)
    return (x, (low + high) / 2 if low < high else y)


def _free(wanted: Point, taken: Sequence[Point], room: float) -> Point:
    """The first point on a spiral around `wanted` that has room around it."""
    for turn in count():
        x, y = wanted[0] + turn * room / 6 * cos(turn), wanted[1] + turn * room / 6 * sin(turn)
        if all(hypot(x - a, y - b) >= room for a, b in taken):
            return x, y
    raise AssertionError


def straight(direct: Set[tuple[int, int]], points: Sequence[Point], r: float) -> list[Line]:
    """One line per edge; for two members who hear each other, a single line without a head."""
    return [
        _between(points[a], points[b], r, r, arrow=(b, a) not in direct)
        for a, b in sorted(direct)
        if a < b or (b, a) not in direct
    ]


def _between(a: Point, b: Point, from_a: float, to_b: float, *, arrow: bool) -> Line:
    """A line from rim to rim."""
    x, y = b[0] - a[0], b[1] - a[1]
    length = hypot(x, y)
    x, y = x / length, y / length
    to_b += 2 if arrow else 0
    return Line(a[0] + x * from_a, a[1] + y * from_a, b[0] - x * to_b, b[1] - y * to_b, arrow)
