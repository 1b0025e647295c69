"""POPE: does the picture show it? (Li et al. 2023)."""

from __future__ import annotations

from collections.abc import Sequence

from nlsom.bench.sample import Sample
from nlsom.bench.scores.contract import Pair, Score, Totals, tally
from nlsom.reading import read_yes_no


def pope_reads(text: str) -> str:
    """How POPE's own tool reads: "no" where "No", "no" or "not" is in the first sentence, else "yes"."""
    words = text.split(".", 1)[0].replace(",", "").split(" ")
    return "no" if {"No", "no", "not"} & set(words) else "yes"


def rates(said: Sequence[str | None], gold: Sequence[str]) -> dict[str, float]:
    """Accuracy, precision, recall, F1 and share of yes; "yes" is the positive class.

    None is a wrong answer: it is neither yes nor no. A rate over nothing is 0, where POPE's tool stops with
    a division by zero.
    """
    pairs = list(zip(said, gold, strict=True))
    hit = sum(s == g == "yes" for s, g in pairs)
    yes = sum(s == "yes" for s in said)
    wanted = sum(g == "yes" for g in gold)
    precision, recall = _share(hit, yes), _share(hit, wanted)
    return {
        "accuracy": _share(sum(s == g for s, g in pairs), len(pairs)),
        "precision": precision,
        "recall": recall,
        "f1": _share(2 * precision * recall, precision + recall),
        "yes_ratio": _share(yes, len(pairs)),
    }


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


class Pope:
    """Scores yes and no against `sample.answers[0]`.

    An abstention is wrong in both columns; POPE's tool, which knows none, would count an empty reply as yes.
    """

    name = "pope"

    def score(self, prediction: str | None, sample: Sample) -> Score:
        """1 where the reply is read as the gold answer."""
        gold = sample.answers[0].casefold()
        if prediction is None:
            return Score(0.0, 0.0, None, "no reply")
        read, why = read_yes_no(prediction)
        return Score(float(pope_reads(prediction) == gold), float(read == gold), read, why)

    def total(self, predictions: Sequence[str | None], samples: Sequence[Sample]) -> Totals:
        """All five rates."""
        scores = [self.score(p, sample) for p, sample in zip(predictions, samples, strict=True)]
        gold = [sample.answers[0].casefold() for sample in samples]
        official = rates([None if p is None else pope_reads(p) for p in predictions], gold)
        lenient = rates([score.read for score in scores], gold)
        return tally(scores, predictions, {name: Pair(official[name], lenient[name]) for name in official})
