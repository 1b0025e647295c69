"""Tools as members: async functions that are asked like anybody else.

A tool is an async function of a turn, installed under the entry points `nlsom.tools`. What it returns is
what it says: words, a value (told as JSON), or a whole `Said`; None says nothing. A tool that changes
something in the world is marked with `effects`: the trace is told before it runs, and where an earlier run
never heard back from it, it abstains rather than run twice. `turn.key` is its idempotency key.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from nlsom.message import Said
from nlsom.turn import Turn

Tool = Callable[[Turn], Awaitable[Any]]
T = TypeVar("T", bound=Tool)


def effects(tool: T) -> T:
    """Declares that a tool changes something in the world."""
    tool.effects = True  # type: ignore[attr-defined]
    return tool


def has_effects(agent: object) -> bool:
    """Whether asking an agent may change something in the world."""
    return getattr(agent, "effects", False) is True


def asked(turn: Turn) -> str:
    """What a tool is to work on: what was said last of all that its seat hears, else the question."""
    return turn.heard[-1].text if turn.heard else turn.task.question


__all__ = ["Said", "Tool", "Turn", "asked", "effects", "has_effects"]
