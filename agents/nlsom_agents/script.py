"""An agent that says fixed lines, to try out a society without models."""

from __future__ import annotations

from collections.abc import Sequence

from nlsom.message import Said
from nlsom.turn import Turn


class Script:
    """Says its lines in order, one per round of each phase, and then repeats the last.

    Args:
        says: The lines for all phases, or a mapping from phase labels to lines.
    """

    def __init__(self, *, says: str | Sequence[str] | dict[str, str | list[str]]) -> None:
        self._says = says
        self.identity = f"script/1 {says!r}"

    async def speak(self, turn: Turn) -> Said | None:
        """Says the line for this phase and round; None if the phase has none."""
        says = self._says
        if isinstance(says, dict):
            says = says.get(turn.phase.partition("#")[0], ())
        lines = (says,) if isinstance(says, str) else tuple(says)
        if not lines:
            return None
        return Said.words(lines[min(turn.round, len(lines)) - 1])
