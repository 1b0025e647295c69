"""Draws every shipped society into docs/pictures: python docs/make_pictures.py."""

from __future__ import annotations

from pathlib import Path

from nlsom import load
from nlsom.config import shipped
from nlsom.drawing import draw

PICTURES = Path(__file__).parent / "pictures"


def pictures() -> dict[str, str]:
    """The drawing of each shipped society as it stands in its file, by the name of the picture's file."""
    drawn: dict[str, str] = {}
    for name in shipped():
        society = load(name)
        structure = society.structure.build(society.members)
        drawn[f"{name}.svg"] = draw(society.members, structure, title=name)
    return drawn


if __name__ == "__main__":
    PICTURES.mkdir(exist_ok=True)
    for name, svg in pictures().items():
        (PICTURES / name).write_text(svg, encoding="utf-8")
