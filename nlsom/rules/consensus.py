"""The proposal most like the others: for captions and other texts that are rarely exactly equal."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from nlsom.rules.ballots import choice, exact, field_of, read
from nlsom.rules.options import Options
from nlsom.verdict import Count, Vote

Similarity = Callable[[str, str], Fraction | float]


def words(text: str) -> list[str]:
    """The words of a text, in lower case, without punctuation."""
    return re.findall(r"\w+", text.casefold())


def token_f1(a: str, b: str) -> Fraction:
    """Words that two texts have in common, in any order: F1, from 0 to 1."""
    left, right = words(a), words(b)
    if not left or not right:
        return Fraction(left == right)
    return Fraction(2 * (Counter(left) & Counter(right)).total(), len(left) + len(right))


def rouge_l(a: str, b: str) -> Fraction:
    """Words that two texts have in common in the same order: F1 of the longest common subsequence.

    ROUGE-L (Lin 2004) with beta = 1, over words without stemming; from 0 to 1.
    """
    left, right = words(a), words(b)
    if not left or not right:
        return Fraction(left == right)
    row = [0] * (len(right) + 1)
    for word in left:
        before = 0
        for at, other in enumerate(right, 1):
            before, row[at] = row[at], before + 1 if word == other else max(row[at], row[at - 1])
    return Fraction(2 * row[-1], len(left) + len(right))


def likeness(proposals: Mapping[str, int], similar: Similarity) -> dict[str, Fraction]:
    """How similar each proposal is to the others.

    Args:
        proposals: Texts, each with the number of voters who proposed it (1 or more).
        similar: Similarity of two texts: symmetric, from 0 to 1. A text and itself count as 1.

    Returns:
        Mean similarity to the proposals of all other voters, by text; 1 for a single proposal.
    """
    texts = sorted(proposals)
    sums = {text: Fraction(proposals[text] - 1) for text in texts}
    for at, a in enumerate(texts):
        for b in texts[at + 1 :]:
            found = similar(a, b)
            alike = found if isinstance(found, Fraction) else exact(found)
            sums[a] += alike * proposals[b]
            sums[b] += alike * proposals[a]
    others = sum(proposals.values()) - 1
    return {text: total / others if others else Fraction(1) for text, total in sums.items()}


@dataclass(frozen=True, slots=True)
class Consensus(Options):
    """The proposal most similar on average to those of all other voters; that similarity is the confidence.

    Every voter's choice is a proposal. To compare sentence vectors, call `likeness` with another similarity.

    Attributes:
        similarity: `token_f1`, or `rouge_l` if the order of words matters.
    """

    similarity: Literal["token_f1", "rouge_l"] = "token_f1"

    def __call__(self, votes: Sequence[Vote], alternatives: Sequence[str]) -> Count:
        """Compares the proposals; alternatives that nobody chose are not proposals."""
        field = field_of(votes, alternatives)
        counted, uncounted = read(votes, field, lambda _, ballot: choice(ballot, field))
        if not counted:
            return Count((), dict.fromkeys(field, 0.0), uncounted=uncounted)
        alike = likeness(
            Counter(text for _, text in counted), rouge_l if self.similarity == "rouge_l" else token_f1
        )
        best = max(alike.values())
        return Count(
            winners=tuple(text for text in field if alike.get(text) == best),
            tally={text: float(alike.get(text, 0)) for text in field},
            confidence=float(best),
            cast=len(counted),
            uncounted=uncounted,
        )
