"""An async Python function as a member."""

from __future__ import annotations

import inspect
import json

from nlsom import plugins
from nlsom.errors import UsageError
from nlsom.message import Said
from nlsom.tool import has_effects
from nlsom.turn import Turn


class Tool:
    """A member that is a function: it answers a turn with what the function returns.

    Args:
        tool: Name of a function installed under the entry points `nlsom.tools` (see `nlsom.tool`).
    """

    def __init__(self, *, tool: str) -> None:
        self._call = plugins.load("tools", tool)
        if not inspect.iscoroutinefunction(self._call):
            raise UsageError(f"tool {tool!r} is not an async function of a turn")
        self.effects = has_effects(self._call)
        self.identity = f"tool/1 {tool} {plugins.version('tools', tool)}"

    async def speak(self, turn: Turn) -> Said | None:
        """What the function returns: words, a value as JSON, or a whole `Said`."""
        told = await self._call(turn)
        if told is None or isinstance(told, Said):
            return told
        if isinstance(told, str):
            return Said.words(told) if told.strip() else None
        return Said.words(json.dumps(told, ensure_ascii=False), data=told)
