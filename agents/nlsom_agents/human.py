"""An agent that a person speaks for."""

from __future__ import annotations

from pydantic import PositiveFloat

from nlsom.answers import Answers
from nlsom.errors import Unavailable
from nlsom.message import Said
from nlsom.turn import Turn


class Human:
    """A member whose answers a person types, wherever the society runs.

    Args:
        seconds: How long the person has for a turn; without it, as long as the mindstorm may take.
    """

    identity = "human/1"

    def __init__(self, *, seconds: PositiveFloat | None = None) -> None:
        self.answers: Answers | None = None
        self._seconds = seconds

    async def speak(self, turn: Turn) -> Said | None:
        """What the person says; the scheduler reads it in the turn's form.

        Raises:
            Unavailable: The society runs where nobody can be asked.
            DeadlineExceeded: Nothing was said in time.
        """
        if self.answers is None:
            raise Unavailable("nobody can be asked here: run the society by `nlsom ask` or `nlsom serve`")
        text = (await self.answers.ask(turn, seconds=self._seconds)).strip()
        return Said.words(text) if text else None
