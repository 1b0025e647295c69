"""Visual question answering."""

from __future__ import annotations

import re
from typing import ClassVar

from nlsom.form import Form, YesNoForm, labels_for
from nlsom.reading import read_choice, read_short, read_yes_no, says_unknown
from nlsom.task.base import Task
from nlsom.task.normalise import normalise

_HOW_MANY = re.compile(r"\bhow many\b", re.I)


class VqaTask(Task):
    """A question about pictures, open or with choices."""

    kind: ClassVar[str] = "vqa"

    def form(self) -> Form:
        """Yes or no, one of the choices, or a few words."""
        return YesNoForm() if self._asks_yes_no else super().form()

    @property
    def _asks_yes_no(self) -> bool:
        return set(self.choices) == {"yes", "no"}

    def canonical(self, answer: str) -> str | None:
        """The canonical form of an answer.

        With choices, the text of the option that is named, by letter or in words. For an open question, the
        answer without "The answer is" and the like, normalised as by the VQA challenge, except that "none"
        becomes "0" only if the question asks how many. An answer of articles only ("A", when a letter is
        asked for) is kept.

        Returns:
            The canonical form; None for "I don't know" (unless that is an option), for an answer that names
            no single option, and for one without letters or digits.
        """
        if self.choices:
            if answer in self.choices:  # already canonical; and an option may itself be called "A"
                return answer
            if self._asks_yes_no:
                answer = read_yes_no(answer)[0] or answer
            at, _ = read_choice(answer, self.choices, labels_for(self.choices))
            return None if at is None else self.choices[at]
        if says_unknown(answer):
            return None
        short = read_short(answer)
        if short.casefold() == "none" and not _HOW_MANY.search(self.question):
            return "none"
        return normalise(short) or (short.casefold() if any(map(str.isalnum, short)) else None)

    def wording(self, answer: str) -> str:
        """The answer without "The answer is" and the like, but with its own case and articles.

        To a question of how many, the canonical form: "None" could be mistaken for the lack of an answer.
        """
        if _HOW_MANY.search(self.question):
            return super().wording(answer)
        return " ".join(read_short(answer).split())
