"""Finding the places where a reply mentions options, for `read_choice` to judge."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from nlsom.reading.clean import clean

WORD = r"A-Za-z0-9À-ɏ"
_AHEAD = 80  # characters after a letter that are read to tell whether it is a label
_ARTICLE = re.compile(r"(?:a|an|the|some)\s+(?=\S)", re.I)
# No noun phrase begins with these, so "A" before one of them is a label and not the article.
_NOT_AFTER_ARTICLE = (
    r"(?:is|was|are|were|isn't|because|since|as|and|or|but|seems|appears|fits|looks|matches|would|will|does|doesn't|can|"
    r"can't|cannot|could|must|should|here|not|which|due|based|for|from|with|in|on|by|to|so|then|it|this|that|has|given)\b"
)
_LETTER_A = re.compile(rf"\s*(?:$|[.,:;!?()\[\]}}>/&+=\n\"、≻→-]|{_NOT_AFTER_ARTICLE})", re.I)
_LETTER_I = re.compile(
    r"\s*(?:$|[.:;!?)\]}>\n\"]|,\s*(?:because|since)\b|is\s+(?:the|correct|right)\b)", re.I
)
_LOWER = re.compile(r"\s*(?:$|[.,:;!?()\]}>\n\"]|-\s|(?:because|since|is|as|and|or|for|here)\b)", re.I)


@dataclass(frozen=True, slots=True)
class Mention:
    """One mention of an option.

    Attributes:
        at: Index of the option.
        start: Where it begins in the cleaned reply.
        end: Where it ends.
        kind: `marked`: a label in brackets; `label`: a label without them; `lower`: a label in lower case,
            or a number; `text`: the option's own words.
    """

    at: int
    start: int
    end: int
    kind: str

    @property
    def by_label(self) -> bool:
        """Whether it is a label, and not the option's text."""
        return self.kind != "text"


def without_article(text: str) -> str:
    """A text without an article in front."""
    return _ARTICLE.sub("", text, count=1) if _ARTICLE.match(text) else text


def fold(text: str) -> str:
    """A text for comparison: without markup, case, outer quotes and a final period."""
    plain = " ".join(clean(text).split()).strip("\"' ")
    return plain.rstrip(" .!,;:。、" if len(plain) > 1 else " ").casefold()


def find_texts(plain: str, options: Sequence[str], labels: Sequence[str]) -> list[Mention]:
    """Mentions of the options' texts, as whole words; of overlapping ones, the longer.

    An option whose text is a label is not looked for, since the prompt asks for labels.
    """
    names = {label.casefold() for label in labels}
    found: list[Mention] = []
    for at, option in enumerate(options):
        words = without_article(fold(option))
        if words and words not in names:
            pattern = _whole(words)
            found += (Mention(at, hit.start(), hit.end(), "text") for hit in pattern.finditer(plain))
    covered: dict[int, int] = {}
    for one in found:
        for place in range(one.start, one.end):
            covered[place] = max(covered.get(place, 0), one.end - one.start)
    return [one for one in found if min(covered[one.start], covered[one.end - 1]) == one.end - one.start]


def _whole(words: str) -> re.Pattern[str]:
    """A pattern for whole words: finds no "no" in "notice", and no "2" in "12" or "2.0"."""
    spaced = r"\s+".join(map(re.escape, words.split()))
    number = any(char.isdigit() for char in words)
    if words == "no":  # the answer, not the "no" of "no doubt" or "there is no dog"
        return re.compile(
            r"(?<!\w)no(?!\w)(?=\s*(?:[^\w\s]|$)|\s+(?:it|there|he|she|they|this|that|the|i|we|because)\b)",
            re.I,
        )
    before = r"(?<![\w$€£-])(?<!\d[.,:/])" if number else r"(?<![\w])(?<!\w-)"
    after = r"(?![\w%])(?![.,:/-]\d)" if number else r"(?!\w)(?!-\w)"
    return re.compile(
        (before if words[0].isalnum() else r"(?<!\w)" if number else "")
        + spaced
        + (after if words[-1].isalnum() else ""),
        re.I,
    )


def find_labels(plain: str, labels: Sequence[str], texts: Sequence[Mention]) -> Iterator[Mention]:
    """Mentions of labels, but not the article "A", the pronoun "I" or a letter in an option's text."""
    names = "|".join(sorted(map(re.escape, labels), key=len, reverse=True))
    index = {label.casefold(): at for at, label in enumerate(labels)}
    pattern = re.compile(
        rf"(?P<marked>[(\[{{<【]\s*(?:option |choice |answer |letter )?(?P<inner>(?a:{names}))\s*[)\]}}>】])"
        rf"|(?<![{WORD}'_$\\-])(?P<bare>(?a:{names}))(?![{WORD}'_-]|\.\w)",
        re.I,
    )
    inside = {place for text in texts if text.end - text.start > 1 for place in range(text.start, text.end)}
    for hit in pattern.finditer(plain):
        at = index[(hit["inner"] or hit["bare"]).casefold()]
        if hit["marked"]:
            yield Mention(at, hit.start(), hit.end(), "marked")
            continue
        if hit.start() in inside:
            continue
        letter, after = hit["bare"], plain[hit.end() : hit.end() + _AHEAD]
        if letter.isdigit():
            yield Mention(at, hit.start(), hit.end(), "lower")
        elif letter.isupper():
            guard = {"A": _LETTER_A, "I": _LETTER_I}.get(letter)
            if guard is None or guard.match(after):
                yield Mention(at, hit.start(), hit.end(), "label")
        elif _LOWER.match(after):
            yield Mention(at, hit.start(), hit.end(), "lower")
