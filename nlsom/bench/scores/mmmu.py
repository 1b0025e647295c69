"""MMMU (Yue et al. 2024): reads replies like the official tool, but never draws an option at random."""

from __future__ import annotations

import re
from collections.abc import Sequence

from nlsom.bench.sample import Sample
from nlsom.bench.scores.choice import one_answer
from nlsom.bench.scores.contract import Score
from nlsom.form import labels_for

_ENDS = ",.!?;:'"
_BEFORE_ANSWER = ("could be ", "so ", "is ", "thus ", "therefore ", "final ", "answer ", "result ")
_TRIVIAL = frozenset(":,.!?;'")
_NUMBERS = (
    re.compile(r"-?\b\d{1,3}(?:,\d{3})+\b"),
    re.compile(r"-?\d+(?:\.\d+)?[eE][+-]?\d+"),
    re.compile(r"-?(?:\d+\.\d+|\.\d+|\d+\b)(?![eE][+-]?\d+)(?![,\d])"),
)


def mmmu_choice(reply: str, options: Sequence[str]) -> int | None:
    """The option that MMMU's tool reads from a reply.

    This is the last label in brackets; else the last label that stands alone; else, in replies of more than
    five words, the option whose text occurs last.

    Returns:
        Its index; None where the tool would draw an option at random.
    """
    for end in _ENDS:
        reply = reply.strip(end)
    reply = f" {reply} "
    labels = labels_for(options)
    for said in ([f"({label})" for label in labels], [f" {label} " for label in labels]):
        if (at := _last(reply, said)) is not None:
            return at
    if len(reply.split()) > 5:
        return _last(reply.lower(), [option.lower() for option in options])
    return None


def _last(reply: str, said: Sequence[str]) -> int | None:
    """Index of the text whose last occurrence in the reply is latest; the first of those that tie."""
    places = [reply.rfind(each) for each in said]
    return places.index(max(places)) if max(places, default=-1) >= 0 else None


def mmmu_open(reply: str) -> set[str | float]:
    """What MMMU's tool extracts from a reply to an open question: ends of lines, and the numbers in them."""
    text = reply.strip().strip(".").lower()
    lines = text.split("\n")
    ends: list[str] = []
    for at, line in enumerate(lines):
        marks = (*_BEFORE_ANSWER, "=") if at == len(lines) - 1 else _BEFORE_ANSWER
        tails = [line.split(mark)[-1].strip() for mark in marks if mark in line]
        shortest = ""
        for tail in tails:
            if not shortest or len(tail) < len(shortest):
                shortest = tail
        if shortest and shortest not in _TRIVIAL:
            ends.append(shortest)
    ends = ends or [text]
    found = [*ends, *(number for end in ends for pattern in _NUMBERS for number in pattern.findall(end))]
    return {value for each in found for value in _plain(each)}


def _plain(text: str) -> tuple[str | float, ...]:
    text = text.strip()
    try:
        return (round(float(text.replace(",", "")), 2),)
    except ValueError:
        low = text.lower()
        return (f" {low}", f"{low} ") if len(low) == 1 else (low,)  # a bare letter would occur in any word


def _right(reply: str, answers: Sequence[str]) -> bool:
    """Whether a gold number equals an extracted number, or a gold text is part of an extracted text."""
    gold = [value for answer in answers for value in _plain(answer)]
    return any(
        any(isinstance(one, str) and one in said for one in gold) if isinstance(said, str) else said in gold
        for said in mmmu_open(reply)
    )


def mmmu(prediction: str | None, sample: Sample) -> Score | None:
    """Scores a reply as MMMU's tool reads it, but takes an option's mere text as that option."""
    score = one_answer(prediction, sample)
    if score is None or prediction is None:
        return score
    if not (options := sample.task.choices):
        right = _right(prediction, sample.answers)
    elif prediction.strip() in options:
        right = score.official
    else:
        right = mmmu_choice(prediction, options) == sample.choice
    return Score(float(right), score.lenient, score.read, score.why)
