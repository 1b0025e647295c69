"""The contract of an agent: one method."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from nlsom.message import Said
from nlsom.turn import Turn


@runtime_checkable
class Agent(Protocol):
    """Anything that can be asked to speak.

    An agent may also have

    - `identity: str`: name, version, model and whatever else its replies depend on; part of the key of its
      turns;
    - `model`: a model that is opened with the society, once for all agents that share it;
    - be an async context manager, opened and closed with its society;
    - `cost(turn)`: the most that a turn can cost, for budgets (`nlsom.budget.Priced`).
    """

    async def speak(self, turn: Turn) -> Said | None:
        """Answers a turn.

        Returns:
            What is said, or None for "nothing to say". What cannot be answered in the form that the turn
            asks for is a `Said` whose `why` gives the reason: an abstention, never a guess.

        Raises:
            Exception: Any; the society's file says whether the member then abstains or the run stops.
        """
        ...


def identity(agent: Agent) -> str:
    """What an agent's replies depend on, as a part of the key of its turns."""
    named = getattr(agent, "identity", None)
    return named if isinstance(named, str) else f"{type(agent).__module__}.{type(agent).__qualname__}"
