"""Where members stand in a drawing. Layouts are computed directly from the structure, without randomness."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, cos, degrees, pi, sin, sqrt, tau

from nlsom.structure import Structure, generations, hearing_classes
from nlsom.structure.regular import Lattice

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Layout:
    """Where members stand.

    Attributes:
        points: Centre of each member.
        outward: Direction of each member's label: degrees, clockwise from the right; None for below.
    """

    points: tuple[Point, ...]
    outward: tuple[float | None, ...]


def lay_out(structure: Structure, members: int, *, step: float, label: float) -> Layout:
    """Chooses a layout by the kind of structure: heads in the middle, trees, rows for orders, circles.

    Args:
        structure: Who hears whom.
        members: Number of members.
        step: Smallest distance of two members in a circle.
        label: Width of the longest label, which is the distance of members in rows.
    """
    pitch = max(step, label + 14)
    if members < 2:
        return Layout(((0.0, 0.0),) * members, (None,) * members)
    if isinstance(structure, Lattice):
        everyone, width = range(members), structure.width
        return _rows([everyone[at : at + width] for at in everyone[::width]], pitch)
    heads = _heads(structure, members)
    if heads:
        return _around(heads, members, step, pitch)
    order = generations(structure, members)
    if order is not None and len(order) == members and _is_chain(structure, order):
        return _snake([at for (at,) in order], pitch)
    tree = _tree(structure, members)
    if tree is not None:
        return _branches(tree, members, step, pitch)
    if order is not None and 1 < len(order) <= 40:
        return _layers(order, pitch)
    return _clusters(structure, members, step, pitch) or _circle(range(members), members, step)


def _clusters(structure: Structure, members: int, step: float, pitch: float) -> Layout | None:
    """A circle of circles, one for each group whose members hear each other; None without two groups."""
    classes = hearing_classes(structure, range(members))
    groups: list[list[int]] = []
    taken: set[int] = set()
    for whom in sorted((whom for whom, who in classes.items() if who[0] in whom), key=len):
        if taken.isdisjoint(whom):
            groups.append(list(whom))
            taken.update(whom)
    if len(groups) < 2:
        return None
    groups += [[at] for at in range(members) if at not in taken]
    groups.sort()
    size = [_radius(len(group), step) for group in groups]
    wide = _radius(len(groups), 2 * max(size) + 2 * pitch + step)
    points: list[Point] = [(0.0, 0.0)] * members
    outward: list[float | None] = [None] * members
    for place, (group, radius) in enumerate(zip(groups, size, strict=True)):
        around = tau * place / len(groups) - pi / 2
        for seat, at in enumerate(group):
            # The first member of a group, often its delegate, is nearest to the middle.
            angle = around + pi + tau * seat / len(group)
            points[at] = (wide * cos(around) + radius * cos(angle), wide * sin(around) + radius * sin(angle))
            outward[at] = degrees(angle)
    return Layout(tuple(points), tuple(outward))


def _heads(structure: Structure, members: int) -> list[int]:
    """Members who hear everyone, if the others hear exactly them; empty otherwise."""
    for whom, who in hearing_classes(structure, range(members)).items():
        apart = len(whom) + len(who) == members and not {*whom} & {*who}
        if apart and all(len({*structure.hears(at), at}) == members for at in whom):
            return list(whom)
    return []


def _is_chain(structure: Structure, order: Sequence[tuple[int, ...]]) -> bool:
    return all(list(structure.hears(b)) == [a] for (a,), (b,) in pairwise(order))


def _tree(structure: Structure, members: int) -> list[list[int]] | None:
    """Children of each member, with the first member as root, if the edges form a tree; else None."""
    ties: list[set[int]] = [set() for _ in range(members)]
    found = 0
    for b in range(members):
        for a in structure.hears(b):
            if a != b and a not in ties[b]:
                ties[a].add(b)
                ties[b].add(a)
                found += 1
                if found >= members:
                    return None
    children: list[list[int]] = [[] for _ in range(members)]
    seen = {0}
    queue = [0]
    for at in queue:
        children[at] = sorted(ties[at] - seen)
        seen.update(children[at])
        queue.extend(children[at])
    return children if found == members - 1 and len(seen) == members else None


def _circle(
    who: Sequence[int], members: int, step: float, *, least: float = 0.0, turn: float = 0.0
) -> Layout:
    radius = max(least, _radius(len(who), step))
    points: list[Point] = [(0.0, 0.0)] * members
    outward: list[float | None] = [None] * members
    for place, at in enumerate(who):
        angle = tau * place / len(who) - pi / 2 + turn
        points[at] = (radius * cos(angle), radius * sin(angle))
        outward[at] = degrees(angle)
    return Layout(tuple(points), tuple(outward))


def _radius(members: int, step: float) -> float:
    """The radius of a circle of members who stand `step` apart."""
    return 0.0 if members < 2 else step / (2 * sin(pi / members))


def _around(heads: Sequence[int], members: int, step: float, pitch: float) -> Layout:
    among = set(heads)
    rest = [at for at in range(members) if at not in among]
    # Heads are turned by a quarter of a step, so that no line between members passes through two of them.
    inside = _circle(heads, members, pitch, turn=(len(rest) // 4 + 0.25) * tau / max(len(rest), 1))
    outside = _circle(rest, members, step, least=_radius(len(heads), pitch) + max(120.0, pitch))
    points = [inside.points[at] if at in among else outside.points[at] for at in range(members)]
    outward = [None if at in among else outside.outward[at] for at in range(members)]
    return Layout(tuple(points), tuple(outward))


def _rows(rows: Sequence[Sequence[int]], pitch: float, *, gap: float = 90.0) -> Layout:
    place = {at: (x * pitch, y * gap) for y, row in enumerate(rows) for x, at in enumerate(row)}
    return Layout(tuple(place[at] for at in range(len(place))), (None,) * len(place))


def _snake(order: Sequence[int], pitch: float) -> Layout:
    """Rows in alternating directions, so that each member stands next to the one after it."""
    width = len(order) if len(order) <= 10 else ceil(sqrt(len(order)))
    rows = [order[at : at + width] for at in range(0, len(order), width)]
    place: dict[int, Point] = {}
    for y, row in enumerate(rows):
        for x, at in enumerate(row):
            place[at] = ((width - 1 - x if y % 2 else x) * pitch, y * 90.0)
    return Layout(tuple(place[at] for at in range(len(order))), (None,) * len(order))


def _layers(order: Sequence[tuple[int, ...]], pitch: float, *, width: int = 14) -> Layout:
    """A band of rows per generation; every other row is shifted, so that lines pass between members."""
    place: dict[int, Point] = {}
    y = 0.0
    for layer in order:
        rows = ceil(len(layer) / width)
        wide = ceil(len(layer) / rows)
        for number, start in enumerate(range(0, len(layer), wide)):
            row = layer[start : start + wide]
            shift = pitch / 4 * (1 if number % 2 else -1) if rows > 1 else 0.0
            for x, at in enumerate(row):
                place[at] = ((x - (len(row) - 1) / 2) * pitch + shift, y)
            y += 64.0
        y += 70.0
    return Layout(tuple(place[at] for at in range(len(place))), (None,) * len(place))


def _branches(children: Sequence[Sequence[int]], members: int, step: float, pitch: float) -> Layout:
    """A tree from top to bottom, or from the middle outwards if it has many leaves."""
    depth, along, leaves = _spread(children)
    if leaves <= 10:
        points = tuple((along[at] * pitch, depth[at] * 100.0) for at in range(members))
        return Layout(points, (None,) * members)
    angle = [tau * place / leaves - pi / 2 for place in along]
    radius = [0.0]
    for level in range(1, max(depth) + 1):
        ring = sorted(angle[at] for at in range(members) if depth[at] == level)
        nearest = min((b - a for a, b in pairwise([*ring, ring[0] + tau])), default=tau)
        radius.append(max(radius[-1] + 90.0, step / (2 * sin(min(nearest, pi) / 2))))
    points = tuple(
        (radius[depth[at]] * cos(angle[at]), radius[depth[at]] * sin(angle[at])) for at in range(members)
    )
    outward = tuple(None if children[at] else degrees(angle[at]) for at in range(members))
    return Layout(points, outward)


def _spread(children: Sequence[Sequence[int]]) -> tuple[list[int], list[float], int]:
    """Depth of each member, its position along the leaves, and the number of leaves."""
    depth = [0] * len(children)
    along = [0.0] * len(children)
    leaves = 0
    preorder = list(_walk(children))
    for at in preorder:
        for child in children[at]:
            depth[child] = depth[at] + 1
        if not children[at]:
            along[at] = float(leaves)
            leaves += 1
    for at in reversed(preorder):
        if children[at]:
            along[at] = sum(along[child] for child in children[at]) / len(children[at])
    return depth, along, leaves


def _walk(children: Sequence[Sequence[int]]) -> Iterator[int]:
    stack = [0]
    while stack:
        at = stack.pop()
        yield at
        stack.extend(reversed(children[at]))
