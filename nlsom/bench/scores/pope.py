"""POPE (Li et al. 2023): yes/no questions about whether an object is in the picture."""

from __future__ import annotations

from collections.abc import Sequence

from nlsom.bench.sample import Sample
from nlsom.bench.scores.contract import Pair, Score, Totals, tally
from nlsom.reading import read_yes_no


def pope_reads(text: str) -> str:
    """Reads a reply like POPE's tool: "no" if "No", "no" or "not" is in the first sentence, else "yes"."""
    words = text.split(".", 1)[0].replace(",", "").split(" ")
    return "no" if {"No", "no", "not"} & set(words) else "yes"


def rates(said: Sequence[str | None], gold: Sequence[str]) -> dict[str, float]:
    """Accuracy, precision, recall, F1 and the share of "yes", each 0 to 1; "yes" is the positive class.

    None, which is neither yes nor no, counts as wrong. A rate with denominator 0 is 0, where POPE's tool
    fails with a division by zero.
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
    """Scores yes/no replies against `sample.answers[0]`.

    A missing reply is wrong in both columns. POPE's tool has no such case; it reads an empty reply as "yes".
    """

    name = "pope"

    def score(self, prediction: str | None, sample: Sample) -> Score:
        """Scores 1 if the reply is read as the gold answer, else 0."""
        gold = sample.answers[0].casefold()
        if prediction is None:
            return Score(0.0, 0.0, None, "no reply")
        read, why = read_yes_no(prediction)
        return Score(float(pope_reads(prediction) == gold), float(read == gold), read, why)

    def total(self, predictions: Sequence[str | None], samples: Sequence[Sample]) -> Totals:
        """Computes the five figures of `rates`."""
        scores = [self.score(p, sample) for p, sample in zip(predictions, samples, strict=True)]
        gold = [sample.answers[0].casefold() for sample in samples]
        official = rates([None if p is None else pope_reads(p) for p in predictions], gold)
        lenient = rates([score.read for score in scores], gold)
        return tally(scores, predictions, {name: Pair(official[name], lenient[name]) for name in official})
