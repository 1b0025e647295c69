"""Bodies of the OpenAI-compatible requests. Parameters that a society cannot honour are refused."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    StringConstraints,
    model_validator,
)

from nlsom.phase import Limits
from nlsom_serve.app.errors import Refused

Seed = Annotated[int, Field(ge=-(2**63), lt=2**63)]


def _distinct(choices: list[str]) -> list[str]:
    if len(set(choices)) != len(choices):
        raise ValueError("two choices are the same")
    return choices


Choices = Annotated[
    list[Annotated[str, StringConstraints(min_length=1)]],
    AfterValidator(_distinct),
    Field(json_schema_extra={"uniqueItems": True}),
]
"""The options of a multiple choice."""


class Strict(BaseModel):
    """A request body: unknown fields are errors, and types are not coerced."""

    model_config = ConfigDict(extra="forbid", strict=True)


class TextPart(Strict):
    """A text part of a message."""

    type: Literal["text"]
    text: str


class ImageUrl(Strict):
    """The URL of a picture.

    Attributes:
        url: A `data:` URL, or an http(s) URL if the server allows it.
        detail: Ignored: the members' models decide.
    """

    url: str
    detail: Literal["auto", "low", "high"] | None = None


class ImagePart(Strict):
    """A picture in a message."""

    type: Literal["image_url"]
    image_url: ImageUrl


Part = Annotated[TextPart | ImagePart, Field(discriminator="type")]


class ChatMessage(BaseModel):
    """A message of the chat. The last one is the question; earlier ones are the members' context."""

    model_config = ConfigDict(strict=True)

    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[Part] | None = None
    name: str | None = None


class JsonSchema(BaseModel):
    """The schema of a structured answer."""

    model_config = ConfigDict(populate_by_name=True)

    name: str = "answer"
    json_schema: dict[str, JsonValue] = Field(alias="schema")
    description: str | None = None
    strict: bool | None = None


class AsText(Strict):
    """The answer as plain text."""

    type: Literal["text"]


class AsObject(Strict):
    """The answer as `{"answer": …}`."""

    type: Literal["json_object"]


class AsSchema(Strict):
    """The answer as JSON that satisfies a schema."""

    type: Literal["json_schema"]
    json_schema: JsonSchema


class StreamOptions(Strict):
    """Options of a stream."""

    include_usage: bool | None = None
    include_obfuscation: bool | None = None


class AskedLimits(Strict):
    """Limits on what the mindstorm may spend; those of society and server apply as well.

    Attributes:
        seconds: Wall-clock seconds.
        calls: Model calls.
        tokens: Tokens read and written.
    """

    seconds: Annotated[float, Field(gt=0, le=86_400)] | None = None
    calls: Annotated[int, Field(ge=1, lt=2**53)] | None = None
    tokens: Annotated[int, Field(ge=1, lt=2**53)] | None = None

    def within(self, limits: Limits) -> Limits:
        """A society's limits, lowered to these."""
        return limits.narrowed(seconds=self.seconds, calls=self.calls, tokens=self.tokens)


class Extension(Strict):
    """Parameters beyond the OpenAI API.

    Attributes:
        limits: What the mindstorm may spend.
        choices: The options of a multiple choice, instead of those found in the question.
    """

    limits: AskedLimits = AskedLimits()
    choices: Choices = []


class ChatRequest(Strict):
    """A request for a chat completion."""

    REFUSED: ClassVar[dict[str, str]] = {
        **dict.fromkeys(
            ("tools", "tool_choice", "functions", "function_call"), "members call tools, clients do not"
        ),
        "logprobs": "a verdict is counted, not sampled; `nlsom.tally` says how",
        "top_logprobs": "a verdict is counted, not sampled; `nlsom.tally` says how",
        "logit_bias": "a verdict is counted, not sampled",
        "audio": "a society answers in text",
        "web_search_options": "a society does not search the web",
    }

    model: Annotated[str, StringConstraints(max_length=200)]
    messages: Annotated[list[ChatMessage], Field(min_length=1)]
    seed: Seed | None = None
    n: Annotated[int, Field(ge=1, le=128)] | None = None
    max_tokens: Annotated[int, Field(ge=1, lt=2**31)] | None = None
    max_completion_tokens: Annotated[int, Field(ge=1, lt=2**31)] | None = None
    stop: str | Annotated[list[str], Field(max_length=16)] | None = None
    response_format: Annotated[AsText | AsObject | AsSchema, Field(discriminator="type")] | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    nlsom: Extension = Extension()

    # Ignored: the society's file sets how members sample.
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1)] | None = None
    top_k: int | None = None
    min_p: float | None = None
    presence_penalty: Annotated[float, Field(ge=-2, le=2)] | None = None
    frequency_penalty: Annotated[float, Field(ge=-2, le=2)] | None = None
    repetition_penalty: float | None = None
    skip_special_tokens: bool | None = None
    chat_template_kwargs: dict[str, JsonValue] | None = None
    mm_processor_kwargs: dict[str, JsonValue] | None = None
    media_io_kwargs: dict[str, JsonValue] | None = None
    reasoning_effort: str | None = None
    verbosity: str | None = None
    # Ignored: without meaning here.
    user: str | None = None
    metadata: dict[str, JsonValue] | None = None
    store: bool | None = None
    service_tier: str | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    prompt_cache_retention: str | None = None
    parallel_tool_calls: bool | None = None
    modalities: list[Literal["text"]] | None = None
    prediction: dict[str, JsonValue] | None = None

    # Refused, unless they have no effect.
    tools: JsonValue = None
    tool_choice: JsonValue = None
    functions: JsonValue = None
    function_call: JsonValue = None
    logprobs: JsonValue = None
    top_logprobs: JsonValue = None
    logit_bias: JsonValue = None
    audio: JsonValue = None
    web_search_options: JsonValue = None

    @model_validator(mode="after")
    def _refuse(self) -> Self:
        for name, why in self.REFUSED.items():
            value: Any = getattr(self, name)
            if value not in (None, False, [], {}, "none", "auto", 0):
                raise Refused(name, why)
        return self

    @property
    def most_tokens(self) -> int | None:
        """Longest content in tokens; None for no limit."""
        return self.max_completion_tokens or self.max_tokens

    @property
    def stops(self) -> list[str]:
        """Texts at which the content is cut."""
        given = [self.stop] if isinstance(self.stop, str) else self.stop or []
        return [stop for stop in given if stop]
