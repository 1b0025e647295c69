"""Finding an answer in free text. Never guesses: what a careful person could not tell is no answer."""

from __future__ import annotations

import re
from collections.abc import Sequence


def read_choice(text: str, options: Sequence[str], labels: Sequence[str]) -> tuple[int | None, str]:
    """Finds the one option that a reply names.

    Args:
        text: The reply, as it came.
        options: The texts of the options.
        labels: What each is called in the prompt ("A", "B", … or "1", "2", …).

    Returns:
        The index of the option, or None; and how it was found, or why not.
    """
    bare = text.strip().strip("()[].:*\"' ").casefold()
    for at, label in enumerate(labels):
        if bare == label.casefold():
            return at, "the label alone"
    for at, option in enumerate(options):
        if bare == option.strip().casefold():
            return at, "the option's text alone"
    named = [
        at for at, option in enumerate(options) if re.search(rf"(?<!\w){re.escape(option)}(?!\w)", text, re.I)
    ]
    if len(named) == 1:
        return named[0], "the only option named"
    return None, "no single option is named"


def read_yes_no(text: str) -> tuple[str | None, str]:
    """Finds a yes or a no that a reply says plainly."""
    words = re.findall(r"[a-z']+", text.casefold())
    if words and words[0] in ("yes", "no"):
        return words[0], "the first word"
    found = {word for word in words if word in ("yes", "no")}
    if len(found) == 1:
        return found.pop(), "the only one said"
    return None, "neither a plain yes nor a plain no"


def read_number(text: str, *, decimals: bool = False) -> tuple[str | None, str]:
    """Finds the one number that a reply gives."""
    found = set(re.findall(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w])", text))
    if len(found) != 1:
        return None, "no number" if not found else "several numbers"
    number = found.pop()
    if "." in number and not decimals:
        return None, "not a whole number"
    return number, "the only number"
