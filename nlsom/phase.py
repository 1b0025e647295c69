"""Phases: the program of a mindstorm, as a society's file writes it down."""

from __future__ import annotations

import json
from typing import Annotated, ClassVar, Literal, Self, cast

from pydantic import (
    AliasChoices,
    BeforeValidator,
    Field,
    JsonValue,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    model_validator,
)

from nlsom.form import Form
from nlsom.message import Frozen
from nlsom.source import as_json
from nlsom.structure import Named
from nlsom.turn import Content

Share = Annotated[float, Field(gt=0, le=1)]
OnError = Literal["abstain", "raise"]
FormName = Literal["text", "answer", "choice", "approval", "yes_no", "number", "ranking", "scores"]
Ballots = ("choice", "approval", "ranking", "scores")
"""Forms over options: the choices of the task, the different answers so far, or proposals."""


def _short_form(value: object) -> object:
    """Reads `{text: {max_tokens: 40}}`, the way files write a form with parameters, and those of one text."""
    if not isinstance(value, dict) or len(cast("dict[str, object]", value)) != 1:
        return cast("object", value)
    ((kind, given),) = cast("dict[str, object]", value).items()
    if kind == "json" and isinstance(given, str):
        try:
            return {"kind": kind, "json_schema": json.loads(given)}
        except RecursionError:
            raise ValueError("this JSON is too deeply nested") from None
    if kind == "json" and isinstance(given, dict):
        parameters = cast("dict[str, object]", given if "json_schema" in given else {"json_schema": given})
        return {"kind": kind, **parameters, "json_schema": as_json(parameters["json_schema"])}
    if kind == "grammar" and isinstance(given, str):
        return {"kind": kind, "grammar": given}
    if given is None or isinstance(given, dict):
        return {"kind": kind, **cast("dict[str, object]", given or {})}
    return cast("object", value)


_Short = dict[
    Literal["text", "choice", "yes_no", "number", "ranking", "scores", "json", "grammar"], JsonValue
]
FormSpec = Annotated[
    FormName | Form, BeforeValidator(_short_form, json_schema_input_type=FormName | Form | _Short)
]
"""A form by name, or with parameters: `text`, `{text: {max_tokens: 40}}`, `{json: JSON SCHEMA}`,
`{json: {json_schema: JSON SCHEMA, max_tokens: 80}}`, `{grammar: GBNF}`."""


def _one_label(value: object) -> object:
    return (value,) if isinstance(value, str) else value


Labels = Annotated[tuple[str, ...], BeforeValidator(_one_label, json_schema_input_type=str | tuple[str, ...])]


class Hears(Frozen):
    """What the members asked in a phase hear of what the structure lets reach them.

    Attributes:
        label: Only messages with one of these labels; None hears all labels.
        scope: `all` that was said, the `latest` message of each sender and label, or `none`.
        content: The words (`reasons`), only the answers they come down to (`answers`), or of answers only how
            often each was given (`tally`).
    """

    label: Labels | None = None
    scope: Literal["none", "latest", "all"] = "all"
    content: Content = "reasons"


class Inline(Frozen):
    """A prompt written into the society's file instead of a file of its own."""

    text: str


