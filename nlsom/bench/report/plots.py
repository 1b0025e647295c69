"""Plots as SVG elements for the page. Colours are CSS variables of the page."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 560, 320
LEFT, RIGHT, TOP, BOTTOM = 52, 16, 14, 44
COLOURS = 10
"""Number of colours of the page: `--c0` to `--c9`."""
NAMED = 5
"""Maximum number of points that a scatter plot labels."""

Scale = Callable[[float], float]


@dataclass(frozen=True, slots=True)
class Point:
    """A point with an interval.

    Attributes:
        x: Horizontal value.
        y: Vertical value.
        low: Lower end of the vertical interval.
        high: Upper end.
        label: Its name.
        colour: Number of its colour.
    """

    x: float
    y: float
    low: float
    high: float
    label: str
    colour: int = 0


def _ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers from low to high."""
    span = high - low or 1.0
    raw = span / about
    unit = 10 ** math.floor(math.log10(raw))
    step = next(unit * factor for factor in (1, 2, 2.5, 5, 10) if unit * factor >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [n * step for n in range(first, math.floor(high / step + 1e-9) + 1)]


def _colour(number: int) -> str:
    return f"var(--c{number % COLOURS})"


def _number(value: float) -> str:
    if abs(value) >= 10_000:
        return f"{value / 1000:g}k"
    return f"{round(value, 6):g}"


def _frame(
    x: tuple[float, float],
    y: tuple[float, float],
    x_label: str,
    y_label: str,
    *,
    x_ticks: Sequence[tuple[float, str]] | None = None,
) -> tuple[list[str], Scale, Scale]:
    """Axes and grid, and the horizontal and vertical scales from values to pixels."""
    wide, high = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def across(value: float) -> float:
        return LEFT + (value - x[0]) / (x[1] - x[0] or 1.0) * wide

    def up(value: float) -> float:
        return TOP + high - (value - y[0]) / (y[1] - y[0] or 1.0) * high

    parts: list[str] = []
    for tick in _ticks(*y):
        at = up(tick)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>')
        parts.append(
            f'<text class="tick" x="{LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{_number(tick)}</text>'
        )
    for tick, name in x_ticks if x_ticks is not None else [(t, _number(t)) for t in _ticks(*x)]:
        at = across(tick)
        parts.append(
            f'<text class="tick" x="{at:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">'
            f"{escape(name)}</text>"
        )
    middle = LEFT + wide / 2
    parts.append(
        f'<text class="axis" x="{middle:.0f}" y="{HEIGHT - 6}" text-anchor="middle">{escape(x_label)}</text>'
    )
    turned = f"rotate(-90 12 {TOP + high / 2:.0f})"
    parts.append(
        f'<text class="axis" x="12" y="{TOP + high / 2:.0f}" text-anchor="middle" transform="{turned}">'
        f"{escape(y_label)}</text>"
    )
    return parts, across, up


def _svg(parts: Sequence[str], title: str, height: int = HEIGHT) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(title)}">'
        f"<title>{escape(title)}</title>{''.join(parts)}</svg>"
    )


def pareto(points: Sequence[Point]) -> list[Point]:
    """The Pareto front of cost (x, less is better) and score (y, more is better), by increasing cost."""
    front: list[Point] = []
    for point in sorted(points, key=lambda one: (one.x, -one.y)):
        if not front or point.y > front[-1].y:
            front.append(point)
    return front


def scatter(points: Sequence[Point], x_label: str, y_label: str, title: str) -> str:
    """Points with intervals, and the Pareto front as a stepped line. Up to `NAMED` points are labelled."""
    if not points:
        return ""
    most = max(point.x for point in points) or 1.0
    bottom = max(0.0, min(point.low for point in points) - 0.03)
    top = max(point.high for point in points)
    top = min(1.0, top + 0.03) if top <= 1 else top * 1.05
    parts, across, up = _frame((0.0, most * 1.08), (bottom, top), x_label, y_label)
    front = pareto(points)
    if len(front) > 1:
        steps = [f"M{across(front[0].x):.1f},{up(front[0].y):.1f}"]
        steps += [f"H{across(point.x):.1f}V{up(point.y):.1f}" for point in front[1:]]
        parts.append(f'<path class="front" d="{"".join(steps)}"/>')
    labels: list[tuple[float, float, str, bool]] = []
    for point in points:
        x, y, colour = across(point.x), up(point.y), _colour(point.colour)
        parts.append(
            f'<line stroke="{colour}" stroke-width="1.5" opacity=".55" x1="{x:.1f}" x2="{x:.1f}" '
            f'y1="{up(point.low):.1f}" y2="{up(point.high):.1f}"/>'
        )
        tip = f"{point.label}: {point.y:.3f} [{point.low:.3f}, {point.high:.3f}] at {point.x:.0f}"
        parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{colour}"><title>{escape(tip)}</title></circle>'
        )
        labels.append((x, y, point.label, x > WIDTH * 0.62))
    parts += _labels(labels) if len(points) <= NAMED else []
    return _svg(parts, title)


