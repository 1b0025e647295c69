"""From a society to a scene: members are discs coloured by role, with lines for who hears whom."""

from __future__ import annotations

from collections.abc import Sequence
from math import cos, radians, sin

from nlsom.drawing.frame import Legend, framed
from nlsom.drawing.layout import Layout, lay_out
from nlsom.drawing.png import png
from nlsom.drawing.scene import FONT, Disc, Label, Scene, shorten, text_width
from nlsom.drawing.svg import svg
from nlsom.drawing.ties import HUB, straight, ties
from nlsom.member import Member
from nlsom.structure import Structure

NAME = 18
"""Longest name that is written in full, in characters."""
MAX_LINES = 6_000
"""With more lines than this, none are drawn: they would only make a black disc."""


def draw(members: Sequence[Member], structure: Structure, *, title: str) -> str:
    """Draws a society as an SVG document.

    An arrow from a to b means that b hears a; a line without a head, that both hear each other. If many hear
    the same many, their lines meet in a hub. Equal arguments give equal drawings.
    """
    return svg(_scene(members, structure, title))


def draw_png(members: Sequence[Member], structure: Structure, *, title: str, scale: float = 2.0) -> bytes:
    """Draws a society as a PNG file on white, `scale` times as wide and high as the SVG."""
    return png(_scene(members, structure, title), scale=scale)


def _scene(members: Sequence[Member], structure: Structure, title: str) -> Scene:
    n = len(members)
    r = 16.0 if n <= 16 else 11.0 if n <= 48 else 8.0
    names = [shorten(member.name, NAME) for member in members]
    longest = max((text_width(name, FONT) for name in names), default=0.0)
    layout = lay_out(structure, n, step=r * (5 if n <= 16 else 3.4), label=longest)
    legend = Legend(members)
    direct, hubs = ties(structure, layout.points, r)
    lines = [
        *straight(direct, layout.points, r),
        *(line for hub in hubs for line in hub.lines(layout.points, r)),
    ]
    legend.explain(direct, hubs)
    if len(lines) > MAX_LINES:
        legend.note(f"{len(lines)} lines, too many to be drawn")
        lines, hubs = [], []
    discs = [Disc(*hub.at, HUB) for hub in hubs]
    labels: list[Label] = []
    for at, member in enumerate(members):
        tooltip = f"{member.name} ({member.role})"
        discs.append(Disc(*layout.points[at], r, legend.colour(member.role), tooltip))
        labels.append(_name(names[at], member, tooltip, layout, at, r))
    return framed(title, legend, lines, discs, labels, faint=len(lines) > 150)


def _name(name: str, member: Member, tooltip: str, layout: Layout, at: int, r: float) -> Label:
    x, y = layout.points[at]
    plain = shorten(member.id, NAME)
    way = layout.outward[at]
    if way is None:
        return Label(x, y + r + FONT * 0.75, name, plain, tooltip=tooltip)
    dx, dy = cos(radians(way)), sin(radians(way))
    if len(layout.points) > 24:  # a crowd: names along the spokes
        left = dx < -1e-9
        x, y = x + dx * (r + 5), y + dy * (r + 5)
        return Label(x, y, name, plain, FONT, "end" if left else "start", way + 180 * left, tooltip)
    if abs(dx) < 0.35:
        return Label(x, y + (r + FONT * 0.75) * (1 if dy > 0 else -1), name, plain, tooltip=tooltip)
    return Label(
        x + dx * (r + 6), y + dy * (r + 6), name, plain, FONT, "start" if dx > 0 else "end", tooltip=tooltip
    )
