"""Phases: the program of a mindstorm, as a society's file writes it down."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from nlsom.form import Form
from nlsom.message import Frozen
from nlsom.turn import Content

Positive = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(gt=0, le=1)]
Seconds = Annotated[float, Field(gt=0)]
OnError = Literal["abstain", "raise"]
FormName = Literal["text", "answer", "choice", "yes_no", "number", "ranking", "scores"]


class Hears(Frozen):
    """What the members asked in a phase hear of what the structure lets reach them.

    Attributes:
        label: Only messages with one of these labels; None hears all labels.
        scope: `all` that was said, the `latest` message of each sender and label, or `none`.
        content: The words (`reasons`), or only the answers they come down to (`answers`).
    """

    label: tuple[str, ...] | None = None
    scope: Literal["none", "latest", "all"] = "all"
    content: Content = "reasons"

    @model_validator(mode="before")
    @classmethod
    def _one_label(cls, value: object) -> object:
        if isinstance(value, dict) and isinstance(value.get("label"), str):  # pyright: ignore[reportUnknownMemberType]
            return {**value, "label": (value["label"],)}  # pyright: ignore[reportUnknownVariableType]
        return value  # pyright: ignore[reportUnknownVariableType]


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
        order: All `together`; `in_turn`, each hearing who spoke before it in this round; `random`, in turn in
            an order drawn from the seed; `confidence`, in turn, the surest of the last round first.
        wait: For `all`; for so many replies; or until the rest cannot change the winner (`certain`).
        quorum: Fewer replies end the mindstorm; None takes the society's.
        seconds: Who has not answered by then abstains.
        on_error: What a member's failure means; None takes the society's.
        structure: Another structure for this phase; None takes the society's.
    """

    model_config = ConfigDict(populate_by_name=True)

    ask: str
    prompt: str | Inline
    label: str = Field(alias="as", default="said")
    name: str = ""
    hears: Hears = Hears()
    form: FormName | Form = "text"
    order: Literal["together", "in_turn", "random", "confidence"] = "together"
    wait: Literal["all", "certain"] | Positive = "all"
    quorum: Annotated[int, Field(ge=0)] | None = None
    seconds: Seconds | None = None
    on_error: OnError | None = None


class Until(Frozen):
    """When a `repeat` ends before its count; any condition that is given and true ends it.

    Attributes:
        agreement: The most frequent answer's share of those who answered, at least.
        over: Label of the answers that `agreement` and `unchanged` look at.
        unchanged: Nobody changed their answer since the round before.
        confident: The last message of `of` is at least this sure.
        of: Whose confidence counts.
    """

    agreement: Share | None = None
    over: str = "answer"
    unchanged: bool = False
    confident: Share | None = None
    of: str | None = None

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.confident is not None and self.of is None:
            raise ValueError("`confident` needs `of`: whose confidence counts")
        if self.agreement is None and not self.unchanged and self.confident is None:
            raise ValueError("give agreement, unchanged or confident")
        return self


class Repeat(Frozen):
    """Phases that run again and again: the rounds of a mindstorm."""

    repeat: Annotated[int, Field(ge=0)]
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

    seconds: Seconds | None = None
    calls: Positive | None = None
    tokens: Positive | None = None
    quorum: Annotated[int, Field(ge=0)] = 1
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
