"""What a drawing is made of, before it becomes SVG or PNG. Lengths are in pixels, y grows downwards."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import Literal

FONT = 12.0
"""Height of ordinary text."""


@dataclass(frozen=True, slots=True)
class Line:
    """A straight line; with `arrow`, its head is at (x2, y2)."""

    x1: float
    y1: float
    x2: float
    y2: float
    arrow: bool = False


@dataclass(frozen=True, slots=True)
class Disc:
    """A filled circle.

    Attributes:
        x: Of its centre.
        y: Of its centre.
        r: Radius.
        colour: `#rrggbb`; None is the colour of lines.
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
        x: Where it starts, has its middle or ends, as `anchor` says.
        y: Its middle, from top to bottom.
        text: As it is to be read.
        plain: Shown instead where a font lacks letters of `text`.
        size: Height of the font.
        anchor: What of the text is at (x, y).
        angle: Degrees, clockwise, turned about (x, y).
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
        about: The same in a sentence, for those who cannot see it.
        width: Of the drawing.
        height: Of the drawing.
        lines: Drawn first.
        discs: Drawn over lines.
        labels: Drawn last.
        faint: There are so many lines that each should be faint.
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
    """About how wide a text is, whatever the font: wide East Asian characters count as a full square."""
    return sum(1.0 if unicodedata.east_asian_width(c) in "WF" else 0.58 for c in text) * size


def shorten(text: str, limit: int) -> str:
    """A text of at most `limit` characters; its end is kept, where members of one kind differ."""
    if len(text) <= limit:
        return text
    tail = limit // 3
    return f"{text[: limit - tail - 1]}…{text[-tail:]}"
