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
    """A member that is a function: its answer to a turn is what the function returns.

    Args:
        tool: Name of a function installed as an entry point in `nlsom.tools` (see `nlsom.tool`).
    """

    def __init__(self, *, tool: str) -> None:
        self._call = plugins.load("tools", tool)
        if not inspect.iscoroutinefunction(self._call):
            raise UsageError(f"tool {tool!r} is not an async function of a turn")
        self.effects = has_effects(self._call)
        self.identity = f"tool/1 {tool} {plugins.version('tools', tool)}"

    async def speak(self, turn: Turn) -> Said | None:
        """Calls the function; says the text it returns, another value as JSON, or a `Said` as it is."""
        returned = await self._call(turn)
        if returned is None or isinstance(returned, Said):
            return returned
        if isinstance(returned, str):
            return Said.words(returned) if returned.strip() else None
        return Said.words(json.dumps(returned, ensure_ascii=False), data=returned)
