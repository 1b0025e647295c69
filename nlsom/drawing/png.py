"""Scenes as PNG, on white."""

from __future__ import annotations

import io
from functools import lru_cache

from PIL import Image, ImageDraw, ImageFont

from nlsom.drawing.scene import Label, Scene
from nlsom.drawing.svg import arrow_head

INK, PAPER, LINE, FAINT = "#1f2328", "#ffffff", "#57606a", "#c3c8ce"


def png(scene: Scene, *, scale: float = 2.0) -> bytes:
    """Paints a scene.

    Args:
        scene: What to paint.
        scale: Pixels of the picture per pixel of the scene.
    """
    # Painted at twice the size and scaled down, because Pillow draws lines with hard edges.
    fine = scale * 2
    picture = Image.new("RGB", (round(scene.width * fine), round(scene.height * fine)), PAPER)
    pen = ImageDraw.Draw(picture)
    stroke = FAINT if scene.faint else LINE
    for line in scene.lines:
        ends = [(line.x1 * fine, line.y1 * fine), (line.x2 * fine, line.y2 * fine)]
        pen.line(ends, fill=stroke, width=max(1, round(fine)))
        if line.arrow:
            pen.polygon([(x * fine, y * fine) for x, y in arrow_head(line)], fill=LINE)
    for disc in scene.discs:
        for r, colour in ((disc.r + 1, PAPER), (disc.r, disc.colour or LINE)):
            box = ((disc.x - r) * fine, (disc.y - r) * fine, (disc.x + r) * fine, (disc.y + r) * fine)
            pen.ellipse(box, fill=colour)
    small = picture.resize(
        (round(scene.width * scale), round(scene.height * scale)), Image.Resampling.LANCZOS
    )
    for label in scene.labels:
        _write(small, label, scale)
    out = io.BytesIO()
    small.save(out, "PNG", optimize=True)
    return out.getvalue()


def _write(picture: Image.Image, label: Label, scale: float) -> None:
    font = _font(label.size * scale)
    text = label.text if _has_letters(label.text) else label.plain
    length = font.getlength(text)
    half = round(length + label.size * scale)
    # In a square patch with the anchor in its middle, rotating does not move the anchor.
    patch = Image.new("RGBA", (2 * half, 2 * half), (255, 255, 255, 0))
    start = {"start": 0.0, "middle": -length / 2, "end": -length}[label.anchor]
    ImageDraw.Draw(patch).text(
        (half + start, half),
        text,
        font=font,
        fill=INK,
        anchor="lm",
        stroke_width=round(scale),
        stroke_fill=PAPER,
    )
    if label.angle:
        patch = patch.rotate(-label.angle, Image.Resampling.BICUBIC)
    picture.paste(patch, (round(label.x * scale) - half, round(label.y * scale) - half), patch)


@lru_cache(maxsize=8)
def _font(size: float) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size=size)


def _has_letters(text: str) -> bool:
    """Whether the font has every character; a missing one looks like U+FFFF, which no font has."""
    return all(c.isspace() or _glyph(c) != _glyph("\uffff") for c in text)


@lru_cache(maxsize=4096)
def _glyph(letter: str) -> bytes:
    patch = Image.new("L", (48, 48))
    ImageDraw.Draw(patch).text((8, 8), letter, font=_font(24.0), fill=255)
    return patch.tobytes()
