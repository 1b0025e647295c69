"""Removing markup from replies: thinking, Markdown, LaTeX, tags, full-width letters, odd quotes."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

# Markup that has to be closed has a bounded length: else replies that only open it would take quadratic time.
_THINKING = re.compile(r"<(think|thinking|reasoning)>.*?(?:</\1>|\Z)", re.I | re.S)
_THOUGHT = re.compile(r"\A.*</(?:think|thinking|reasoning)>", re.I | re.S)
_TAGGED = re.compile(r"<(answer|final_answer|final)>(.*?)(?:</\1>|\Z)", re.I | re.S)
_MARKUP = re.compile(r"<(b|i|p|u|s|em|strong|code|span|option)\b[^<>]*>(.{0,500}?)</\1>", re.I | re.S)
_TOKENS = re.compile(r"<\|[\w ]{2,}\|>|</?s>|<br\s*/?>|\[/?INST\]", re.I)
_BOXED = re.compile(r"\\f?box(?:ed)?\s*\{((?:[^{}]|\{[^{}]*\})*)\}")
_TEX_TEXT = re.compile(r"\\(?:text|mathrm|mathbf|textbf|mbox)\s*\{([^{}]*)\}")
_TEX_MATH = re.compile(r"\$\$?([^$\d][^$]*)\$\$?|\\[(\[](.{0,500}?)\\[)\]]", re.S)
_STRUCK = re.compile(r"~~.*?~~", re.S)
_LINE_START = re.compile(r"^[ \t]*(?:#{1,6}(?=[ \t])|>(?=[ \t])|[-*•+](?=[ \t]))[ \t]*", re.M)
_EMPHASIS = re.compile(r"`+|(?<![^\W_])[*_]+(?=\S)|(?<=\S)[*_]+(?![^\W_])|\*\*")
_OTHER_DIGIT = re.compile(r"(?![0-9])\d")
_QUOTES = str.maketrans({"‘": "'", "’": "'", "“": '"', "”": '"', "«": '"', "»": '"', "–": "-", "—": "-"})


@lru_cache(maxsize=256)  # Members often say the same, and several readers clean it.
def clean(text: str) -> str:
    r"""A reply without markup; words, case and lines stay as they are.

    Thinking is removed, even if it was cut off, and so is what is struck through. `\boxed{B}` and
    `<answer>B</answer>` become a line `Answer: B`. Compatibility characters become plain ones (NFKC), and
    digits of all scripts become 0 to 9.
    """
    text = unicodedata.normalize("NFKC", text).translate(_QUOTES)
    text = _OTHER_DIGIT.sub(lambda found: str(int(found[0])), text)
    text = _THOUGHT.sub("", _THINKING.sub(" ", text))
    text = _TOKENS.sub(" ", _MARKUP.sub(r"\2", text))
    text = _TEX_TEXT.sub(r"\1", text)
    text = _BOXED.sub(r"\nAnswer: \1\n", text)
    text = _TAGGED.sub(r"\nAnswer: \2\n", text)
    text = _TEX_MATH.sub(lambda found: found[1] or found[2] or "", text)
    text = _EMPHASIS.sub("", _LINE_START.sub("", _STRUCK.sub(" ", text)))
    return "\n".join(filter(None, (" ".join(line.split()) for line in text.splitlines())))
