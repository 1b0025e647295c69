"""Draws the sample page of print: python docs/make_page.py page.png (needs the font DejaVu Sans)."""

from __future__ import annotations

import sys

from PIL import Image, ImageDraw, ImageFont

LINES = (
    "The lighthouse keeper's log",
    "Monday, 3 March",
    "Wind from the north, 24 knots.",
    "Two ships passed before noon.",
    "Lamp trimmed and lit at 18:40.",
    "Fresh bread came by boat today.",
    "The cat caught a large mouse.",
    "All is well on the rock.",
)

page = Image.new("RGB", (800, 600), "white")
font = ImageFont.truetype("DejaVuSans.ttf", 40)
for at, line in enumerate(LINES):
    ImageDraw.Draw(page).text((50, 36 + 67 * at), line, fill="black", font=font)
page.save(sys.argv[1], optimize=True)
