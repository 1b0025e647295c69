"""Reading numbers."""

from __future__ import annotations

import re

from nlsom.reading.clean import clean

_SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen"
)
_LARGE = "twenty thirty forty fifty sixty seventy eighty ninety"
NUMBER_WORDS = {word: value for value, word in enumerate(_SMALL.split())} | {
    word: 10 * n for n, word in enumerate(_LARGE.split(), 2)
}

_TENS = "|".join(word for word, value in NUMBER_WORDS.items() if value >= 20)
_UNITS = "|".join(word for word, value in NUMBER_WORDS.items() if 0 < value < 10)
_MINUS = r"(?P<minus>\b(?:minus|negative)[ -]+)?"
_IN_WORDS = re.compile(rf"{_MINUS}\b(?P<words>(?:{_TENS})[- ](?:{_UNITS})|{'|'.join(NUMBER_WORDS)})\b", re.I)
_IN_DIGITS = re.compile(
    rf"{_MINUS}(?<![\w.,:/])(?P<digits>-?(?:\d{{1,3}}(?:,\d{{3}})+|\d+)(?:\.\d+)?)(?![\w]|[.,:/]\d)", re.I
)
_LARGER = re.compile(
    rf"(?:\d|\b(?:{'|'.join(NUMBER_WORDS)}))[ -]+(?:hundred|thousand|[mbtr]+illion|dozen|score)s?\b", re.I
)
_STATED = re.compile(
    r"(?:\banswer(?: is|:)|\btotal (?:is|of)|=)\s*(?:about |exactly |a total of )?(?=\S)", re.I
)


def number_in_words(words: str) -> int | None:
    """The value of a whole number up to 99 in English words; None for anything else."""
    parts = words.casefold().replace("-", " ").split()
    if not parts or len(parts) > 2 or any(part not in NUMBER_WORDS for part in parts):
        return None
    values = [NUMBER_WORDS[part] for part in parts]
    if len(values) == 2 and not (values[0] >= 20 and 0 < values[1] < 10):
        return None
    return sum(values)


def read_number(text: str, *, decimals: bool = False) -> tuple[str | None, str]:
    """Finds the one number in a reply, in digits or in English words up to 99.

    A number stated as the answer ("Answer: 3", "2 + 1 = 3") takes precedence over others.

    Args:
        text: The reply.
        decimals: Whether the answer may have a fractional part.

    Returns:
        The number in digits without separators, or None; and how it was found, or why not.
    """
    plain = clean(text)
    stated = list(_STATED.finditer(plain))
    if stated:
        tail = plain[stated[-1].end() :].split("\n", 1)[0]
        found = _numbers(re.split(r"[.;](?:\s|$)", tail, maxsplit=1)[0])
        if len(found) == 1 and not _LARGER.search(tail):
            return _checked(found.pop(), decimals, "the number stated as the answer")
    if _LARGER.search(plain):
        return None, "a number above 99 in words"
    found = _numbers(plain)
    if len(found) != 1:
        return None, "no number" if not found else "several numbers"
    return _checked(found.pop(), decimals, "the only number")


def _numbers(text: str) -> set[str]:
    digits = {_signed(found, found["digits"].replace(",", "")) for found in _IN_DIGITS.finditer(text)}
    words = {_signed(found, str(number_in_words(found["words"]))) for found in _IN_WORDS.finditer(text)}
    return digits | (words if not digits else set())


def _signed(found: re.Match[str], number: str) -> str:
    return f"-{number}" if found["minus"] and number[0] != "-" else number


def _checked(number: str, decimals: bool, why: str) -> tuple[str | None, str]:
    if "." in number and not decimals:
        whole, _, fraction = number.partition(".")
        return (whole, why) if not fraction.strip("0") else (None, "not a whole number")
    return number, why
