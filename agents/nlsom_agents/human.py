"""An agent whose answers a person gives."""

from __future__ import annotations

from pydantic import PositiveFloat

from nlsom.answers import Answers
from nlsom.errors import Unavailable
from nlsom.message import Said
from nlsom.turn import Turn


class Human:
    """A member whose answers a person types: in the terminal, or through the server's API or page.

    Args:
        seconds: How long the person has for a turn; None for as long as the mindstorm lasts.
    """

    identity = "human/1"

    def __init__(self, *, seconds: PositiveFloat | None = None) -> None:
        self.answers: Answers | None = None
        self._seconds = seconds

    async def speak(self, turn: Turn) -> Said | None:
        """Waits for the person's answer, which the scheduler then parses in the turn's form.

        Raises:
            Unavailable: The society runs without a terminal or server to ask a person.
            DeadlineExceeded: There was no answer in time.
        """
        if self.answers is None:
            raise Unavailable(
                "a person cannot be asked here: run the society by `nlsom ask` or `nlsom serve`"
            )
        text = (await self.answers.ask(turn, seconds=self._seconds)).strip()
        return Said.words(text) if text else None
