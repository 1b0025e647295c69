"""Drawings of societies: who is there, and who hears whom."""

from nlsom.drawing.draw import draw, draw_png

__all__ = ["draw", "draw_png"]
