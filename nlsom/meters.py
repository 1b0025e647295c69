"""What the turns of a superstep may spend of the mindstorm's budget, and what they spent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from nlsom.agent import Agent
from nlsom.budget import Budget, Calls, Cost, Priced, calling, spending
from nlsom.turn import Turn


class Meters:
    """A meter a turn, by the member's place.

    Args:
        budget: Of the mindstorm.
        agents: Of the members.
        cuts: Whether a turn may be cut off while others count: then its calls are counted as they begin.

    Attributes:
        limited: Whether there is anything to reserve: nothing has to be, of a budget without limits.
    """

    def __init__(self, budget: Budget, agents: Sequence[Agent], *, cuts: bool) -> None:
        self.limited = not budget.unlimited
        self._budget, self._agents, self._cuts = budget, agents, cuts
        self._reserved: dict[int, Budget] = {}
        self._calls: dict[int, Calls] = {}

    def price(self, at: int, turn: Turn) -> Cost:
        """The most that a turn can cost.

        Raises:
            Exception: Whatever the agent raises: it is the agent's own code, as much as what it says.
        """
        agent = self._agents[at]
        if not isinstance(agent, Priced):
            return Cost()
        cost = cast("object", agent.cost(turn))
        if not isinstance(cost, Cost):
            raise TypeError(f"the agent's cost is {type(cost).__name__}, not Cost")
        return cost

    def reserve(self, at: int, cost: Cost) -> None:
        """Takes from the budget what a turn can cost.

        What a nested society takes while the turn runs goes through the turn's meter as well, so that in the
        end exactly what the turn used is taken, and nothing twice.
        """
        meter = self._reserved[at] = Budget(parent=self._budget)
        meter.take(cost)

    def take_again(self, at: int, turn: Turn) -> None:
        """Takes what an earlier run reserved for a turn of which it heard nothing that tells its cost."""
        if self.limited:
            try:
                cost = self.price(at, turn)
            except Exception:  # noqa: BLE001
                return  # Then the turn was never begun: the abstention says why.
            self._budget.take(cost)

    def begin(self, at: int) -> None:
        """A turn begins, in the task that runs now: what is called and spent there is the turn's."""
        if self._cuts:
            calls = self._calls[at] = Calls(parent=calling.get())
            calling.set(calls)
        if at in self._reserved:
            spending.set(self._reserved[at])

    def settle(self, at: int, used: Cost) -> None:
        """Gives back to the budget what a turn did not use."""
        if at in self._reserved:
            self._reserved[at].settle(used)

    def in_flight(self, at: int) -> int | None:
        """The calls that a turn which was cut off had begun; None if it had not come to the first."""
        calls = self._calls.get(at)
        if calls is None or calls.begun == 0:
            return None
        # A model that counts no calls was asked once, if there is a model.
        return int(isinstance(self._agents[at], Priced)) if calls.begun is None else calls.begun
