"""Base class of the vision experts."""

from __future__ import annotations

import asyncio
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Generic, Self, TypeVar

from pydantic import JsonValue

from nlsom.media import MediaStore
from nlsom.message import Image, Said
from nlsom.turn import Turn
from nlsom_agents.sight.finding import Finding, say, together
from nlsom_agents.sight.question import Question, options_of, question_of, read_question
from nlsom_agents.sight.runtime import Sight
from nlsom_agents.sight.words import ORDINALS

V = TypeVar("V")


class Expert(ABC, Generic[V]):
    """An agent that looks at pictures with one model and says what it sees.

    It introduces the pictures if the turn asks for that, and otherwise answers the turn's question
    (`nlsom_agents.sight.question.question_of` decides); if it cannot answer, it says so.

    Args:
        sight: A runtime shared with other experts, which its owner closes; by default one of its own.
    """

    def __init__(self, *, sight: Sight | None = None) -> None:
        self.sight = sight or Sight()
        self._own = sight is None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._own:
            await self.sight.close()

    async def speak(self, turn: Turn) -> Said | None:
        """Introduces the pictures, or answers the question that the turn asks.

        Raises:
            ExtraMissing: The expert's libraries are not installed.
            MediaError: A picture cannot be decoded.
        """
        images = turn.task.images
        if not images:
            return Said(why="there is no picture to look at")
        text = question_of(turn)
        question = None if text is None else read_question(text)
        if question is not None and len(images) > 1:
            images = _named(question, images)
        views = await asyncio.gather(*(self.view(turn.media, image) for image in images))
        if question is None:
            findings = [self.introduce(view) for view in views]
        else:
            findings = [self.answer(view, question, options_of(turn)) for view in views]
        finding = together(findings, anywhere=question is not None and question.sort == "presence")
        data: JsonValue = [
            {"picture": image.sha256, **self.data(view)} for image, view in zip(images, views, strict=True)
        ]
        return say(finding, turn.form, data, asked=question is not None)

    @property
    @abstractmethod
    def identity(self) -> str:
        """Name, version, and digests of the weights."""

    @abstractmethod
    async def view(self, media: MediaStore, image: Image) -> V:
        """Looks at a picture."""

    @abstractmethod
    def introduce(self, view: V) -> Finding:
        """Describes what is seen."""

    @abstractmethod
    def answer(self, view: V, question: Question, options: Sequence[str]) -> Finding:
        """Answers a question; by one of the options, if there are any."""

    @abstractmethod
    def data(self, view: V) -> dict[str, JsonValue]:
        """What is seen, as JSON for programs."""


def _named(question: Question, images: tuple[Image, ...]) -> tuple[Image, ...]:
    """The picture that a question names by number (`the second picture`, `picture 2`); else all."""
    ordinals = "|".join(ORDINALS)
    named = re.search(
        rf"\b(?:({ordinals}) (?:picture|image|photo)|(?:picture|image|photo) (\d+))", question.text, re.I
    )
    if named is None:
        return images
    at = ORDINALS.index(named[1].casefold()) if named[1] else int(named[2]) - 1
    return images[at : at + 1] or images
