"""Forms: the shape an answer is wanted in.

A form says four things about an answer: how to ask for it in words (`instruct`), what a server that
constrains its output may be told (`constraint`), how long it may be (`max_tokens`), and how a text is read
(`read`). Reading never guesses: what cannot be read has no answer, and says why.
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

_STARTS = 200  # brackets of a text at which JSON may begin


class TextForm(Frozen):
    """Free text; `short` asks for a word or a short phrase, as official VQA scores want it."""

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
        """A word, and room for servers without constraints."""
        return 6

    def instruct(self) -> str:
        """How to answer, in words for a model."""
        return "Answer yes or no only."

    def constraint(self) -> Constraint | None:
        """The two words as models begin a reply: held to small letters they are less sure, and right less."""
        return Constraint(choice=("Yes", "No"))

    def read(self, text: str) -> Reading:
        """Finds a yes or a no that the text says plainly."""
        answer, why = read_yes_no(text)
        return Reading(answer, why, Choice(choice=answer) if answer else None)


class NumberForm(Frozen):
    """A number, integer unless `decimals` says otherwise."""

    kind: Literal["number"] = "number"
    decimals: bool = False

    @property
    def max_tokens(self) -> int:
        """Digits, and room for servers without constraints."""
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
    """A text of the language that a grammar describes: a formula, a query, a move.

    Only servers that hold a reply to a grammar can be asked for it (vLLM, the embedded engine): nothing else
    can tell whether a text follows it.

    Attributes:
        grammar: In GBNF, one rule a line; the text is what the rule `root` describes.
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
