"""Scores that compare strings: ANLS, relaxed accuracy, exact match."""

from __future__ import annotations

from collections.abc import Sequence

from nlsom.bench.sample import Sample
from nlsom.bench.scores.contract import Score
from nlsom.bench.scores.reads import answer_of
from nlsom.reading import read_number
from nlsom.task.normalise import normalise


def edit_distance(one: str, other: str) -> int:
    """Levenshtein distance in characters."""
    if len(one) < len(other):
        one, other = other, one
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        last, row[0] = row[0], i
        for j, b in enumerate(other, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (a != b))
    return row[-1]


def anls(prediction: str, answers: Sequence[str]) -> float:
    """Average normalised Levenshtein similarity of one reply (Biten et al. 2019), threshold 0.5; 0 to 1.

    As in the Robust Reading Competition's tool: the distance between the texts in lower case with whitespace
    collapsed, divided by the greater length of the unchanged texts; a similarity of exactly 0.5 is kept.
    """
    said = " ".join(prediction.lower().split())
    best = 0.0
    for answer in answers:
        length = max(len(answer.upper()), len(prediction.upper()))
        distance = edit_distance(" ".join(answer.lower().split()), said)
        best = max(best, 1 - (distance / length if length else 0.0))
    return best if best >= 0.5 else 0.0


def relaxed(prediction: str, target: str) -> bool:
    """Relaxed correctness of ChartQA (Masry et al. 2022), as pix2struct computes it.

    A number may deviate by 5 % of the target. Anything else, and a target of 0, must match except for case.
    "5%" is read as 0.05.
    """
    said, wanted = _as_float(prediction), _as_float(target)
    if said is not None and wanted:
        return abs(said - wanted) / abs(wanted) <= 0.05
    return prediction.lower() == target.lower()


def _as_float(text: str) -> float | None:
    try:
        return float(text.rstrip("%")) / 100 if text.endswith("%") else float(text)
    except ValueError:
        return None


def judge_anls(prediction: str | None, sample: Sample) -> Score:
    """ANLS of a reply, for DocVQA, InfographicVQA and ST-VQA."""
    official = anls(prediction, sample.answers) if prediction is not None else 0.0
    read, why = answer_of(prediction, sample.answers)
    lenient = max(official, anls(read, [answer.strip() for answer in sample.answers])) if read else 0.0
    return Score(official, lenient, read, why)


def judge_relaxed(prediction: str | None, sample: Sample) -> Score:
    """Relaxed correctness of a reply; the lenient column also reads "$1,000" and "about 12" as numbers."""
    official = (
        any(relaxed(prediction, answer) for answer in sample.answers) if prediction is not None else False
    )
    read, why = answer_of(prediction, sample.answers)
    if read is None:
        return Score(float(official), 0.0, read, why)
    lenient = official or any(_relaxed_by_eye(read, answer) for answer in sample.answers)
    return Score(float(official), float(lenient), read, why)


def _relaxed_by_eye(read: str, target: str) -> bool:
    if relaxed(read.strip(), target.strip()):
        return True
    plain = [text.strip().lstrip("$€£").replace(",", "") for text in (read, target)]
    if "%" in target and "%" not in read:  # "5" where the chart says "5%"
        plain[1] = plain[1].replace("%", "")
    number, _ = read_number(plain[0].replace("%", ""), decimals=True)
    if number is not None and "%" in plain[0]:
        number += "%"
    return relaxed(plain[0], plain[1]) or (number is not None and relaxed(number, plain[1]))


def judge_exact(prediction: str | None, sample: Sample) -> Score:
    """Whether a reply equals a gold answer exactly; for GQA. The lenient column normalises both."""
    official = float(prediction in sample.answers)
    read, why = answer_of(prediction, sample.answers)
    said = normalise(read) if read else ""
    lenient = float(bool(said) and any(said == normalise(answer) for answer in sample.answers))
    return Score(official, max(official, lenient) if said else 0.0, read, why)
