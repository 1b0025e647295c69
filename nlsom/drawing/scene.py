"""What a drawing consists of, before it becomes SVG or PNG. Lengths are in pixels; y grows downwards."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import Literal

FONT = 12.0
"""Height of ordinary text."""


@dataclass(frozen=True, slots=True)
class Line:
    """A straight line from (x1, y1) to (x2, y2); `arrow` puts a head at its end."""

    x1: float
    y1: float
    x2: float
    y2: float
    arrow: bool = False


@dataclass(frozen=True, slots=True)
class Disc:
    """A filled circle.

    Attributes:
        x: Centre.
        y: Centre.
        r: Radius.
        colour: `#rrggbb`; None for the colour of lines.
        tooltip: Shown when a pointer rests on it.
    """

    x: float
    y: float
    r: float
    colour: str | None = None
    tooltip: str = ""


@dataclass(frozen=True, slots=True)
class Label:
    """A line of text.

    Attributes:
        x: Its start, middle or end, as `anchor` says.
        y: Its vertical middle.
        text: The text.
        plain: Shown instead if a font lacks characters of `text`.
        size: Height of the font.
        anchor: Which part of the text is at (x, y).
        angle: Rotation about (x, y): degrees, clockwise.
        tooltip: Shown when a pointer rests on it.
    """

    x: float
    y: float
    text: str
    plain: str = ""
    size: float = FONT
    anchor: Literal["start", "middle", "end"] = "middle"
    angle: float = 0.0
    tooltip: str = ""


@dataclass(frozen=True, slots=True)
class Scene:
    """A whole drawing.

    Attributes:
        title: What it shows.
        about: The same in a sentence, for readers who cannot see it.
        width: Width of the drawing.
        height: Height of the drawing.
        lines: Drawn first.
        discs: Drawn over the lines.
        labels: Drawn last.
        faint: Whether lines are drawn faintly, because there are many.
    """

    title: str
    about: str
    width: float
    height: float
    lines: tuple[Line, ...]
    discs: tuple[Disc, ...]
    labels: tuple[Label, ...]
    faint: bool


def text_width(text: str, size: float) -> float:
    """Approximate width of a text in any font; wide East Asian characters count as a full square."""
    return sum(1.0 if unicodedata.east_asian_width(c) in "WF" else 0.58 for c in text) * size


def shorten(text: str, limit: int) -> str:
    """Shortens a text to `limit` characters in its middle, since names of one kind differ at their ends."""
    if len(text) <= limit:
        return text
    tail = limit // 3
    return f"{text[: limit - tail - 1]}…{text[-tail:]}"
