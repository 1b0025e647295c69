"""Phases: what happens in a mindstorm, as a society's file declares it."""

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
BALLOT_FORMS = ("choice", "approval", "ranking", "scores")
"""Forms over options: the task's choices, the different answers so far, or proposals."""


def _short_form(value: object) -> object:
    """Reads the way files write a form with parameters, `{text: {max_tokens: 40}}`."""
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
    """What members hear in a phase, out of the messages that the structure lets reach them.

    Attributes:
        label: Only messages with one of these labels; None for all.
        scope: `all` messages, the `latest` of each sender and label, or `none`.
        content: The full words (`reasons`), only the answers in them (`answers`), or only how often each
            answer was given (`tally`).
    """

    label: Labels | None = None
    scope: Literal["none", "latest", "all"] = "all"
    content: Content = "reasons"


class Inline(Frozen):
    """A prompt written into the society's file instead of a file of its own.

    Attributes:
        text: The prompt, in Jinja; `nlsom.template.VARIABLES` are the names it may use.
    """

    text: str


class Ask(Frozen):
    """A phase in which some members are asked to speak.

    Attributes:
        ask: Who is asked: a member, a group of members made by `count`, a role, or `everyone`.
        prompt: Name of a prompt file, or `{text: …}`.
        label: What the phase calls its messages (`as` in a file).
        name: Name of the phase; by default its label, with a number if an earlier phase has that name.
        hears: What these members hear.
        form: The form of the answer, or its name; `answer` is the task's own form.
        over: For a choice, approval, ranking or scores: the label of the proposals to vote on. A proposal is
            called by the name of the member who made it.
        order: `together`; `in_turn`, each hearing those who spoke before it in this round; `random`, in turn
            in an order drawn from the seed; or `confidence`, in turn, the most confident of the last round
            first.
        wait: What ends the phase: `all` replies, a number of replies, or replies enough that the rest cannot
            change the winner (`certain`).
        quorum: With fewer replies the mindstorm ends; None for the society's `limits`.
        seconds: Time to answer, after which a member abstains; if members speak in turn, for each of them.
        on_error: What happens when a member fails; None for the society's `limits`.
        structure: Whose messages may reach whom in this phase; None for the society's structure.
    """

    # Hints for keys that belong elsewhere; `nlsom.options` adds them to its faults.
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
        if self.over is not None and self.form not in BALLOT_FORMS:
            raise ValueError(f"`over` needs a form that chooses: {', '.join(BALLOT_FORMS)}")
        return self


class Until(Frozen):
    """When a `repeat` ends before its count: after a round in which one of the given conditions holds.

    Attributes:
        agreement: The most frequent answer has at least this share of all answers (above 0, up to 1).
        over: Label of the answers that `agreement` and `unchanged` compare.
        unchanged: Nobody changed their answer since the round before.
        confident: The last message of everyone in `of` has at least this confidence (above 0, up to 1).
        says: The last message of a member in `of` has this as its answer or its last line; case and
            punctuation are ignored.
        of: The members meant by `confident` and `says`: a member, a group, a role, or `everyone`.
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
    """Phases that are repeated: the rounds of a mindstorm.

    Attributes:
        repeat: Most rounds, up to 10,000.
        phases: The phases of a round.
        until: When to end before that; None to run all rounds.
    """

    repeat: Annotated[int, Field(ge=0, le=10_000)]
    phases: tuple[Ask, ...] = Field(min_length=1)
    until: Until | None = None


Phase = Ask | Repeat


class Limits(Frozen):
    """What a mindstorm may spend. At a limit, the rule decides on what was said so far; the verdict says so.

    Attributes:
        seconds: Wall-clock seconds for the whole mindstorm; None for no limit.
        calls: Calls of models; None for no limit.
        tokens: Tokens read and written; None for no limit. An upper estimate is reserved before each turn,
            and replaced by the actual count after it.
        quorum: With fewer replies in a phase the mindstorm ends; a phase that asks fewer members needs all.
        on_error: When a member fails, it abstains, or the mindstorm stops with an error that names it
            (`raise`).
    """

    seconds: PositiveFloat | None = None
    calls: PositiveInt | None = None
    tokens: PositiveInt | None = None
    quorum: NonNegativeInt = 1
    on_error: OnError = "abstain"

    def narrowed(
        self, *, seconds: float | None = None, calls: int | None = None, tokens: int | None = None
    ) -> Limits:
        """These limits, each lowered to what is given; None leaves a limit as it is."""
        pairs = {
            "seconds": (self.seconds, seconds),
            "calls": (self.calls, calls),
            "tokens": (self.tokens, tokens),
        }
        known = {name: [n for n in pair if n is not None] for name, pair in pairs.items()}
        return self.model_copy(update={name: min(few) for name, few in known.items() if few})
