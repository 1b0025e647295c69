"""An agent backed by a vision-language model."""

from __future__ import annotations

from nlsom_agents.chat import Chat


class Vision(Chat):
    """A member backed by a vision-language model, which sees the task's pictures."""

    name = "vision"
    sees = True
