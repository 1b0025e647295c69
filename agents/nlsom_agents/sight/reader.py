"""Lines of text in a picture: PP-OCR through `rapidocr`, run by OpenVINO."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nlsom.errors import ExtraMissing
from nlsom_agents.inference import openvino_for
from nlsom_agents.sight.runtime import Pixels

LEAST = 0.6  # what is read with less confidence is mostly ornament
LEAST_ALONE = 0.95  # the same for a single letter or digit, which any round or crossed thing may be
SMALLEST = 0.012  # lines lower than this share of the picture's height are mostly noise
LEGIBLE = 7  # or lower than so many pixels
_READING = "reading text in pictures"


@dataclass(frozen=True, slots=True)
class Line:
    """A line of text.

    Attributes:
        text: As read.
        score: Between 0 and 1.
        left: Of its box; all four are shares of the picture's width or height, from the top left corner.
        top: Of its box.
        right: Of its box.
        bottom: Of its box.
    """

    text: str
    score: float
    left: float
    top: float
    right: float
    bottom: float


class Reader:
    """Reads text; the engine is loaded when the first picture is read. May be called from any thread."""

    def __init__(self) -> None:
        self._engine: Any = None
        self._reading = threading.Lock()

    def read(self, picture: Pixels) -> tuple[Line, ...]:
        """Reads the lines of a picture, from top to bottom and left to right.

        Args:
            picture: RGB, shape (height, width, 3).

        Raises:
            ExtraMissing: rapidocr is not installed.
        """
        # One at a time: the engine keeps state from one step of its pipeline to the next.
        with self._reading:
            if self._engine is None:
                self._engine = _engine()
            read = self._engine(np.ascontiguousarray(picture[..., ::-1]))
        if read.boxes is None or read.txts is None:
            return ()
        height, width = picture.shape[:2]
        lines: list[Line] = []
        for corners, text, score in zip(read.boxes, read.txts, read.scores, strict=True):
            box: NDArray[np.float32] = np.asarray(corners, np.float32)
            (left, top), (right, bottom) = box.min(axis=0), box.max(axis=0)
            tall = bottom - top
            letters = sum(map(str.isalnum, text))
            if not letters or score < (LEAST if letters > 1 else LEAST_ALONE):
                continue
            if tall < max(LEGIBLE, SMALLEST * height):
                continue
            edges = left / width, top / height, right / width, bottom / height
            lines.append(
                Line(text.strip(), round(float(score), 3), *(round(float(edge), 4) for edge in edges))
            )
        return in_order(lines, aspect=height / width)


def in_order(pieces: Sequence[Line], *, aspect: float = 1.0) -> tuple[Line, ...]:
    """Puts pieces of text into reading order and joins those that stand on one line, close to each other.

    A piece belongs to a line if its middle is within half the line's height of the line's middle. Pieces of
    one line are joined where the gap is less than their height; wider gaps are columns or other signs.

    Args:
        pieces: In any order.
        aspect: The picture's height over its width.
    """
    rows: list[list[Line]] = []
    for piece in sorted(pieces, key=lambda piece: (piece.top + piece.bottom) / 2):
        if rows and _level(rows[-1][-1], piece):
            rows[-1].append(piece)
        else:
            rows.append([piece])
    lines: list[Line] = []
    for row in rows:
        fresh = True
        for piece in sorted(row, key=lambda piece: piece.left):
            if not fresh and piece.left - lines[-1].right < (piece.bottom - piece.top) * aspect:
                lines[-1] = _joined(lines[-1], piece)
            else:
                lines.append(piece)
            fresh = False
    return tuple(lines)


def _level(line: Line, piece: Line) -> bool:
    apart = abs((line.top + line.bottom) - (piece.top + piece.bottom)) / 2
    return apart < min(line.bottom - line.top, piece.bottom - piece.top) / 2


def _joined(first: Line, second: Line) -> Line:
    return replace(
        first,
        text=f"{first.text} {second.text}",
        score=min(first.score, second.score),
        top=min(first.top, second.top),
        right=max(first.right, second.right),
        bottom=max(first.bottom, second.bottom),
    )


def engine_version() -> str:
    """The version of rapidocr.

    Raises:
        ExtraMissing: It is not installed.
    """
    try:
        return metadata.version("rapidocr")
    except metadata.PackageNotFoundError as error:
        raise ExtraMissing(_READING, "local") from error


def _engine() -> Any:
    openvino_for(_READING)
    try:
        from rapidocr import EngineType, RapidOCR
    except ModuleNotFoundError as error:
        raise ExtraMissing(_READING, "local") from error
    engine = EngineType.OPENVINO
    return RapidOCR(
        params={
            "Global.log_level": "error",
            "Det.engine_type": engine,
            "Cls.engine_type": engine,
            "Rec.engine_type": engine,
        }
    )
