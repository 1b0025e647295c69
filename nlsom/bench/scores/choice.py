"""Multiple-choice scores: A-OKVQA, ScienceQA, and sets without an official evaluation tool."""

from __future__ import annotations

import re

from nlsom.bench.sample import Sample
from nlsom.bench.scores.contract import Score
from nlsom.bench.scores.reads import answer_of, option_of
from nlsom.form import labels_for
from nlsom.task.normalise import normalise

_STATED = re.compile(r"The answer is ([A-Z]).")


def aokvqa_choice(prediction: str | None, sample: Sample) -> Score | None:
    """A-OKVQA, multiple choice (Schwenk et al. 2022): whether the reply equals the right option exactly."""
    if sample.choice is None:
        return None
    official = float(prediction == sample.task.choices[sample.choice])
    return _choice(prediction, sample, official)


def aokvqa_direct(prediction: str | None, sample: Sample) -> Score | None:
    """A-OKVQA, direct answer: min(1, equal answers / 3), without normalisation or leave-one-out averaging.

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
    """Whether the reply is the letter or the text of the right option."""
    if sample.choice is None:
        return None
    right = (sample.task.choices[sample.choice], labels_for(sample.task.choices)[sample.choice])
    return _choice(prediction, sample, float(prediction is not None and prediction.strip() in right))


def scienceqa(prediction: str | None, sample: Sample) -> Score | None:
    """ScienceQA (Lu et al. 2022): whether a reply is the right option, or says "The answer is B." once.

    Where no option can be read, the official tool draws one at random; here the reply counts as wrong.
    """
    score = letter_choice(prediction, sample)
    if score is None or prediction is None or score.official:
        return score
    said = _STATED.findall(prediction)
    right = len(said) == 1 and said[0] == labels_for(sample.task.choices)[sample.choice or 0]
    return Score(float(right), score.lenient, score.read, score.why)


def one_answer(prediction: str | None, sample: Sample) -> Score | None:
    """Scores choices by letter or text, and open questions by equality of words (ignoring case) or numbers.

    Numbers are equal if they agree to two decimal places.
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
