"""Witnesses for easy-VQA: each is told one fact about the picture, which others learn only from its words.

An eye is a plain function: it finds the object in a picture of easy-VQA and returns its shape, its colour, or
its place. A witness is a language model that is told privately what its eye sees.
"""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from nlsom import Model, Said, Turn
from nlsom.budget import Cost
from nlsom_agents.chat import Chat

Pixels = NDArray[np.int64]
"""Shape (height, width, 3), values 0 to 255."""

COLOURS = {
    "red": (255, 0, 0),
    "green": (0, 255, 0),
    "blue": (0, 0, 255),
    "yellow": (255, 255, 0),
    "teal": (0, 128, 128),
    "brown": (165, 42, 42),
    "gray": (128, 128, 128),
    "black": (0, 0, 0),
}


def thing(pixels: Pixels) -> NDArray[np.bool_]:
    """The mask of the object: pixels that differ from the colour of the border."""
    border = np.concatenate([pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]])
    return np.abs(pixels - np.median(border, 0)).sum(-1) > 120


def shape(pixels: Pixels) -> str:
    """The shape, by the share of its bounding box that the object fills: all, π/4 or a half."""
    rows, columns = np.nonzero(thing(pixels))
    fills = len(rows) / (np.ptp(rows) + 1) / (np.ptp(columns) + 1)
    kind = "rectangle" if fills > 0.9 else "circle" if fills > 0.67 else "triangle"
    return f"The thing in the picture is a {kind}. You do not see its colour."


def colour(pixels: Pixels) -> str:
    """The nearest of easy-VQA's eight colours."""
    seen = np.median(pixels[thing(pixels)], 0)
    name = min(COLOURS, key=lambda name: float(np.abs(seen - COLOURS[name]).sum()))
    return f"The thing in the picture is {name}. You do not see its shape."


def where(pixels: Pixels) -> str:
    """The third of the picture, vertically and horizontally, that contains the object's centre."""
    rows, columns = np.nonzero(thing(pixels))
    height, width = pixels.shape[:2]
    down = ("top", "middle", "bottom")[int(3 * rows.mean() / height)]
    across = ("left", "centre", "right")[int(3 * columns.mean() / width)]
    return f"The thing in the picture is at the {down} {across}. You see neither its shape nor its colour."


class Witness(Chat):
    """A language model that is told privately what its eye sees.

    Args:
        model: The language model.
        eye: Maps pixels to one sentence about them.
        temperature: Sampling temperature, as for `chat`.
    """

    name = "witness"

    def __init__(self, *, model: Model, eye: Callable[[Pixels], str], temperature: float = 0.0) -> None:
        super().__init__(model=model, temperature=temperature)
        self.eye = eye

    @property
    def identity(self) -> str:
        """The identity of a `chat` agent and of the eye."""
        return f"{super().identity} {self.eye.__name__}/1"

    async def speak(self, turn: Turn) -> Said | None:
        """The model's reply, knowing what the eye sees."""
        return await super().speak(await self._whispered(turn))

    def cost(self, turn: Turn) -> Cost:
        """The cost of a `chat` agent, plus the private sentence."""
        cost = super().cost(turn)
        return Cost(cost.calls, cost.tokens + 40)

    async def _whispered(self, turn: Turn) -> Turn:
        data = await turn.media.read(turn.task.images[0])
        pixels = await asyncio.to_thread(
            lambda: np.asarray(Image.open(io.BytesIO(data)).convert("RGB"), np.int64)
        )
        told = f"{turn.member.persona} What you alone know: {self.eye(pixels)}".strip()
        return replace(turn, member=replace(turn.member, persona=told))
