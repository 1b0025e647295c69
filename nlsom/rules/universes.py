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

MAX_STATES = 20_000
"""Steps that are taken: a fraction of a second for up to 30 alternatives. Ranked pairs of 5 alternatives took
1,910 at most in trials with many ties."""


def universes(start: S, step: Callable[[S], Iterable[S] | None], most: int = MAX_STATES) -> set[S]:
    """Follows `step` from `start` through all ties.

    Args:
        start: A hashable state.
        step: The states that may come next; None where the state is final.
        most: How many next states are looked at.

    Returns:
        The final states; where there are too many, those and the others that were reached by as many steps
        as could be taken everywhere.
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
