"""Budgets: what a mindstorm may still spend."""

from __future__ import annotations

import contextvars
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from nlsom.message import Usage
from nlsom.turn import Turn


@dataclass(frozen=True, slots=True)
class Cost:
    """The most that a turn can cost: calls of models, and tokens read and written."""

    calls: int = 0
    tokens: int = 0


@runtime_checkable
class Priced(Protocol):
    """An agent that can say what a turn will cost at most."""

    def cost(self, turn: Turn) -> Cost:
        """The most that answering `turn` can cost."""
        ...


@dataclass(slots=True)
class Budget:
    """Calls and tokens that may still be spent; None for no limit.

    A reservation is taken at once, from this budget and from its parent's; settling gives back what was not
    needed. The parent of a nested society's budget is the budget of the turn in which it runs.

    Attributes:
        calls: Calls of models left.
        tokens: Tokens left, read and written together.
        parent: The budget that this one draws on.
        taken: What has been taken so far.
    """

    calls: int | None = None
    tokens: int | None = None
    parent: Budget | None = field(default=None, repr=False)
    taken: Cost = Cost()

    def refuses(self, cost: Cost) -> str | None:
        """The name of the limit that `cost` would break; None if it fits."""
        if self.calls is not None and cost.calls > self.calls:
            return "calls"
        if self.tokens is not None and cost.tokens > self.tokens:
            return "tokens"
        return self.parent.refuses(cost) if self.parent else None

    def take(self, cost: Cost) -> None:
        """Takes `cost`; a negative one gives back."""
        if self.calls is not None:
            self.calls -= cost.calls
        if self.tokens is not None:
            self.tokens -= cost.tokens
        self.taken = Cost(self.taken.calls + cost.calls, self.taken.tokens + cost.tokens)
        if self.parent:
            self.parent.take(cost)

    def settle(self, used: Cost) -> None:
        """Takes or gives back until `used` is what has been taken in total."""
        self.take(Cost(used.calls - self.taken.calls, used.tokens - self.taken.tokens))

    @property
    def unlimited(self) -> bool:
        """Whether nothing limits it, here or above."""
        return self.calls is None and self.tokens is None and (self.parent is None or self.parent.unlimited)


spending: contextvars.ContextVar[Budget | None] = contextvars.ContextVar("spending", default=None)
"""The budget of the turn in which this code runs; a nested society draws on it."""


@dataclass(slots=True)
class Calls:
    """Counts the calls of models that a turn begins, so that they are known if the turn is cut off.

    Attributes:
        begun: How many calls; 0 while the first waits for a slot; None if no model has counted any.
        parent: The count of the turn in which a nested society runs.
    """

    begun: int | None = None
    parent: Calls | None = None

    def add(self, calls: int) -> None:
        """Counts calls here and in the enclosing turns; 0 says that a call waits for a slot."""
        self.begun = (self.begun or 0) + calls
        if self.parent is not None:
            self.parent.add(calls)


calling: contextvars.ContextVar[Calls | None] = contextvars.ContextVar("calling", default=None)
"""The count of the turn in which this code runs."""


@dataclass(slots=True)
class Spent:
    """Running totals as plain numbers: a new `Usage` for each addition would cost more than a fast turn."""

    calls: int = 0
    prompt: int = 0
    cached: int | None = None
    completion: int = 0

    def add(self, usage: Usage) -> None:
        """Adds a cost."""
        self.calls += usage.calls
        self.prompt += usage.prompt_tokens
        self.completion += usage.completion_tokens
        if usage.cached_tokens is not None:
            self.cached = (self.cached or 0) + usage.cached_tokens

    def usage(self, seconds: float) -> Usage:
        """The totals as a `Usage`."""
        return Usage(
            calls=self.calls,
            prompt_tokens=self.prompt,
            cached_tokens=self.cached,
            completion_tokens=self.completion,
            seconds=round(seconds, 6),
        )