def _labels(labels: Sequence[tuple[float, float, str, bool]]) -> list[str]:
    """Labels beside their points, moved down until none overlaps another.

    Args:
        labels: Of each: x and y of its point, its text, and whether it stands to the left.
    """
    placed: list[tuple[float, float, float]] = []
    parts: list[str] = []
    for x, y, text, left in sorted(labels, key=lambda one: (one[1], one[0])):
        wide = 6.2 * len(text)
        start = x - 9 - wide if left else x + 9
        at = y + 4
        while any(abs(at - b) < 12 and start < end and begin < start + wide for begin, end, b in placed):
            at += 3
        placed.append((start, start + wide, at))
        anchor, beside = ("end", x - 9) if left else ("start", x + 9)
        parts.append(
            f'<text class="label" x="{beside:.1f}" y="{at:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
        )
    return parts


@dataclass(frozen=True, slots=True)
class Series:
    """A line of a plot; None where it has no value."""

    label: str
    values: Sequence[float | None]
    colour: int = 0


def lines(series: Sequence[Series], names: Sequence[str], y_label: str, title: str) -> str:
    """Lines over named places, with values from 0 to 1."""
    if not series or not names:
        return ""
    ticks = [(float(at), name) for at, name in enumerate(names)]
    span = (-0.3, max(0.3, len(names) - 0.7))
    parts, across, up = _frame(span, (0.0, 1.0), "", y_label, x_ticks=ticks)
    for one in series:
        colour = _colour(one.colour)
        known = [(across(at), up(value)) for at, value in enumerate(one.values) if value is not None]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in known)
        parts.append(f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="{path}"/>')
        for at, value in enumerate(one.values):
            if value is not None:
                tip = f"{one.label}, {names[at]}: {value:.3f}"
                parts.append(
                    f'<circle cx="{across(at):.1f}" cy="{up(value):.1f}" r="4" fill="{colour}">'
                    f"<title>{escape(tip)}</title></circle>"
                )
    return _svg(parts, title)


def reliability(bins: Sequence[tuple[float, float, int]], title: str, colour: int = 0) -> str:
    """A reliability diagram: a dot for each bin (confidence, share right, number), with area by number."""
    if not bins:
        return ""
    parts, across, up = _frame((0.0, 1.0), (0.0, 1.0), "confidence of the verdict", "share right")
    parts.append(f'<line class="front" x1="{across(0)}" y1="{up(0)}" x2="{across(1)}" y2="{up(1)}"/>')
    most = max(number for _, _, number in bins)
    for confidence, right, number in bins:
        tip = f"{number} verdicts, confidence {confidence:.2f}, right {right:.2f}"
        radius = 3 + 9 * math.sqrt(number / most)
        parts.append(
            f'<circle cx="{across(confidence):.1f}" cy="{up(right):.1f}" r="{radius:.1f}" '
            f'fill="{_colour(colour)}" opacity=".7"><title>{tip}</title></circle>'
        )
    return _svg(parts, title)


def interval_bars(rows: Sequence[tuple[str, float, float, float]], title: str, colour: int = 0) -> str:
    """Estimates with intervals around zero, one row for each (name, estimate, low, high)."""
    if not rows:
        return ""
    left, right, row = 150, 20, 24
    height = TOP + row * len(rows) + 34
    reach = max(max(abs(low), abs(high)) for _, _, low, high in rows) or 0.01

    def across(value: float) -> float:
        return left + (value + reach) / (2 * reach) * (WIDTH - left - right)

    parts: list[str] = []
    for tick in _ticks(-reach, reach, 6):
        at = across(tick)
        parts.append(f'<line class="grid" x1="{at:.1f}" x2="{at:.1f}" y1="{TOP}" y2="{height - 26}"/>')
        parts.append(
            f'<text class="tick" x="{at:.1f}" y="{height - 10}" text-anchor="middle">{tick:+.2g}</text>'
        )
    zero = across(0)
    parts.append(f'<line class="zero" x1="{zero:.1f}" x2="{zero:.1f}" y1="{TOP}" y2="{height - 26}"/>')
    for at, (name, estimate, low, high) in enumerate(rows):
        y = TOP + row * at + row / 2
        parts.append(
            f'<text class="label" x="{left - 10}" y="{y + 4:.1f}" text-anchor="end">{escape(name)}</text>'
        )
        parts.append(
            f'<line stroke="{_colour(colour)}" stroke-width="2" opacity=".6" '
            f'x1="{across(low):.1f}" x2="{across(high):.1f}" y1="{y:.1f}" y2="{y:.1f}"/>'
        )
        tip = f"{name}: {estimate:+.3f} [{low:+.3f}, {high:+.3f}]"
        parts.append(
            f'<circle cx="{across(estimate):.1f}" cy="{y:.1f}" r="5" fill="{_colour(colour)}">'
            f"<title>{escape(tip)}</title></circle>"
        )
    return _svg(parts, title, height)