class Ask(Frozen):
    """Some members are asked to speak: one superstep, or one a member where they speak in turn.

    Attributes:
        ask: Who: a member, a group of members made by `count`, a role, or `everyone`.
        prompt: Name of a prompt file, or `{text: …}`.
        label: What the messages are called (`as` in a file).
        name: Name of the phase; the label, unless two phases share it.
        hears: What they hear of what the structure lets reach them.
        form: The shape of the answer: a form, or the name of one; `answer` is the task's own.
        over: Of a choice, approval, ranking or scores: the label of the proposals it is over. Each proposal
            is called by the name of who made it.
        order: All `together`; `in_turn`, each hearing who spoke before it in this round; `random`, in turn in
            an order drawn from the seed; `confidence`, in turn, the surest of the last round first.
        wait: For `all`; for so many replies; or until the rest cannot change the winner (`certain`).
        quorum: Fewer replies end the mindstorm; None takes the society's.
        seconds: Who has not answered by then abstains; where members speak in turn, each has so long.
        on_error: What a member's failure means; None takes the society's.
        structure: Whose messages may reach whom in this phase: another structure than the society's.
    """

    meant: ClassVar = {
        "repeat": "rounds within rounds there are none",
        "until": "`until` ends the rounds of a `repeat`; a phase ends by `wait: all`, a number, or `certain`",
    }

    ask: str
    prompt: str | Inline
    label: str = Field(validation_alias=AliasChoices("as", "label"), default="said")
    name: str = ""
    hears: Hears = Hears()
    form: FormSpec = "text"
    over: str | None = None
    order: Literal["together", "in_turn", "random", "confidence"] = "together"
    wait: Literal["all", "certain"] | PositiveInt = "all"
    quorum: NonNegativeInt | None = None
    seconds: PositiveFloat | None = None
    on_error: OnError | None = None
    structure: Named | None = None

    @model_validator(mode="after")
    def _over_what(self) -> Self:
        if self.over is not None and self.form not in Ballots:
            raise ValueError(f"`over` needs a form that chooses: {', '.join(Ballots)}")
        return self


class Until(Frozen):
    """When a `repeat` ends before its count; any condition that is given and true ends it.

    Attributes:
        agreement: The most frequent answer's share of those who answered, at least.
        over: Label of the answers that `agreement` and `unchanged` look at.
        unchanged: Nobody changed their answer since the round before.
        confident: The last message of `of` is at least this sure.
        says: One of `of` said this last: as its answer, or as the last line of its words, whatever the case
            and the marks around it.
        of: Whose confidence or word counts.
    """

    meant: ClassVar = {
        "certain": "a vote that ends once the rest cannot change its winner is a phase with `wait: certain`"
    }

    agreement: Share | None = None
    over: str = "answer"
    unchanged: bool = False
    confident: Share | None = None
    says: str | None = None
    of: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _a_mapping(cls, value: object) -> object:
        if isinstance(value, str):
            raise ValueError(cls.meant.get(value, "a mapping, such as {agreement: 1.0} or {unchanged: true}"))
        return value

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if (self.confident is not None or self.says is not None) and self.of is None:
            raise ValueError("`confident` and `says` need `of`: whose confidence or word counts")
        if not (self.agreement or self.unchanged or self.confident or self.says):
            raise ValueError("give agreement, unchanged, confident or says")
        return self


class Repeat(Frozen):
    """Phases that run again and again: the rounds of a mindstorm; at most 10,000, so that every run ends."""

    repeat: Annotated[int, Field(ge=0, le=10_000)]
    phases: tuple[Ask, ...] = Field(min_length=1)
    until: Until | None = None


Phase = Ask | Repeat


class Limits(Frozen):
    """What a mindstorm may spend. At a limit the rule is applied to what was said, and the verdict says so.

    Attributes:
        seconds: Wall-clock seconds for the whole mindstorm.
        calls: Calls of models.
        tokens: Tokens read and written, by an upper estimate before each turn and the count after it.
        quorum: Fewer replies in a phase end the mindstorm; a phase that asks fewer wants all of them.
        on_error: A member that fails abstains, or the mindstorm stops with an error that names it.
    """

    seconds: PositiveFloat | None = None
    calls: PositiveInt | None = None
    tokens: PositiveInt | None = None
    quorum: NonNegativeInt = 1
    on_error: OnError = "abstain"

    def narrowed(
        self, *, seconds: float | None = None, calls: int | None = None, tokens: int | None = None
    ) -> Limits:
        """These limits, each no wider than what is given; None leaves a limit as it is."""
        pairs = {
            "seconds": (self.seconds, seconds),
            "calls": (self.calls, calls),
            "tokens": (self.tokens, tokens),
        }
        known = {name: [n for n in pair if n is not None] for name, pair in pairs.items()}
        return self.model_copy(update={name: min(few) for name, few in known.items() if few})
