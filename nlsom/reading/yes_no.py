"""Reading yes and no."""

from __future__ import annotations

import re

from nlsom.reading.clean import clean
from nlsom.reading.unknown import says_unknown

_WORDS = {
    "yes": "yes", "y": "yes", "yeah": "yes", "yep": "yes", "yup": "yes", "true": "yes", "correct": "yes",
    "affirmative": "yes", "ja": "yes", "oui": "yes", "si": "yes", "sí": "yes", "是": "yes", "是的": "yes",
    "no": "no", "n": "no", "nope": "no", "nah": "no", "false": "no", "negative": "no", "not": "no",
    "nein": "no", "non": "no", "否": "no", "不": "no", "不是": "no",
    "i think so": "yes", "i believe so": "yes", "i don't think so": "no", "i do not think so": "no",
    "absolutely": "yes", "definitely": "yes", "certainly": "yes", "of course": "yes", "indeed": "yes",
    "absolutely not": "no", "definitely not": "no", "certainly not": "no", "of course not": "no",
}  # fmt: skip
_STATED = re.compile(r"\banswer\b\W*(?:is|would be|:|-|=)\W*(yes|no)\b(?!\s+(?:or|and)\b)", re.I)
_FIRST = re.compile(
    r"""\W*(?:\d+[.)]\s+)?
    (?:(?:so | well | actually | h+m+ | oh | sorry | unfortunately | ok(?:ay)?
      | i(?:'d | \s+would)?\s+(?:think|believe|guess|say)(?:\s+that)?)\b [\s,:;.!-]*)*
    (yes|no|nope|yeah|yep)\b""",
    re.I | re.X,
)
_LABELLED = re.compile(r"[^.:!?\n]{1,60}:\s*(yes|no)\W*", re.I)
_DENIES = re.compile(
    r"\b(?:no|not|none|nobody|nothing|never|neither|cannot|without)\b|\b(?:is|are|do|does|did|was|were|ca|ha[sd]|have)n't\b",
    re.I,
)
_STATES = re.compile(
    r"""\W*(?:
        there \s+ (?:is|are|isn't|aren't|appears?|seems?)\b | there's\b
      | i \s+ (?:(?:can(?:not|'t)? | do(?:n't | \s+not)?) \s+)? see\b
    )""",
    re.I | re.X,
)
_SHORT = re.compile(r"(?:it|he|she|they|there) (?:is|are|does|do|has|have|can|was|were)(?:n't| not)?", re.I)
_NO_DOUBT = re.compile(r"\b(?:there is )?no (?:doubt|question|wonder)(?: about it| that)?\b", re.I)
_UNSURE = re.compile(
    r"\b(?:maybe|perhaps|possibly|might|may|could|unclear|either|whether|if)\b|\?|\byes (?:and|or) no\b", re.I
)


def read_yes_no(text: str) -> tuple[str | None, str]:
    """Finds a plain yes or no in a reply.

    It may be the word alone; the last "answer is no"; the first word; the word as a sentence of its own; or a
    plain statement that something is there or is seen, or not. A reply that says both, or takes back what it
    said, has no answer.

    Returns:
        "yes" or "no", or None; and how it was found, or why not.
    """
    plain = _NO_DOUBT.sub("", clean(text))
    alone = plain.casefold().strip(" .,;:!?\"'()[]{}<>-*\n")
    if alone in _WORDS:
        return _WORDS[alone], "the word alone"
    if labelled := _LABELLED.fullmatch(plain):
        return labelled[1].casefold(), "the word after a colon"
    stated = _STATED.findall(plain)
    if stated:
        return stated[-1].casefold(), "the stated answer"
    if re.search(r"\byes\W+(?:and |or )?no\b|\bno\W+(?:and |or )?yes\b", plain, re.I):
        return None, "both yes and no"
    if says_unknown(plain) and not _FIRST.match(plain):
        return None, "the reply says it cannot tell"
    sentences = [part for part in re.split(r"(?<=[.!?;])\s+|\n", plain) if part.strip()]
    said = [_sentence(sentence, first=at == 0) for at, sentence in enumerate(sentences)]
    found = {word for word, _ in said if word is not None}
    if len(found) == 1:
        return next((word, why) for word, why in said if word is not None)
    return None, "both yes and no" if found else "neither a plain yes nor a plain no"


def _sentence(sentence: str, *, first: bool) -> tuple[str | None, str]:
    """What one sentence says; in a later sentence, "No, …" counts only if the rest of it agrees."""
    bare = sentence.casefold().strip(" .,;:!?\"'()[]{}-")
    if bare in ("yes", "no"):
        return bare, "the word alone in a sentence"
    begins = _FIRST.match(sentence)
    if begins:
        word = _WORDS[begins[1].casefold()]
        rest = sentence[begins.end() :]
        if first or (word == "no") == bool(_DENIES.search(rest)):
            return word, "the first word"
        return None, "a later sentence takes back what was said"
    if re.match(r"\W*not\b", sentence, re.I) and first:
        return "no", "it begins with not"
    if _UNSURE.search(sentence):
        return None, "unsure"
    if _STATES.match(sentence) or _SHORT.fullmatch(bare):
        return ("no" if _DENIES.search(sentence) or "n't" in sentence else "yes"), "a plain statement"
    return None, "neither"
