"""Wording the answers to an open question: in the words of those who gave them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from nlsom.task.base import Task
from nlsom.verdict import Verdict

Given = tuple[str, str]
"""An answer: its canonical form, and the words it was given in."""


def wordings(alternatives: Sequence[str], given: Iterable[Given], task: Task) -> dict[str, str]:
    """The most used words for each alternative; of equally used ones, the first.

    Args:
        alternatives: Answers in canonical form.
        given: Answers in order, with their words.
        task: Says how an answer is worded.

    Returns:
        Words by alternative: distinct, and each with that alternative as its canonical form. Alternatives
        without such words are missing.
    """
    used: dict[str, Counter[str]] = {}
    for (counted, words), times in Counter(given).items():
        used.setdefault(counted, Counter())[task.wording(words)] += times
    known = set(alternatives)
    found: dict[str, str] = {}
    for counted in known & used.keys():
        ((words, _),) = used[counted].most_common(1)
        if words == counted or (words not in known and task.canonical(words) == counted):
            found[counted] = words
    return found


def tell(verdict: Verdict, words: dict[str, str]) -> Verdict:
    """The verdict with its alternatives in these words; only `counted` stays as it is."""
    if all(one == word for one, word in words.items()):
        return verdict

    def told(alternative: str) -> str:
        return words.get(alternative, alternative)

    return verdict.model_copy(
        update={
            "answer": verdict.answer and told(verdict.answer),
            "tally": {told(one): figure for one, figure in verdict.tally.items()},
            "pairwise": verdict.pairwise
            and {
                told(one): {told(other): figure for other, figure in row.items()}
                for one, row in verdict.pairwise.items()
            },
            "tied": tuple(map(told, verdict.tied)),
        }
    )
