"""The contract of a model: a prompt and a form in, a completion out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Protocol

from pydantic import Field, PositiveInt

from nlsom.form import Form
from nlsom.media import MediaStore
from nlsom.message import NO_USAGE, Frozen, Image, Usage


@dataclass(frozen=True, slots=True)
class Prompt:
    """One user message. What members share comes first, so that a prefix cache serves them all.

    Attributes:
        head: Task and transcript: the same text for all who hear the same; from round to round it only grows.
        tail: Who the member is and what it is asked.
        images: Pictures, which come before the text.
        media: Where their bytes are.
    """

    head: str
    tail: str
    images: tuple[Image, ...]
    media: MediaStore

    @property
    def text(self) -> str:
        """Head and tail."""
        return self.head + self.tail


Temperature = Annotated[float, Field(ge=0, le=2)]
TopP = Annotated[float, Field(gt=0, le=1)]


class Settings(Frozen):
    """How a model samples.

    Attributes:
        temperature: From 0, which always takes the likeliest token, to 2.
        top_p: Nucleus sampling: above 0, up to 1.
        max_tokens: Longest reply in tokens; None for what the form says.
        stop: Texts that end a reply.
    """

    temperature: Temperature = 0.0
    top_p: TopP = 1.0
    max_tokens: PositiveInt | None = None
    stop: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Completion:
    """A model's reply.

    Attributes:
        text: What it wrote, without thinking and special tokens.
        logprob: Natural logarithm of the reply's probability, if the form is a choice; None if the engine
            does not say.
        usage: What it cost.
    """

    text: str
    logprob: float | None = None
    usage: Usage = NO_USAGE


class Model(Protocol):
    """A language or vision-language model, wherever it runs.

    A model may be an async context manager; it is opened with the society that first needs it.
    """

    @property
    def identity(self) -> str:
        """Name and revision of the model, never where it runs: part of the key of a turn."""
        ...

    @property
    def sees(self) -> bool:
        """Whether it takes pictures."""
        ...

    async def complete(self, prompt: Prompt, *, form: Form, settings: Settings, seed: int) -> Completion:
        """Completes a prompt. Where the engine can constrain its output, the reply keeps to the form.

        Raises:
            ModelUnavailable: The model cannot be reached or loaded.
            ModelError: The model refused, or answered with an error.
            PromptTooLong: Prompt and longest reply do not fit its context.
        """
        ...
