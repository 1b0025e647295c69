"""An agent that a vision-language model speaks for."""

from __future__ import annotations

from nlsom_agents.chat import Chat


class Vision(Chat):
    """A member with a vision-language model: it sees the pictures of the task."""

    name = "vision"
    sees = True
