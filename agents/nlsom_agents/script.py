"""An agent that says fixed lines: for trying out a society's program before models are paid for."""

from __future__ import annotations

from collections.abc import Sequence

from nlsom.message import Said
from nlsom.turn import Turn


class Script:
    """Says its lines in order, one a round of each phase; after the last it repeats the last.

    Args:
        says: The lines; one for all phases, or, by phase label, one for each.
    """

    def __init__(self, *, says: str | Sequence[str] | dict[str, str | list[str]]) -> None:
        self._says = says
        self.identity = f"script/1 {says!r}"

    async def speak(self, turn: Turn) -> Said | None:
        """The line for this phase and round; None where there is none for the phase."""
        says = self._says
        if isinstance(says, dict):
            says = says.get(turn.phase.partition("#")[0], ())
        lines = (says,) if isinstance(says, str) else tuple(says)
        if not lines:
            return None
        return Said.words(lines[min(turn.round, len(lines)) - 1])
