"""`ocr`: an expert that reads the text in a picture (PP-OCR, rapidocr)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pydantic import JsonValue

from nlsom.media import MediaStore
from nlsom.message import Image
from nlsom_agents.sight.expert import Expert
from nlsom_agents.sight.finding import Finding
from nlsom_agents.sight.question import Question
from nlsom_agents.sight.reader import Line, Reader, engine_version
from nlsom_agents.sight.runtime import Sight
from nlsom_agents.sight.words import ORDINALS, count_of, tokens

Lines = tuple[Line, ...]

NOTHING = 0.75  # confidence that there is no text if none was read
MOST_LINES = 40  # most lines in an answer

_SAYS = r"\b(?:says?|reads?|written|writing|text|inscription|spells?|spelled|print(?:ed)?|words?)\b"


class Ocr(Expert[Lines]):
    """Reads printed text line by line; its confidence is that of the least certain line used."""

    def __init__(self, *, sight: Sight | None = None) -> None:
        super().__init__(sight=sight)
        self._reader = Reader()

    @property
    def identity(self) -> str:
        """Name, version, and the version of rapidocr, which contains the weights.

        Raises:
            ExtraMissing: rapidocr is not installed.
        """
        return f"ocr/1 rapidocr {engine_version()}"

    async def view(self, media: MediaStore, image: Image) -> Lines:
        """The lines of text in reading order."""
        return await self.sight.look(media, image, "text", self._reader.read)

    def introduce(self, view: Lines) -> Finding:
        """All text in the picture."""
        return Finding(summary(view))

    def data(self, view: Lines) -> dict[str, JsonValue]:
        """Lines with their boxes: left, top, right, bottom as fractions of width and height."""
        lines: list[JsonValue] = [
            {"text": line.text, "score": line.score, "box": [line.left, line.top, line.right, line.bottom]}
            for line in view
        ]
        return {"lines": lines}

    def answer(self, view: Lines, question: Question, options: Sequence[str]) -> Finding:
        """Answers what is written (all, a line, a number), whether there is text, and which option is."""
        text = question.text.casefold()
        about = re.search(r"\b(?:text|writing|written|words?|letters?|lines?)\b", text)
        if about and question.sort == "count":
            return _count(view, text)
        if about and re.match(r"\W*(?:is|are|can|do|does)\b", text):
            return _is_there(view, question)
        if not view:
            return Finding("I read no text in the picture, so I cannot tell.")
        if options:
            return _choose(view, options, asked=question.sort == "words")
        if question.sort != "words":
            return Finding(f"I only read text, so I cannot tell. {summary(view, most=5)}")
        if (line := _line(view, text)) is not None:
            return line
        if re.search(r"\bnumbers?\b", text):
            return _number(view)
        said = re.search(_SAYS, text) is not None
        if len(view) == 1 or (said and len(view) <= MOST_LINES):
            return Finding(
                summary(view), " ".join(line.text for line in view), min(line.score for line in view)
            )
        return Finding(f"{summary(view)} Which of it is meant I cannot tell.")


def summary(view: Lines, *, most: int = MOST_LINES) -> str:
    """The lines, quoted; at most `most` of them."""
    if not view:
        return "I read no text in the picture."
    lines = " / ".join(line.text for line in view[:most])
    more = f" (and {count_of(len(view) - most, 'more line')})" if len(view) > most else ""
    return f'I read: "{lines}"{more}.'


def _count(view: Lines, text: str) -> Finding:
    lines = re.search(r"\blines?\b", text) is not None
    number = len(view) if lines else sum(len(line.text.split()) for line in view)
    confidence = min((line.score for line in view), default=NOTHING) * 0.8
    return Finding(
        f"I read {count_of(number, 'line' if lines else 'word')}.", str(number), round(confidence, 3)
    )


def _is_there(view: Lines, question: Question) -> Finding:
    """Whether there is text. For a certain text or place, it can only tell if there is no text at all."""
    if not view:
        return Finding("I read no text in the picture.", "no", NOTHING)
    more = set(question.rest + question.asked) - {
        *tokens("text writing written words letters lines say read any there anything")
    }
    if more:
        return Finding(f"{summary(view)} Whether that is what is asked about I cannot tell.")
    return Finding(summary(view), "yes", max(line.score for line in view))


def _line(view: Lines, text: str) -> Finding | None:
    """Answers for one line: `What does the first line say?`, `the last line`, `line 3`."""
    found = re.search(rf"\b({'|'.join(ORDINALS)}|last|top|bottom) (?:line|row)\b|\bline (\d+)\b", text)
    if found is None:
        return None
    word = found[1]
    if word in ("last", "bottom"):
        at = len(view) - 1
    elif word == "top":
        at = 0
    else:
        at = ORDINALS.index(word) if word else int(found[2]) - 1
    if not 0 <= at < len(view):
        return Finding(f"I read only {count_of(len(view), 'line')}. {summary(view)}")
    line = view[at]
    return Finding(f'The {found[0]} says: "{line.text}".', line.text, line.score)


def _number(view: Lines) -> Finding:
    numbers = list(dict.fromkeys(n for line in view for n in re.findall(r"\d[\d.,:/-]*\d|\d", line.text)))
    if len(numbers) != 1:
        return Finding(f"{summary(view)} Which number is meant I cannot tell.")
    score = min(line.score for line in view if numbers[0] in line.text)
    return Finding(summary(view), numbers[0], round(score * 0.8, 3))


def _choose(view: Lines, options: Sequence[str], *, asked: bool) -> Finding:
    """The one option that is written in the picture; of two that contain each other, the longer one.

    The confidence is higher if the question asks for what is written (`asked`).
    """
    said = f" {' '.join(word for line in view for word in tokens(line.text))} "
    there = {option: f" {' '.join(tokens(option))} " for option in options}
    written = [option for option, words in there.items() if len(words) >= 4 and words in said]
    longest = [o for o in written if not any(there[o] in there[other] for other in written if other != o)]
    if len(longest) != 1:
        which = "Several of the choices are" if longest else "None of the choices is"
        return Finding(f"{summary(view)} {which} written there, so I cannot tell.")
    text = f'{summary(view)} Of the choices, "{longest[0]}" is written.'
    return Finding(text, longest[0], 0.9 if asked else 0.5)
