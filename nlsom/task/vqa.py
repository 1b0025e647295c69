"""Visual question answering."""

from __future__ import annotations

from typing import ClassVar

from nlsom.task.base import Task


class VqaTask(Task):
    """A question about pictures; open, or with choices."""

    kind: ClassVar[str] = "vqa"
