"""Response bodies, as the OpenAPI document describes them."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, JsonValue

from nlsom_serve.app.errors import ErrorBody
from nlsom_serve.app.run import State

_DESCRIPTIONS = {
    400: "The request is invalid.",
    401: "The API key is missing or wrong.",
    403: "The Host header does not name this server.",
    404: "Not found.",
    408: "The body was not received in time.",
    409: "The turn is closed.",
    413: "The body is too large.",
    415: "The body is not JSON.",
    431: "The headers are too large.",
    429: "The server is busy, or the key's tokens are spent; `Retry-After` says when to try again.",
    500: "Internal error.",
    502: "A member or a model failed, and by the society's file this stops the mindstorm.",
    503: "Temporarily unavailable; `Retry-After` says when to try again.",
}


def failures(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The error responses of a route, for FastAPI's `responses`; 403 and 431 are always among them."""
    return {
        status: {"model": ErrorBody, "description": _DESCRIPTIONS[status]}
        for status in sorted({403, 431, *statuses})
    }


class ModelCard(BaseModel):
    """A society, as a model of the OpenAI API."""

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
        content: The verdict; null if there is none.
        refusal: Why there is no verdict.
        reasoning_content: Who said what, round by round.
    """

    role: Literal["assistant"] = "assistant"
    content: str | None
    refusal: str | None
    reasoning_content: str


class ChatChoice(BaseModel):
    """One answer, from a mindstorm of its own."""

    index: int
    message: AssistantMessage
    finish_reason: Literal["stop", "length"]
    logprobs: None = None


class CachedTokens(BaseModel):
    """Prompt tokens found in a prefix cache."""

    cached_tokens: int


class ChatUsage(BaseModel):
    """Tokens over all members."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: CachedTokens | None = None


class ChatCompletion(BaseModel):
    """A chat completion; with `stream`, chunks are sent as server-sent events instead."""

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
        images: Number of pictures.
        seed: The run's seed.
        started: Start time in seconds since 1970 (UTC); null until it starts.
        answer: The verdict's answer.
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
    """A mindstorm with everything that was said.

    Attributes:
        messages: What was said, in the order of the trace.
        waiting: Turns that wait for a person.
        verdict: Its verdict; null if there is none.
    """

    messages: list[dict[str, JsonValue]]
    waiting: list[OpenTurnCard]
    verdict: dict[str, JsonValue] | None


class MindstormList(BaseModel):
    """Mindstorms, newest first; `more` says whether there are older ones."""

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
    """A member; `hears` names the other members it hears, null means everyone."""

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
    """The state of the server."""

    status: Literal["ok", "ready"]


class Taken(BaseModel):
    """A person's answer was accepted."""

    key: str
    taken: Literal[True] = True
