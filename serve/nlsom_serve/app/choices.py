"""Finds the options of a multiple choice in the text of a question. Pure.

The convention:

- 2 to 26 distinct options are labelled A, B, C, … (or a, b, c, …) in order. A label is `A.`, `A)`, `A:` or
  `(A)`, in the same style throughout, followed by white space.
- Options stand on consecutive lines, one each (empty lines between them are ignored).
- Or all stand on one line, where the first label begins the line or follows `?`, `.`, `!`, `:`, `;` or `,`.
- The answer is a letter if the surrounding text asks for one (`answer with the letter …`), `ANSWER: X` if it
  says `ANSWER: $LETTER`, and the option's text otherwise.

A text that does not follow this exactly is an open question: nothing is guessed.
"""

from __future__ import annotations

import re
import string
from dataclasses import dataclass
from typing import Literal

Reply = Literal["text", "letter", "labelled"]

_STYLES = (r"\({}\)", r"{}\.", r"{}\)", r"{}:")
_ASKS = r"(?:answer|respond|reply|choose|select|pick|give|return|output|write|state|provide|say)"
_LETTER = re.compile(rf"\b{_ASKS}\b[^.?!\n]{{0,80}}\bletters?\b", re.IGNORECASE)
_LABELLED = re.compile(r"ANSWER:\s*\$?\{?LETTER\b")
_TAIL = re.compile(
    rf"(?<=[.;,!\s])\s*(?=(?:please\s+)?{_ASKS}\b.*\b(?:letters?|options?|choices?|answer)\b)", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Asked:
    """A parsed question.

    Attributes:
        question: The question without its options.
        choices: The options; empty for an open question.
        reply: How to write the answer.
        letters: The options' labels, one each.
    """

    question: str
    choices: tuple[str, ...] = ()
    reply: Reply = "text"
    letters: tuple[str, ...] = ()

    def write(self, answer: str, canonical: tuple[str | None, ...] = ()) -> str:
        """Formats an answer in the way that the question asks for.

        Args:
            answer: An option, or its canonical form.
            canonical: The canonical form of each option.
        """
        if answer in self.choices:
            at = self.choices.index(answer)
        elif answer in canonical:
            at = canonical.index(answer)
        else:
            return answer
        letter = self.letters[at] if self.letters else string.ascii_uppercase[at]
        return {"text": self.choices[at], "letter": letter, "labelled": f"ANSWER: {letter}"}[self.reply]


def read_choices(text: str) -> Asked:
    """Parses a question by the convention above."""
    for letters in (string.ascii_uppercase, string.ascii_lowercase):
        for style in _STYLES:
            labels = [style.format(letter) for letter in letters]
            found = _by_lines(text, labels) or _in_a_line(text, labels)
            if found is not None:
                before, options, after = found
                return _asked(text, before, options, after, letters)
    return Asked(text.strip())


def _asked(text: str, before: str, options: list[str], after: str, letters: str) -> Asked:
    around = f"{before}\n{after}"
    reply: Reply = "labelled" if _LABELLED.search(around) else "letter" if _LETTER.search(around) else "text"
    if reply != "text":  # `Asked.write` formats the answer: the members need not be asked to.
        before, after = _without_instructions(before), _without_instructions(after)
    question = "\n".join(part for part in (before.strip(), after.strip()) if part)
    if not question or len(set(options)) != len(options):
        return Asked(text.strip())
    return Asked(question, tuple(options), reply, tuple(letters[: len(options)]))


def _without_instructions(text: str) -> str:
    sentences = re.split(r"(?<=[.!?])\s+|\n+", text)
    return " ".join(one for one in sentences if not (_LETTER.search(one) or _LABELLED.search(one)))


def _by_lines(text: str, labels: list[str]) -> tuple[str, list[str], str] | None:
    lines = text.splitlines()
    starts = [at for at, line in enumerate(lines) if re.match(rf"\s*{labels[0]}\s", line)]
    for start in starts:
        options: list[str] = []
        end = start
        for at in range(start, len(lines)):
            if not lines[at].strip():
                continue
            match = len(options) < 26 and re.match(rf"\s*{labels[len(options)]}\s+(\S.*)", lines[at])
            if not match:
                break
            options.append(match[1].strip())
            end = at + 1
        if len(options) >= 2:
            return "\n".join(lines[:start]), options, "\n".join(lines[end:])
    return None


def _in_a_line(text: str, labels: list[str]) -> tuple[str, list[str], str] | None:
    for first in re.finditer(rf"(?:^[ \t]*|(?<=[?.!:;,])[ \t]+){labels[0]}[ \t]+(?=\S)", text, re.MULTILINE):
        line_end = text.find("\n", first.end())
        line = text[first.end() : line_end if line_end >= 0 else len(text)]
        after = text[line_end:] if line_end >= 0 else ""
        options: list[str] = []
        for label in labels[1:]:
            match = re.search(rf"(?:(?<=\s)|(?<=[,;])){label}[ \t]+(?=\S)", line)
            if match is None:
                break
            options.append(line[: match.start()].strip(" \t,;"))
            line = line[match.end() :]
        if not options or not all(options):
            continue
        last, *tail = _TAIL.split(line, maxsplit=1)
        last = last.strip(" \t,;")
        if tail and not any(option.endswith(".") for option in options):
            last = last.removesuffix(".")  # it ends the sentence before "Answer with the letter"
        options.append(last)
        if options[-1]:
            return text[: first.start()], options, "\n".join([*tail, after])
    return None
