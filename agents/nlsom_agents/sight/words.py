"""English nouns and numbers: singular, plural, lists, tokens, and finding known phrases in texts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

_PLURALS = {
    "person": "people", "man": "men", "woman": "women", "child": "children", "mouse": "mice",
    "goose": "geese", "foot": "feet", "tooth": "teeth", "knife": "knives", "calf": "calves",
    "wolf": "wolves", "leaf": "leaves", "loaf": "loaves", "shelf": "shelves", "scarf": "scarves",
    "cookie": "cookies", "movie": "movies", "shoe": "shoes", "sheep": "sheep", "skis": "skis",
    "scissors": "scissors", "glasses": "glasses", "broccoli": "broccoli", "fish": "fish", "deer": "deer",
    "pants": "pants", "trousers": "trousers", "jeans": "jeans", "shorts": "shorts",
    "aircraft": "aircraft", "luggage": "luggage", "food": "food", "cattle": "cattle", "lens": "lenses",
}  # fmt: skip
_SINGULARS = {many: one for one, many in _PLURALS.items()} | {
    "persons": "person", "glasses": "glass", "tvs": "tv",
}  # fmt: skip
_UNCOUNTED = frozenset(
    {"broccoli", "coffee", "beer", "wine", "food", "bread", "pasta", "soup", "guacamole", "hay", "corn"}
)
_COUNTS = (
    "no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
)  # fmt: skip
ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")


def singular(word: str) -> str:
    """The singular of a lower-case word; a singular is returned unchanged."""
    if word in _SINGULARS:
        return _SINGULARS[word]
    if len(word) < 4 or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies") and len(word) > 4:
        return f"{word[:-3]}y"
    if word.endswith(("sses", "uses", "xes", "ches", "shes", "zes", "oes")):
        # "houses" and "horses" lose only the s, "buses" and "glasses" two letters
        return word[:-1] if word.endswith("ouses") else word[:-2]
    return word[:-1]


def plural(phrase: str) -> str:
    """The plural of a noun or a phrase that ends in one."""
    *before, noun = phrase.split(" ")
    if noun in _PLURALS:
        many = _PLURALS[noun]
    elif re.search(r"(s|x|z|ch|sh)$", noun):
        many = f"{noun}es"
    elif re.search(r"[^aeiou]y$", noun):
        many = f"{noun[:-1]}ies"
    else:
        many = f"{noun}s"
    return " ".join([*before, many])


def number(count: int) -> str:
    """`two`, or in digits from 13."""
    return _COUNTS[count] if count < len(_COUNTS) else str(count)


def count_of(count: int, phrase: str) -> str:
    """`two people`, `one cat`, `no dogs`, `15 chairs`."""
    return f"{number(count)} {phrase if count == 1 else plural(phrase)}"


def a(phrase: str) -> str:
    """`a cat`, `an apple`, `coffee`."""
    if phrase in _UNCOUNTED:
        return phrase
    return f"{'an' if phrase[:1].casefold() in 'aeiou' else 'a'} {phrase}"


def listed(items: Sequence[str], last: str = "and") -> str:
    """`a, b and c`."""
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} {last} {items[-1]}" if items else ""


def tokens(text: str) -> tuple[str, ...]:
    """The words of a text in lower case and singular, without possessive endings."""
    bare = re.sub(r"['’]s\b|s['’](?=\s|$)", "", text.casefold())
    return tuple(singular(word) for word in re.findall(r"[^\W_]+", bare))


@dataclass(frozen=True, slots=True)
class Mention:
    """A known phrase in a text.

    Attributes:
        phrase: The known phrase, which may be in the plural in the text.
        start: Index of its first token.
        end: Index after its last token.
    """

    phrase: str
    start: int
    end: int


def known(phrases: Iterable[str]) -> dict[tuple[str, ...], str]:
    """Phrases by their tokens, for `mentions`."""
    return {tokens(phrase): phrase for phrase in phrases}


def mentions(said: Sequence[str], phrases: Mapping[tuple[str, ...], str]) -> list[Mention]:
    """Finds known phrases among tokens from left to right; of several at one place, the longest."""
    longest = max(map(len, phrases), default=0)
    found: list[Mention] = []
    at = 0
    while at < len(said):
        for end in range(min(len(said), at + longest), at, -1):
            phrase = phrases.get(tuple(said[at:end]))
            if phrase is not None:
                found.append(Mention(phrase, at, end))
                at = end
                break
        else:
            at += 1
    return found
