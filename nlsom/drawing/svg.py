"""Scenes as SVG that follows the reader's light or dark theme."""

from __future__ import annotations

import re
from html import escape
from math import atan2, cos, sin

from nlsom.drawing.scene import Disc, Label, Line, Scene

# No CSS variables: few converters other than browsers know them.
STYLE = """
.nlsom text { fill: #1f2328; stroke: #ffffff; stroke-width: 3px; paint-order: stroke;
  font-family: system-ui, sans-serif; }
.nlsom line { stroke: #57606a; stroke-width: 1.2px; }
.nlsom polygon, .nlsom .hub { fill: #57606a; }
.nlsom circle { stroke: #ffffff; stroke-width: 1.5px; }
.nlsom .faint line { stroke-opacity: 0.35; stroke-width: 0.8px; }
.nlsom .faint polygon { fill-opacity: 0.6; }
@media (prefers-color-scheme: dark) {
  .nlsom text { fill: #e6edf3; stroke: #0d1117; }
  .nlsom line { stroke: #9aa4af; }
  .nlsom polygon, .nlsom .hub { fill: #9aa4af; }
  .nlsom circle { stroke: #0d1117; }
}
"""
ILLEGAL = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
HEAD = 7.0
"""Length of an arrow's head, in pixels."""


def arrow_head(line: Line) -> tuple[tuple[float, float], ...]:
    """The three corners of a line's head."""
    way = atan2(line.y2 - line.y1, line.x2 - line.x1)
    back = [(line.x2 - HEAD * cos(way + turn), line.y2 - HEAD * sin(way + turn)) for turn in (0.4, -0.4)]
    return ((line.x2, line.y2), *back)


def svg(scene: Scene) -> str:
    """Writes a scene as an SVG document, for a file or for embedding in a page."""
    width, height = f"{scene.width:.0f}", f"{scene.height:.0f}"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="nlsom" role="img" width="{width}" '
            f'height="{height}" viewBox="0 0 {width} {height}" style="max-width: 100%; height: auto">',
            f"<title>{_text(scene.title)}</title>",
            f"<desc>{_text(scene.about)}</desc>",
            f"<style>{STYLE}</style>",
            '<g class="faint">' if scene.faint else "<g>",
            *map(_line, scene.lines),
            "</g>",
            *map(_disc, scene.discs),
            *map(_label, scene.labels),
            "</svg>\n",
        ]
    )


def _line(line: Line) -> str:
    out = f'<line x1="{line.x1:.1f}" y1="{line.y1:.1f}" x2="{line.x2:.1f}" y2="{line.y2:.1f}"/>'
    if line.arrow:
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in arrow_head(line))
        out += f'<polygon points="{points}"/>'
    return out


def _disc(disc: Disc) -> str:
    look = f'fill="{disc.colour}"' if disc.colour else 'class="hub"'
    place = f'cx="{disc.x:.1f}" cy="{disc.y:.1f}" r="{disc.r:.1f}"'
    return f"<circle {place} {look}>{_tooltip(disc.tooltip)}</circle>"


def _label(label: Label) -> str:
    turn = f' transform="rotate({label.angle:.1f} {label.x:.1f} {label.y:.1f})"' if label.angle else ""
    return (
        f'<text x="{label.x:.1f}" y="{label.y:.1f}" dy="0.35em" font-size="{label.size:.0f}" '
        f'text-anchor="{label.anchor}"{turn}>{_text(label.text)}{_tooltip(label.tooltip)}</text>'
    )


def _tooltip(text: str) -> str:
    return f"<title>{_text(text)}</title>" if text else ""


def _text(text: str) -> str:
    """Escapes text for XML, without control characters and lone surrogates."""
    return escape(ILLEGAL.sub("\N{REPLACEMENT CHARACTER}", text))
