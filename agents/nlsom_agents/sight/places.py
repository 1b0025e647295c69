"""Describes in words where things are in a picture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from nlsom_agents.sight.detector import Thing
from nlsom_agents.sight.words import listed, number

SIDES = ("left", "centre", "right")


def side(thing: Thing) -> str:
    """`left`, `centre` or `right`: the part (40, 20 or 40 % of the width) in which the box's middle is."""
    x = (thing.left + thing.right) / 2
    return "left" if x < 0.4 else "right" if x > 0.6 else "centre"


def height(thing: Thing) -> str:
    """`top`, `bottom`, or "" for the middle third."""
    y = (thing.top + thing.bottom) / 2
    return "top" if y < 1 / 3 else "bottom" if y > 2 / 3 else ""


def place(thing: Thing) -> str:
    """`on the left`, `in the centre`, `at the top right`, `filling most of the picture`."""
    if thing.area >= 0.5:
        return "filling most of the picture"
    across, up = side(thing), height(thing)
    if up:
        return f"at the {up}" if across == "centre" else f"at the {up} {across}"
    return "in the centre" if across == "centre" else f"on the {across}"


def on_side(things: Sequence[Thing], said: Sequence[str]) -> Thing | None:
    """The leftmost or rightmost thing, if the tokens `said` have left or right, but not both; else None."""
    if not things or ("left" in said) == ("right" in said):
        return None
    outermost = min if "left" in said else max
    return outermost(things, key=lambda thing: thing.left + thing.right)


def places(things: Sequence[Thing]) -> str:
    """Where things are: `on the left`, `(one on the left, two in the centre)`, `from left to right`."""
    if len(things) == 1:
        return place(things[0])
    counted = Counter(side(thing) for thing in things)
    where = {"left": "on the left", "centre": "in the centre", "right": "on the right"}
    if len(counted) == 1:
        return where[next(iter(counted))]
    if len(things) > 4:
        return (
            "from left to right" if len(counted) == 3 else listed([where[at] for at in SIDES if counted[at]])
        )
    return f"({', '.join(f'{number(counted[at])} {where[at]}' for at in SIDES if counted[at])})"
