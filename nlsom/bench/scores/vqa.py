"""Accuracy against several people's answers: VQA, TextVQA, VizWiz."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nlsom.bench.sample import Sample
from nlsom.bench.scores.contract import Score
from nlsom.bench.scores.reads import answer_of
from nlsom.reading import says_unknown
from nlsom.task.normalise import normalise, strip_marks, strip_words, tidy


def agreement(prediction: str, answers: Sequence[str]) -> float:
    """The mean, over each answer left out in turn, of min(1, agreeing others / 3); 0 to 1.

    Answers are told apart by their place: equal answers of different people are different answers.
    """
    if not answers:
        return 0.0
    same = [answer == prediction for answer in answers]
    n = sum(same)
    return sum(min(1.0, (n - this) / 3) for this in same) / len(answers)


def vqa_accuracy(prediction: str, answers: Sequence[str]) -> float:
    """VQA accuracy (Agrawal et al. 2015), as the challenge's tool of 2021 computes it; 0 to 1.

    Nothing is normalised on either side where all answers agree: "Yes" against ten times "yes" is wrong.
    """
    prediction, gold = tidy(prediction), [tidy(answer) for answer in answers]
    if len(set(gold)) > 1:
        prediction, gold = normalise(prediction), [normalise(answer) for answer in gold]
    return agreement(prediction, gold)


def evalai(answer: str) -> str:
    """An answer as the TextVQA challenge compares it: it drops commas and question marks first, always."""
    text = answer.lower().replace(",", "").replace("?", "").replace("'s", " 's")
    return strip_words(strip_marks(tidy(text)))


def textvqa_accuracy(prediction: str, answers: Sequence[str]) -> float:
    """TextVQA accuracy (Singh et al. 2019): always normalised, by the challenge's own processor; 0 to 1."""
    return agreement(evalai(prediction), [evalai(answer) for answer in answers])


def judge_by(accuracy: Callable[[str, Sequence[str]], float]) -> Callable[[str | None, Sample], Score]:
    """A judge by one of these accuracies; the lenient column normalises always, and takes no empty answer."""

    def judge(prediction: str | None, sample: Sample) -> Score:
        official = accuracy(prediction, sample.answers) if prediction is not None else 0.0
        read, why = answer_of(prediction, sample.answers)
        return Score(official, _lenient(read, sample.answers, official, prediction), read, why)

    return judge


def vizwiz(prediction: str | None, sample: Sample) -> Score:
    """VizWiz (Gurari et al. 2018): its own tool normalises the reply always, and the gold answers never.

    A person takes "I can't tell" for the gold answer "unanswerable". That the tool mends some contractions
    with a curly apostrophe is not copied.
    """
    official = agreement(normalise(prediction), sample.answers) if prediction is not None else 0.0
    if prediction is not None and says_unknown(prediction):
        read, why = "unanswerable", "the reply says it cannot tell"
    else:
        read, why = answer_of(prediction, sample.answers)
    return Score(official, _lenient(read, sample.answers, official, prediction), read, why)


def _lenient(read: str | None, answers: Sequence[str], official: float, prediction: str | None) -> float:
    gold = [normalise(answer) for answer in answers]
    said = normalise(read) if read is not None else ""
    if said:
        return max(official, agreement(said, gold))
    # "A" is all article and normalises to nothing: a person still knows it from "the"
    letter = (read or "").casefold()
    return (
        agreement(letter, [tidy(answer).casefold() for answer in answers]) if prediction and letter else 0.0
    )
