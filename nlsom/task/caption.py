"""Captioning."""

from __future__ import annotations

from typing import ClassVar

from nlsom.form import Form, TextForm
from nlsom.task.base import Task, Words


class CaptionTask(Task):
    """Describing pictures."""

    kind: ClassVar[str] = "caption"

    question: Words = "Describe the picture."

    def form(self) -> Form:
        """A sentence or two."""
        return TextForm(max_tokens=120)

    def canonical(self, answer: str) -> str | None:
        """The caption on one line; None for an empty one."""
        return " ".join(answer.split()) or None
