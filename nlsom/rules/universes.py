"""Ties inside a rule that works in steps: every way to break them is followed ("parallel universes").

Those who win in some universe are tied winners (Conitzer, Rognlie and Xia 2009, "Preference functions that
score rankings and maximum likelihood estimation"). The steps are taken breadth first, so that where there
are too many universes to follow, stopping treats all alternatives alike: whoever could still win then is
reported as tied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

S = TypeVar("S")

MOST = 2000
"""Universes that are followed at once. 129 voters who all differ would need more than there are atoms."""


def universes(start: S, step: Callable[[S], Iterable[S] | None], most: int = MOST) -> set[S]:
    """Follows `step` from `start` through all ties.

    Args:
        start: A hashable state.
        step: The states that may come next; None where the state is final.
        most: How many states at once are followed.

    Returns:
        The final states; with, where there are too many, those reached so far.
    """
    final: set[S] = set()
    living = {start}
    while living and len(living) <= most:
        following: set[S] = set()
        for state in living:
            after = step(state)
            if after is None:
                final.add(state)
            else:
                following.update(after)
        living = following
    return final | living
