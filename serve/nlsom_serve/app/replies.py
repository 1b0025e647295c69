"""The bodies of answers, for the OpenAPI document."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, JsonValue

from nlsom_serve.app.errors import ErrorBody
from nlsom_serve.app.run import State

_WHAT = {
    400: "The request cannot be used as it is.",
    401: "No key, or a wrong one.",
    403: "The server is not called by that name.",
    404: "There is no such thing.",
    408: "The body did not come in time.",
    409: "It is too late for that.",
    413: "The body is too large.",
    415: "The body is not JSON.",
    431: "The headers are too large.",
    429: "The server is busy, or the key has spent its tokens; `Retry-After` says when to try again.",
    500: "A fault of the server.",
    502: "A member or a model failed, and the society's file says that this ends the mindstorm.",
    503: "Something is not there just now; `Retry-After` says when to try again.",
}


def failures(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The errors that a route may answer with."""
    always = (403, 431)
    return {
        status: {"model": ErrorBody, "description": _WHAT[status]} for status in sorted({*always, *statuses})
    }


class ModelCard(BaseModel):
    """A society, as OpenAI tells a model."""

    id: str
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: Literal["nlsom"] = "nlsom"


class ModelList(BaseModel):
    """All societies."""

    object: Literal["list"] = "list"
    data: list[ModelCard]


class AssistantMessage(BaseModel):
    """The answer.

    Attributes:
        content: The verdict; null where there is none.
        refusal: Why there is no verdict.
        reasoning_content: Who said what, round by round.
    """

    role: Literal["assistant"] = "assistant"
    content: str | None
    refusal: str | None
    reasoning_content: str


class ChatChoice(BaseModel):
    """One answer; each has a mindstorm of its own."""

    index: int
    message: AssistantMessage
    finish_reason: Literal["stop", "length"]
    logprobs: None = None


class CachedTokens(BaseModel):
    """Of the tokens read, those found in a prefix cache."""

    cached_tokens: int


class ChatUsage(BaseModel):
    """Tokens of all members."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: CachedTokens | None = None


class ChatCompletion(BaseModel):
    """A chat completion; with `stream`, its parts come as server-sent events instead."""

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: list[ChatChoice]
    usage: ChatUsage
    nlsom: dict[str, JsonValue] | list[dict[str, JsonValue]]


class OpenTurnCard(BaseModel):
    """A turn that waits for a person."""

    key: str
    member: str
    phase: str
    round: int
    ask: str
    form: str
    options: list[str]
    instruction: str
    deadline: float | None


class MindstormCard(BaseModel):
    """A mindstorm.

    Attributes:
        id: Its id.
        state: `queued`, `running`, `decided`, `stopped` or `cancelled`.
        society: Id of its society.
        question: What is asked.
        choices: The options of a multiple choice.
        images: How many pictures.
        seed: The run's seed.
        started: When it was begun, in seconds since 1970 (UTC); null until it is.
        answer: Of the verdict.
        reason: Why it ended without a verdict.
    """

    model_config = ConfigDict(extra="forbid")

    id: str
    state: State
    society: str
    question: str
    choices: list[str]
    images: int
    seed: int
    started: float | None = None
    answer: str | None = None
    reason: str | None = None


class MindstormDetail(MindstormCard):
    """A mindstorm with all that was said.

    Attributes:
        messages: What was said, in the order of the trace.
        waiting: Turns that wait for a person.
        verdict: Its verdict.
    """

    messages: list[dict[str, JsonValue]]
    waiting: list[OpenTurnCard]
    verdict: dict[str, JsonValue] | None


class MindstormList(BaseModel):
    """Mindstorms, those begun last first."""

    data: list[MindstormCard]
    more: bool


class SocietyCard(BaseModel):
    """A society."""

    id: str
    name: str
    about: str
    task: str
    members: int


class SocietyList(BaseModel):
    """All societies."""

    data: list[SocietyCard]


class MemberCard(BaseModel):
    """A member; `hears` names the others it hears, null is everyone."""

    name: str
    role: str
    agent: str
    persona: str
    hears: list[str] | None


class SocietyDetail(SocietyCard):
    """A society with its members and phases."""

    seats: list[MemberCard]
    phases: list[str]
    verdict: str


class Status(BaseModel):
    """Whether the server is there."""

    status: Literal["ok", "ready"]


class Taken(BaseModel):
    """An answer was taken."""

    key: str
    taken: Literal[True] = True
