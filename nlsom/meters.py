"""What the turns of a superstep reserve of the mindstorm's budget, and what they use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from nlsom.agent import Agent
from nlsom.budget import Budget, Calls, Cost, Priced, calling, spending
from nlsom.turn import Turn


class Meters:
    """One meter per turn, by the member's place.

    Args:
        budget: The mindstorm's.
        agents: The members' agents, by place.
        cuts: Whether turns may be cut off; their calls are then counted as they begin.

    Attributes:
        limited: Whether the budget has a limit; if not, nothing needs to be reserved.
    """

    def __init__(self, budget: Budget, agents: Sequence[Agent], *, cuts: bool) -> None:
        self.limited = not budget.unlimited
        self._budget, self._agents, self._cuts = budget, agents, cuts
        self._reserved: dict[int, Budget] = {}
        self._calls: dict[int, Calls] = {}

    def price(self, at: int, turn: Turn) -> Cost:
        """The most that a turn can cost, as its agent says.

        Raises:
            Exception: Whatever the agent raises.
        """
        agent = self._agents[at]
        if not isinstance(agent, Priced):
            return Cost()
        cost = cast("object", agent.cost(turn))
        if not isinstance(cost, Cost):
            raise TypeError(f"the agent's cost is {type(cost).__name__}, not Cost")
        return cost

    def reserve(self, at: int, turn: Turn, cut: str | None) -> str | None:
        """Takes from the budget what a turn can cost at most.

        A nested society that runs in the turn draws on the same meter, so that in the end exactly what the
        turn used has been taken, and nothing twice.

        Args:
            at: The member's place.
            turn: Its turn.
            cut: The limit that has been reached already; it refuses every turn that can cost anything.

        Returns:
            The limit that refuses the turn, of which nothing is taken then; None if it is reserved.

        Raises:
            Exception: Whatever the agent raises when it is asked for the cost.
        """
        cost = self.price(at, turn)
        limit = None if cost == Cost() else cut or self._budget.refuses(cost)
        if limit is None:
            meter = self._reserved[at] = Budget(parent=self._budget)
            meter.take(cost)
        return limit

    def take_again(self, at: int, turn: Turn) -> None:
        """Takes what an earlier run reserved for a turn without a reply, whose actual cost is unknown."""
        if self.limited:
            try:
                cost = self.price(at, turn)
            except Exception:  # noqa: BLE001 - the agent's own code
                return  # By an equal agent it could not be priced earlier either, and so was never begun.
            self._budget.take(cost)

    def begin(self, at: int) -> None:
        """A turn begins in the current task: what is called and spent in this task counts for the turn."""
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
        """The calls begun by a turn that was cut off; None if it had not begun any."""
        calls = self._calls.get(at)
        if calls is None or calls.begun == 0:
            return None
        # Nothing counted: one call if the agent uses a model at all, which is what agents with a price do.
        return int(isinstance(self._agents[at], Priced)) if calls.begun is None else calls.begun
