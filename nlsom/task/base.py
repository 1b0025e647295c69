"""The contract of a task."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any, ClassVar, Self

from pydantic import AfterValidator, ConfigDict, JsonValue

from nlsom.form import ChoiceForm, Form, TextForm
from nlsom.media import GATE_VERSION
from nlsom.message import Frozen, Image, whole

Words = Annotated[str, AfterValidator(whole)]
"""Text from outside. Lone surrogates, which JSON can contain but which cannot be encoded, are replaced."""


def _whole_within(value: dict[str, JsonValue]) -> dict[str, JsonValue]:
    return json.loads(whole(json.dumps(value, ensure_ascii=False))) if value else value


class Task(Frozen):
    """What a society is asked to do. A new kind of task is a subclass, installed under `nlsom.tasks`.

    Attributes:
        kind: The name under which the kind of task is installed, and of the folder of its prompts.
        question: What is asked, in plain words.
        images: The pictures in question, in order.
        choices: The options of a multiple choice; empty for an open question.
        context: Earlier turns of a conversation, or given facts, in plain words.
        extra: Anything else that a kind of task needs.
    """

    model_config = ConfigDict(ignored_types=(cached_property,))
    kind: ClassVar[str] = "task"

    question: Words
    images: tuple[Image, ...] = ()
    choices: tuple[Words, ...] = ()
    context: Words = ""
    extra: Annotated[dict[str, JsonValue], AfterValidator(_whole_within)] = {}

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of all that answers may depend on; of pictures, their original bytes and size."""
        told = self.model_dump_json(exclude={"images"})
        pictures = " ".join(f"{image.source}:{image.width}x{image.height}" for image in self.images)
        return hashlib.sha256(f"{self.kind}\n{GATE_VERSION}\n{pictures}\n{told}".encode()).hexdigest()

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Copies the task with some fields changed; the copy computes its own digest."""
        copied = super().model_copy(update=update, deep=deep)
        vars(copied).pop("digest", None)
        return copied

    def dealt(self, which: int, of: int) -> Self:
        """One share of the task, if pictures and evidence (`extra["evidence"]`) are dealt out to members.

        Args:
            which: Number of the share, from 0. It has every `of`-th picture and piece of evidence from there.
            of: How many shares there are.
        """
        extra = dict(self.extra)
        if isinstance(pieces := extra.get("evidence"), list):
            extra["evidence"] = pieces[which::of]
        return self.model_copy(update={"images": self.images[which::of], "extra": extra})

    def describe(self) -> str:
        """The task in words, for the head of a prompt."""
        return f"Question: {self.question}"

    def form(self) -> Form:
        """The form of the task's answer."""
        return ChoiceForm(options=self.choices) if self.choices else TextForm(max_tokens=16, short=True)

    def canonical(self, answer: str) -> str | None:
        """The canonical form of an answer, by which answers are counted; None for "I don't know"."""
        return answer.strip() or None

    def wording(self, answer: str) -> str:
        """How an answer to an open question is worded in the verdict; its canonical form must be the same.

        By default, the canonical form itself.
        """
        return self.canonical(answer) or answer
