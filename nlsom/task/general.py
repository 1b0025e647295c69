"""Tasks in plain words."""

from __future__ import annotations

from typing import ClassVar

from nlsom.form import ChoiceForm, Form, TextForm
from nlsom.task.base import Task


class GeneralTask(Task):
    """A task in plain words: to write something or, with choices, to decide something."""

    kind: ClassVar[str] = "general"

    def describe(self) -> str:
        """The task in words, for the head of a prompt."""
        return f"Task: {self.question}"

    def form(self) -> Form:
        """A paragraph or two; or one of the choices."""
        return ChoiceForm(options=self.choices) if self.choices else TextForm(max_tokens=300)
