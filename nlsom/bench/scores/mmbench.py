"""MMBench (Liu et al. 2023): how the official tool reads replies without GPT, and circular evaluation."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence

from nlsom.bench.sample import Sample
from nlsom.bench.scores.choice import letter_choice
from nlsom.bench.scores.contract import Pair, Score, Totals, mean_of, tally
from nlsom.form import labels_for

_BLANK = str.maketrans(dict.fromkeys(".()[],:;!*#{}", " "))
_LAST = 4  # the letter has to be among this many last words of the reply
_STATED = re.compile(r"answer\s+is\s+\**([A-D])", re.I)  # reads "answer is a cat" as A, as the tool does
_REFUSES = re.compile(
    r"Sorry, I can't help with images of people yet\.|I can't process this file\."
    r"|I'm sorry, but without the image provided|Cannot determine the answer"
)


def mmbench_choice(reply: str, options: Sequence[str]) -> int | None:
    """The option that MMBench's tool (VLMEvalKit) reads from a reply without the help of GPT.

    This is the only label that occurs as a separate word, if it is among the last words; else the letter
    after "answer is"; else the only option whose text occurs in the reply, provided that the reply is at most
    twice as long as all options together.

    Returns:
        Its index; None if the tool would ask GPT, or recognises the reply as a refusal.
    """
    if _REFUSES.search(reply):
        return None
    labels, words = labels_for(options), reply.translate(_BLANK).split()
    alone = [at for at, label in enumerate(labels) if label in words]
    if len(alone) == 1 and words.index(labels[alone[0]]) >= len(words) - _LAST:
        return alone[0]
    if not alone and "Z" in words:  # the tool's label for "no answer"
        return None
    if (stated := _STATED.search(reply)) and stated[1].upper() in labels:
        return labels.index(stated[1].upper())
    low = reply.lower()
    if len(low) > 2 * sum(map(len, options)):
        return None
    named = [at for at, option in enumerate(options) if option.lower() in low]
    return named[0] if len(named) == 1 else None


def _judged(prediction: str | None, sample: Sample) -> Score | None:
    """Scores a reply as the tool reads it, but takes an option's mere letter or text as that option."""
    score = letter_choice(prediction, sample)
    if score is None or prediction is None or score.official:
        return score
    options = sample.task.choices
    right = prediction.strip() not in options and mmbench_choice(prediction, options) == sample.choice
    return Score(float(right), score.lenient, score.read, score.why)


class Circular:
    """Circular evaluation: each question is asked once per rotation of its options; all must be right.

    Rotations of one question share `meta["group"]`, or their identifier modulo a million, as in the official
    files. Where MMBench's tool cannot read an option it asks GPT; here the reply counts as wrong.
    """

    name = "mmbench"

    def score(self, prediction: str | None, sample: Sample) -> Score | None:
        """Scores one rotation by itself."""
        return _judged(prediction, sample)

    def total(self, predictions: Sequence[str | None], samples: Sequence[Sample]) -> Totals:
        """Computes `circular`, for which all rotations must be right, and `vanilla`, for the first only."""
        scores = [self.score(p, sample) for p, sample in zip(predictions, samples, strict=True)]
        groups: defaultdict[str, list[tuple[int, Score]]] = defaultdict(list)
        for score, sample in zip(scores, samples, strict=True):
            if score is not None:
                group, turn = _rotation(sample)
                groups[group].append((turn, score))
        circular = [
            Pair(min(score.official for _, score in group), min(score.lenient for _, score in group))
            for group in groups.values()
        ]
        first = [min(group, key=lambda one: one[0])[1] for group in groups.values()]
        return tally(scores, predictions, {"circular": mean_of(circular), "vanilla": mean_of(first)})


def _rotation(sample: Sample) -> tuple[str, int]:
    """The question that a sample belongs to, and a number that orders its rotations."""
    number = int(sample.id) if sample.id.isdecimal() else 0
    if (group := sample.meta.get("group")) is not None:
        return str(group), number
    return (str(number % _TURN), number // _TURN) if sample.id.isdecimal() else (sample.id, 0)


_TURN = 1_000_000  # the official files add this to the identifier for each rotation
