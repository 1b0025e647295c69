"""Forms: the shape an answer is wanted in.

A form knows four things: how to ask for such an answer in words (`instruct`), what holds a server's output to
it (`constraint`), how long it may be (`max_tokens`), and how to read one from a text (`read`). Reading never
guesses: where no answer can be read, it says why.
"""

from __future__ import annotations

import json
import re
from itertools import islice
from typing import Annotated, Literal

from pydantic import Field, JsonValue, PositiveInt

from nlsom.choosing import ApprovalForm, ChoiceForm, Constraint, RankingForm, Reading, ScoresForm, labels_for
from nlsom.message import Choice, Frozen
from nlsom.reading import read_number, read_yes_no

_STARTS = 200  # opening brackets of a text that are tried as the beginning of JSON


class TextForm(Frozen):
    """Free text; `short` asks for a word or a short phrase, as the VQA challenge scores it."""

    kind: Literal["text"] = "text"
    max_tokens: PositiveInt = 160
    short: bool = False

    def instruct(self) -> str:
        """How to answer, in words for a model."""
        return "Answer with a single word or a short phrase." if self.short else ""

    def constraint(self) -> Constraint | None:
        """Nothing constrains free text."""
        return None

    def read(self, text: str) -> Reading:
        """Takes the text as it is; an empty one is no answer."""
        answer = text.strip()
        return Reading(answer, "the whole text") if answer else Reading(None, "the text is empty")


class YesNoForm(Frozen):
    """Yes or no."""

    kind: Literal["yes_no"] = "yes_no"

    @property
    def max_tokens(self) -> int:
        """One word; some room is left for servers without constraints."""
        return 6

    def instruct(self) -> str:
        """How to answer, in words for a model."""
        return "Answer yes or no only."

    def constraint(self) -> Constraint | None:
        """Capitalised, as models begin a reply: in lower case they are less sure, and less often right."""
        return Constraint(choice=("Yes", "No"))

    def read(self, text: str) -> Reading:
        """Finds a plain yes or no."""
        answer, why = read_yes_no(text)
        return Reading(answer, why, Choice(choice=answer) if answer else None)


class NumberForm(Frozen):
    """A number, integer unless `decimals` says otherwise."""

    kind: Literal["number"] = "number"
    decimals: bool = False

    @property
    def max_tokens(self) -> int:
        """Digits; some room is left for servers without constraints."""
        return 16

    def instruct(self) -> str:
        """How to answer, in words for a model."""
        return f"Answer with a {'number' if self.decimals else 'whole number'} in digits only."

    def constraint(self) -> Constraint | None:
        """Digits."""
        return Constraint(regex=r"-?[0-9]{1,9}(\.[0-9]{1,6})?" if self.decimals else r"-?[0-9]{1,9}")

    def read(self, text: str) -> Reading:
        """Finds the one number that the text gives."""
        answer, why = read_number(text, decimals=self.decimals)
        return Reading(answer, why, Choice(choice=answer) if answer else None)


class JsonForm(Frozen):
    """A JSON value that satisfies a JSON Schema."""

    kind: Literal["json"] = "json"
    json_schema: dict[str, JsonValue]
    max_tokens: PositiveInt = 400

    def instruct(self) -> str:
        """How to answer, in words for a model."""
        return f"Answer with JSON only, that satisfies this JSON Schema:\n{json.dumps(self.json_schema)}"

    def constraint(self) -> Constraint | None:
        """The schema."""
        return Constraint(schema=dict(self.json_schema))

    def read(self, text: str) -> Reading:
        """Takes the first JSON object or array in the text."""
        decoder = json.JSONDecoder()
        for begins in islice(re.finditer(r"[{\[]", text), _STARTS):
            try:
                _, end = decoder.raw_decode(text, begins.start())
            except (ValueError, RecursionError):
                continue
            return Reading(text[begins.start() : end], "JSON")
        return Reading(None, "the text holds no JSON")


class GrammarForm(Frozen):
    """A text that follows a grammar: a formula, a query, a move.

    Needs a server that can hold a reply to a grammar (vLLM, the embedded engine): nlsom itself cannot check
    whether a text follows one.

    Attributes:
        grammar: In GBNF, one rule per line; the whole text matches the rule `root`.
    """

    kind: Literal["grammar"] = "grammar"
    grammar: Annotated[str, Field(pattern=r"(?m)^\s*root\s*::=")]
    max_tokens: PositiveInt = 160

    def instruct(self) -> str:
        """How to answer, in words for a model."""
        return f"Answer with a text of this grammar only:\n{self.grammar}"

    def constraint(self) -> Constraint | None:
        """The grammar."""
        return Constraint(grammar=self.grammar)

    def read(self, text: str) -> Reading:
        """Takes the text as it is: the server has held it to the grammar."""
        return Reading(text, "a text of the grammar") if text else Reading(None, "the text is empty")


Form = Annotated[
    TextForm
    | ChoiceForm
    | ApprovalForm
    | YesNoForm
    | NumberForm
    | RankingForm
    | ScoresForm
    | JsonForm
    | GrammarForm,
    Field(discriminator="kind"),
]
"""Any form; `kind` tells which."""

__all__ = [
    "ApprovalForm",
    "ChoiceForm",
    "Constraint",
    "Form",
    "GrammarForm",
    "JsonForm",
    "NumberForm",
    "RankingForm",
    "Reading",
    "ScoresForm",
    "TextForm",
    "YesNoForm",
    "labels_for",
]
