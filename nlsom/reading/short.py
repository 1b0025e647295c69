"""The short answer inside a reply."""

from __future__ import annotations

import re

from nlsom.reading.clean import clean

_LEAD = re.compile(
    r"\A[\"'(\s]*(?:(?:so|therefore|thus|hence|well|okay|ok|sure|certainly)\b[,.!:]?\s*)?"
    r"(?:(?:the|my|final|correct|short|best)\s+)*(?:answer|ans)\b\s*(?:is\b|would be\b|:|=|-)+\s*",
    re.I,
)
_LAST = re.compile(r"(?:^|[.!?]\s+|\n)(?:(?:the|my|final|correct)\s+)*answer\s*(?:is\b|:)+\s*([^\n]+)", re.I)


def without_lead(plain: str) -> str:
    """A cleaned reply without "The answer is" in front."""
    return _LEAD.sub("", plain)


def read_short(text: str) -> str:
    """A reply without "The answer is", Markdown, quotes and the final period; "" if nothing is left.

    Nothing is removed from the middle of a sentence.
    """
    plain = clean(text)
    last = _LAST.findall(plain)
    short = last[-1] if last else without_lead(plain)
    short = short.strip()
    before = None
    while short != before:
        before = short
        short = short.strip("\"' \n").rstrip("!;,。")
        if short.endswith(".") and not re.search(r"\b\w\.\w\.$", short):
            short = short[:-1]
    return short
