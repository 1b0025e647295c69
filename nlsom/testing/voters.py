"""Simulated voters of known competence, to try out rules. Drawn by hash, so that none depends on another."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass

from nlsom.message import Choice
from nlsom.verdict import Vote


def chance(*of: object) -> float:
    """A number from 0 up to 1, uniformly distributed, and the same for equal arguments."""
    digest = hashlib.sha256("\n".join(map(str, of)).encode()).digest()
    return (int.from_bytes(digest[:8]) >> 11) / 2**53


@dataclass(frozen=True, slots=True)
class SimulatedVoter:
    """A voter who is right with a known probability; otherwise all wrong alternatives are equally likely.

    Attributes:
        name: Its name; draws differ from name to name.
        competence: Probability of being right.
        correlation: Correlation of being right between two voters of equal competence and correlation. With
            probability √correlation a voter follows a draw that all share, and otherwise one of its own.
    """

    name: str
    competence: float
    correlation: float = 0.0

    def __post_init__(self) -> None:
        if not (0 <= self.competence <= 1 and 0 <= self.correlation <= 1):
            raise ValueError(f"voter {self.name!r}: competence and correlation must be between 0 and 1")

    def vote(self, question: str, alternatives: Sequence[str], *, right: str, seed: int = 0) -> Vote:
        """Votes on a question; always the same for equal arguments.

        Args:
            question: The question's id.
            alternatives: All alternatives, including the right one.
            right: The right alternative.
            seed: Seed of the simulation.
        """
        follows = self.correlation and chance(seed, question, self.name, "follows") < math.sqrt(
            self.correlation
        )
        drawn_by = "all" if follows else f"voter {self.name}"
        wrong = [name for name in alternatives if name != right]
        chosen = right
        if wrong and chance(seed, question, drawn_by, "right") >= self.competence:
            chosen = wrong[int(chance(seed, question, drawn_by, "which") * len(wrong))]
        return Vote(self.name, Choice(choice=chosen), competence=self.competence)


def majority_right(voters: int, competence: float) -> float:
    """Probability that a majority of independent voters is right between two alternatives; a tie counts half.

    The sum in Condorcet's jury theorem (1785).
    """
    total = 0.0
    for right in range(voters + 1):
        share = 1.0 if 2 * right > voters else 0.5 if 2 * right == voters else 0.0
        total += share * math.comb(voters, right) * competence**right * (1 - competence) ** (voters - right)
    return total
