"""Multiple choice: A-OKVQA, ScienceQA, and MMBench's circular evaluation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from nlsom.bench.sample import Sample
from nlsom.bench.scores.contract import Pair, Score, Totals, mean_of, tally
from nlsom.bench.scores.reads import answer_of, option_of
from nlsom.form import labels_for
from nlsom.task.normalise import normalise


def aokvqa_choice(prediction: str | None, sample: Sample) -> Score | None:
    """A-OKVQA, multiple choice (Schwenk et al. 2022): the reply equals the right option exactly."""
    if sample.choice is None:
        return None
    official = float(prediction == sample.task.choices[sample.choice])
    return _choice(prediction, sample, official)


def aokvqa_direct(prediction: str | None, sample: Sample) -> Score | None:
    """A-OKVQA, direct answer: min(1, equal answers / 3), nothing normalised or left out.

    Questions marked `difficult_direct_answer` are not counted.
    """
    if sample.meta.get("difficult_direct_answer"):
        return None
    official = min(1.0, sample.answers.count(prediction) / 3) if prediction is not None else 0.0
    read, why = answer_of(prediction, sample.answers)
    said = normalise(read) if read else ""
    same = sum(said == normalise(answer) for answer in sample.answers) if said else 0
    return Score(official, max(official, min(1.0, same / 3)) if said else 0.0, read, why)


def letter_choice(prediction: str | None, sample: Sample) -> Score | None:
    """The reply is the right option's letter or its text; ScienceQA (Lu et al. 2022), MMBench."""
    if sample.choice is None:
        return None
    right = (sample.task.choices[sample.choice], labels_for(sample.task.choices)[sample.choice])
    return _choice(prediction, sample, float(prediction is not None and prediction.strip() in right))


def one_answer(prediction: str | None, sample: Sample) -> Score | None:
    """Choices by letter or text, open questions by equality of words or numbers.

    Numbers are equal when they agree to two places.
    """
    if sample.task.choices:
        return letter_choice(prediction, sample)
    read, why = answer_of(prediction, sample.answers)
    official = float(prediction is not None and any(_same(prediction, answer) for answer in sample.answers))
    lenient = float(bool(read) and any(_same(read or "", answer) for answer in sample.answers))
    return Score(official, max(official, lenient), read, why)


def _same(said: str, gold: str) -> bool:
    try:
        return round(float(said.replace(",", "")), 2) == round(float(gold.replace(",", "")), 2)
    except ValueError:
        return bool(said.strip()) and said.strip().lower() == gold.strip().lower()


def _choice(prediction: str | None, sample: Sample, official: float) -> Score:
    at, why = option_of(prediction, sample)
    read = None if at is None else sample.task.choices[at]
    return Score(official, max(official, float(at is not None and at == sample.choice)), read, why)


class Circular:
    """MMBench (Liu et al. 2023): a question is asked once a rotation of its options; all must be right.

    Rotations of one question share `meta["group"]`, or their identifier modulo a million, as in the official
    files. MMBench's own tool asks GPT about a reply that is neither letter nor option; here that is wrong.
    """

    name = "mmbench"

    def score(self, prediction: str | None, sample: Sample) -> Score | None:
        """One rotation by itself."""
        return letter_choice(prediction, sample)

    def total(self, predictions: Sequence[str | None], samples: Sequence[Sample]) -> Totals:
        """`circular`: all rotations of a question are right; `vanilla`: the one that is asked first is."""
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
    """The question of a rotation, and how far its options are turned."""
    number = int(sample.id) if sample.id.isdecimal() else 0
    if (group := sample.meta.get("group")) is not None:
        return str(group), number
    return (str(number % _TURN), number // _TURN) if sample.id.isdecimal() else (sample.id, 0)


_TURN = 1_000_000  # what the official files add to the identifier for each rotation
