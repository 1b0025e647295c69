"""How the lenient column reads the answer from a reply."""

from __future__ import annotations

from collections.abc import Iterable

from nlsom.bench.sample import Sample
from nlsom.form import labels_for
from nlsom.reading import read_choice, read_number, read_short, read_yes_no, says_unknown
from nlsom.task.normalise import normalise

_NO_REPLY = "no reply"


def option_of(prediction: str | None, sample: Sample) -> tuple[int | None, str]:
    """The index of the option that a reply names, and how it was read.

    Option texts take precedence over letters, since a society's answers are option texts.
    """
    choices = sample.task.choices
    if prediction is None:
        return None, _NO_REPLY
    if choices.count(prediction) == 1:
        return choices.index(prediction), "the option's text"
    return read_choice(prediction, choices, labels_for(choices))


def answer_of(prediction: str | None, gold: Iterable[str]) -> tuple[str | None, str]:
    """The short answer in a reply, and how it was read.

    If all gold answers are yes or no, or all are numbers, a yes or no, or a number, is looked for in the
    reply. Otherwise the whole reply is taken, without "The answer is", markdown, quotes and a final period.
    """
    if prediction is None:
        return None, _NO_REPLY
    kinds = {normalise(answer) for answer in gold}
    if normalise(read_short(prediction)) in kinds - {""}:
        return read_short(prediction), "the short answer"
    if kinds and kinds <= {"yes", "no"}:
        return read_yes_no(prediction)
    if kinds and all(kind.replace(".", "", 1).isdecimal() for kind in kinds):
        number, why = read_number(prediction, decimals=True)
        if number is not None:
            return number, why
    if says_unknown(prediction):
        return None, "the reply says it cannot tell"
    short = read_short(prediction)
    if not any(map(str.isalnum, short)):
        return None, "nothing is left of the reply"
    return short, "the short answer"
