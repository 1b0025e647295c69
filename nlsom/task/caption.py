"""Captioning."""

from __future__ import annotations

from typing import ClassVar

from nlsom.form import Form, TextForm
from nlsom.task.base import Task, Words


class CaptionTask(Task):
    """A description of pictures."""

    kind: ClassVar[str] = "caption"

    question: Words = "Describe the picture."

    def form(self) -> Form:
        """A sentence or two."""
        return TextForm(max_tokens=120)
