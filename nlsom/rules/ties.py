"""Tie-breaks, which a society has to declare: by default, a tie stays a tie."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Literal

from nlsom.rules.ballots import choice, exact, read
from nlsom.verdict import Vote

TieBreak = Literal["none", "first", "random", "confidence"]
"""How to choose among tied alternatives: not at all; the first in declaration order; at random, by the seed;
the one whose voters have the greatest sum of confidence."""


def break_tie(
    winners: Sequence[str],
    how: TieBreak,
    *,
    alternatives: Sequence[str],
    votes: Sequence[Vote],
    seed: int,
    salt: str,
) -> str | None:
    """Chooses one of the winners that a rule found.

    Args:
        winners: The winners, in any order.
        how: The tie-break.
        alternatives: All alternatives, in declaration order.
        votes: The votes, as the rule counted them.
        seed: The run's seed.
        salt: Something specific to the question, such as its task's digest: by the seed alone, a tie of "yes"
            and "no" would be broken in the same way every time.

    Returns:
        The winner; None if there is none, or the tie stays.
    """
    if len(winners) <= 1 or how == "none":
        return winners[0] if len(winners) == 1 else None
    if how == "first":
        return min(winners, key=list(alternatives).index)
    if how == "random":
        return min(winners, key=lambda name: hashlib.sha256(f"{seed}\n{salt}\n{name}".encode()).digest())
    counted, _ = read(votes, alternatives, lambda _, ballot: choice(ballot, alternatives))
    behind = {
        name: sum(exact(vote.confidence or 0.0) for vote, chosen in counted if chosen == name)
        for name in winners
    }
    most = max(behind.values())
    surest = [name for name in winners if behind[name] == most]
    return surest[0] if len(surest) == 1 else None
