"""The normalisation of answers that the VQA challenge defines, quirks and all.

Source: Agrawal et al., "VQA: Visual Question Answering" (ICCV 2015), and the challenge's evaluation page,
https://visualqa.org/evaluation.html. Scores are compared across papers, so its quirks are kept: "none"
becomes "0"; a mark is deleted throughout a text as soon as one of its occurrences touches a blank, or a comma
stands between digits, and becomes a blank otherwise; `'`, `:`, `&` and `%` are not among the marks; at most
32 periods are deleted.
"""

from __future__ import annotations

import re

ARTICLES = frozenset({"a", "an", "the"})
_NUMBER_WORDS = "zero one two three four five six seven eight nine ten"
NUMBERS = {"none": "0"} | {word: str(value) for value, word in enumerate(_NUMBER_WORDS.split())}

# The challenge knows these, and corrects each of them where exactly one apostrophe is missing. "I'm" and the
# like stand in its list too, but never match, as the text is in lower case by then; "she'd", "we'll" and
# "it's" do not stand in it, as what is left without the apostrophe is a word.
_CONTRACTED = """
    ain't aren't can't could've couldn't couldn't've didn't doesn't don't hadn't hadn't've hasn't haven't
    he'd he'd've he's how'd how'll how's isn't it'd it'd've it'll ma'am mightn't mightn't've might've
    mustn't must've needn't not've o'clock oughtn't 'ow's'at shan't she'd've should've shouldn't
    shouldn't've somebody'd've somebody'll somebody's someone'd someone'd've someone'll someone's
    something'd something'd've something'll that's there'd there'd've there're there's they'd they'd've
    they'll they're they've 'twas wasn't we'd've we've weren't what'll what're what's what've when's
    where'd where's where've who'd who'd've who'll who's who've why'll why're why's won't would've
    wouldn't wouldn't've y'all y'all'll y'all'd've you'd you'd've you'll you're you've
"""
CONTRACTIONS = {
    word[:at] + word[at + 1 :]: word
    for word in _CONTRACTED.split()
    for at, char in enumerate(word)
    if char == "'"
} | {"somebody'd": "somebodyd"}  # the wrong way round in the challenge's list

_MARKS = ';/[]"{}()=+\\_-><@`,?!'
_DIGITS_COMMA = re.compile(r"\d,\d")
_PERIOD = re.compile(r"\.(?!\d)")
_PERIODS = 32  # the tool passes `re.UNICODE`, which is 32, where `re.sub` expects a count


def strip_marks(text: str) -> str:
    """Removes punctuation as the challenge does."""
    out, tight = text, _DIGITS_COMMA.search(text) is not None
    for mark in _MARKS:
        if mark in out:
            out = out.replace(mark, "" if tight or f"{mark} " in text or f" {mark}" in text else " ")
    return _PERIOD.sub("", out, count=_PERIODS)


def strip_words(text: str) -> str:
    """Lower-cases, writes number words as digits, drops articles and mends contractions."""
    words = (NUMBERS.get(word, word) for word in text.lower().split())
    return " ".join(CONTRACTIONS.get(word, word) for word in words if word not in ARTICLES)


def tidy(text: str) -> str:
    """Turns line feeds and tabs into blanks, and strips blanks at both ends."""
    return text.replace("\n", " ").replace("\t", " ").strip()


def normalise(answer: str) -> str:
    """An answer as the VQA challenge compares it; "" if nothing is left of it."""
    return strip_words(strip_marks(tidy(answer)))
