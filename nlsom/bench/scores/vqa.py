"""Accuracy against the answers of several people: VQA, TextVQA, VizWiz."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nlsom.bench.sample import Sample
from nlsom.bench.scores.contract import Score
from nlsom.bench.scores.reads import answer_of
from nlsom.reading import says_unknown
from nlsom.task.normalise import normalise, strip_marks, strip_words, tidy


def agreement(prediction: str, answers: Sequence[str]) -> float:
    """Mean of min(1, agreeing answers / 3) over all ways to leave one answer out; 0 to 1.

    Equal answers by different people count separately.
    """
    if not answers:
        return 0.0
    same = [answer == prediction for answer in answers]
    n = sum(same)
    return sum(min(1.0, (n - this) / 3) for this in same) / len(answers)


def vqa_accuracy(prediction: str, answers: Sequence[str]) -> float:
    """VQA accuracy (Agrawal et al. 2015), as the challenge's tool of 2021 computes it; 0 to 1.

    If all answers agree, neither side is normalised: "Yes" is wrong if all ten answers are "yes".
    """
    prediction, gold = tidy(prediction), [tidy(answer) for answer in answers]
    if len(set(gold)) > 1:
        prediction, gold = normalise(prediction), [normalise(answer) for answer in gold]
    return agreement(prediction, gold)


def evalai(answer: str) -> str:
    """Normalises an answer like the TextVQA challenge, which first removes all commas and question marks."""
    text = answer.lower().replace(",", "").replace("?", "").replace("'s", " 's")
    return strip_words(strip_marks(tidy(text)))


def textvqa_accuracy(prediction: str, answers: Sequence[str]) -> float:
    """TextVQA accuracy (Singh et al. 2019), with answers always normalised by `evalai`; 0 to 1."""
    return agreement(evalai(prediction), [evalai(answer) for answer in answers])


def judge_by(accuracy: Callable[[str, Sequence[str]], float]) -> Callable[[str | None, Sample], Score]:
    """Makes a judge from an accuracy; the lenient column always normalises, and accepts no empty answer."""

    def judge(prediction: str | None, sample: Sample) -> Score:
        official = accuracy(prediction, sample.answers) if prediction is not None else 0.0
        read, why = answer_of(prediction, sample.answers)
        return Score(official, _lenient(read, sample.answers, official, prediction), read, why)

    return judge


def vizwiz(prediction: str | None, sample: Sample) -> Score:
    """VizWiz (Gurari et al. 2018): its tool always normalises the reply, and never the gold answers.

    The lenient column reads "I can't tell" as the gold answer "unanswerable". One detail of the tool is not
    copied: it restores some contractions with a curly apostrophe.
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
    # "A" is an article, which normalisation removes; but a person would not confuse it with "the".
    letter = (read or "").casefold()
    return (
        agreement(letter, [tidy(answer).casefold() for answer in answers]) if prediction and letter else 0.0
    )
