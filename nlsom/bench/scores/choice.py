"""Multiple choice: A-OKVQA, ScienceQA, MMMU, and MMBench's circular evaluation."""

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
    """The reply is the right option's letter or its text; ScienceQA (Lu et al. 2022), MMBench, MMMU."""
    if sample.choice is None:
        return None
    right = (sample.task.choices[sample.choice], labels_for(sample.task.choices)[sample.choice])
    return _choice(prediction, sample, float(prediction is not None and prediction.strip() in right))


def one_answer(prediction: str | None, sample: Sample) -> Score | None:
    """Choices by letter or text, open questions by equality of words or numbers; MMMU (Yue et al. 2024).

    MMMU's own tool also searches long replies for the answer of an open question; here the answer of a
    society is compared, so nothing is searched. Numbers are equal when they agree to two places.
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

    Samples of one question share `meta["group"]`; one without it is a question of its own.
    """

    name = "mmbench"

    def score(self, prediction: str | None, sample: Sample) -> Score | None:
        """One rotation by itself."""
        return letter_choice(prediction, sample)

    def total(self, predictions: Sequence[str | None], samples: Sequence[Sample]) -> Totals:
        """`circular` over questions, and `vanilla` over rotations."""
        scores = [self.score(p, sample) for p, sample in zip(predictions, samples, strict=True)]
        groups: defaultdict[str, list[Score]] = defaultdict(list)
        for score, sample in zip(scores, samples, strict=True):
            if score is not None:
                groups[str(sample.meta.get("group", sample.id))].append(score)
        circular = [
            Pair(min(score.official for score in group), min(score.lenient for score in group))
            for group in groups.values()
        ]
        figures = {"circular": mean_of(circular), "vanilla": mean_of([s for s in scores if s is not None])}
        return tally(scores, predictions, figures)
