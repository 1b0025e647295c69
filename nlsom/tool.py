"""Tools as members: async functions that are asked like any other member.

A tool is an async function of a turn, installed under the entry points `nlsom.tools`. What it returns is
what it says: words, a value (said as JSON), or a whole `Said`; None means that it has nothing to say.

A tool that changes something in the world is marked with `effects`. The trace records that it is about to
run; if an earlier run was interrupted after that, it abstains rather than run twice. `turn.key` serves as its
idempotency key.
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
    """Whether an agent is marked as changing something in the world."""
    return getattr(agent, "effects", False) is True


def asked(turn: Turn) -> str:
    """What a tool should work on: the last message that its member hears, or else the question."""
    return turn.heard[-1].text if turn.heard else turn.task.question


__all__ = ["Said", "Tool", "Turn", "asked", "effects", "has_effects"]
