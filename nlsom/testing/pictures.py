"""Pictures for tests, as bytes of PNG files."""

from __future__ import annotations

import io

from PIL import Image, ImageDraw, ImageFont


def encoded(picture: Image.Image) -> bytes:
    """A picture as a PNG file."""
    out = io.BytesIO()
    picture.save(out, "PNG")
    return out.getvalue()


def plain(colour: str, size: tuple[int, int] = (320, 240)) -> bytes:
    """A picture of one colour, given by its CSS name; `size` is width and height in pixels."""
    return encoded(Image.new("RGB", size, colour))


def page(*lines: str, size: int = 30) -> bytes:
    """A page of printed lines, black on white, 640 pixels wide; `size` is the font height in pixels."""
    picture = Image.new("RGB", (640, 60 + 60 * len(lines)), "white")
    font = ImageFont.load_default(size)
    for at, line in enumerate(lines):
        ImageDraw.Draw(picture).text((40, 30 + 60 * at), line, fill="black", font=font)
    return encoded(picture)
