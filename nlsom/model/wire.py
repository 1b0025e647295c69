"""The bodies of requests to OpenAI-compatible servers and of their answers. No I/O."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

from pydantic import JsonValue

from nlsom.errors import ModelError, PromptTooLong
from nlsom.form import Constraint, Form
from nlsom.message import Usage
from nlsom.model.contract import Completion, Settings

Constraints = Literal["vllm", "json_schema", "none"]
"""How a server is told of a form: by vLLM's `structured_outputs`, by `response_format` with a JSON Schema
(for JSON forms only), or not at all."""


_MAX_NUMBER = 1e12  # numbers of tokens and logarithms of probabilities beyond it are nonsense


class MalformedError(Exception):
    """A body that is not an answer of the OpenAI API; the message says what is wrong with it."""


def chat_body(
    model: str,
    text: str,
    pictures: Sequence[str],
    *,
    constraint: Constraint | None,
    max_tokens: int,
    settings: Settings,
    seed: int,
    constraints: Constraints,
    extra: Mapping[str, JsonValue] | None = None,
) -> bytes:
    """The body of a chat completion: one user message, pictures first.

    Args:
        model: Name of the model at the server.
        text: Head and tail of the prompt.
        pictures: Parts as JSON, from `picture_part`.
        constraint: What the reply has to keep to.
        max_tokens: Longest reply, in tokens.
        settings: How to sample.
        seed: For sampling.
        constraints: How the server is told of the constraint.
        extra: Further fields; they replace those of the same name, and None removes one.
    """
    fields: dict[str, Any] = {
        "model": model,
        "max_tokens": max_tokens,
        "temperature": settings.temperature,
        "top_p": settings.top_p,
        "seed": seed,
    }
    if settings.stop:
        fields["stop"] = settings.stop
    if constraint is not None:
        fields |= _constrain(constraint, constraints)
    if extra:
        fields = {name: value for name, value in {**fields, **extra}.items() if value is not None}
    said = json.dumps(text, ensure_ascii=False)
    if pictures:
        said = f'[{",".join(pictures)},{{"type":"text","text":{said}}}]'
    body = f'{{"messages":[{{"role":"user","content":{said}}}],{json.dumps(fields)[1:]}'
    return body.encode("utf-8", "replace")  # a lone surrogate, which no server takes, becomes "?"


def picture_part(data_url: str) -> str:
    """A picture as a part of a message, as JSON. A data URL has no characters that JSON escapes."""
    return f'{{"type":"image_url","image_url":{{"url":"{data_url}"}}}}'


def reply_tokens(form: Form, settings: Settings, room: int) -> int:
    """Longest reply in tokens: by the settings or else the form, plus room to think."""
    return (settings.max_tokens or form.max_tokens) + room


def read_completion(body: bytes, constraint: Constraint | None, seconds: float) -> tuple[Completion, bool]:
    """Reads a chat completion.

    Args:
        body: The body of the response.
        constraint: What the server was asked to keep to.
        seconds: How long it took.

    Returns:
        The completion, and whether it was cut off for its length.

    Raises:
        MalformedError: It is not such an answer.
    """
    fields = object_in(body)
    choices = fields.get("choices")
    if not isinstance(choices, list) or not choices:
        # Gateways tell an error of the server behind them in a 200.
        raise MalformedError(error_text(body) if fields.get("error") else "it has no `choices`")
    choice = _mapping(cast("list[Any]", choices)[0], "`choices[0]`")
    message = _mapping(choice.get("message"), "`choices[0].message`")
    content = message.get("content")
    if content is not None and not isinstance(content, str):
        raise MalformedError("`choices[0].message.content` is not a text")
    refusal = message.get("refusal")  # in the model's words, in place of the content
    text = without_thinking(content or (refusal if isinstance(refusal, str) else ""))
    logprob = None
    if constraint is not None and constraint.choice is not None and text in constraint.choice:
        logprob = _logprob(choice.get("logprobs"))
    completion = Completion(text=text, logprob=logprob, usage=_usage(fields.get("usage"), seconds))
    return completion, choice.get("finish_reason") == "length"


def without_thinking(text: str) -> str:
    """A reply without the model's thinking; "" if it never stopped thinking.

    Some chat templates write the opening tag themselves, so a closing tag alone counts too.
    """
    _, closed, after = text.rpartition("</think>")
    if closed:
        text = after
    return text.partition("<think>")[0].strip()


def read_token_count(body: bytes) -> int:
    """Reads the answer of vLLM's `POST /tokenize`.

    Raises:
        MalformedError: It is not such an answer.
    """
    count = _count(object_in(body).get("count"))
    if count is None:
        raise MalformedError("it has no `count`")
    return count


def constrains(constraint: Constraint, constraints: Constraints) -> bool:
    """Whether servers that are told of forms in this way can be told of this constraint."""
    return constraints == "vllm" or (constraints == "json_schema" and constraint.schema is not None)


def keeps_to(constraint: Constraint, text: str) -> bool:
    """Whether a reply keeps to its constraint; schemas and grammars are not checked."""
    if constraint.choice is not None:
        return text in constraint.choice
    if constraint.regex is not None:
        return re.fullmatch(constraint.regex, text) is not None
    if constraint.grammar is not None:
        return True
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def error_text(body: bytes) -> str:
    """The message in a server's error, on one line of at most 300 characters."""
    try:
        told: Any = json.loads(body)
    except (ValueError, RecursionError):
        told = body[:2000].decode("utf-8", "replace")
    for name in ("error", "message", "detail"):
        if isinstance(told, dict):
            told = cast("dict[str, Any]", told).get(name, cast("dict[str, Any]", told))
    line = " ".join((told if isinstance(told, str) else json.dumps(told)).split())
    return line if len(line) <= 300 else line[:299] + "…"


# vLLM: "Input length (2610) exceeds model's maximum context length (2048)", "your prompt contains at least
# 2049 input tokens", "The decoder prompt (length 2610) is longer than the maximum model length of 2048";
# llama.cpp: "request (9412 tokens) exceeds the available context size (8192 tokens)".
_TOO_LONG = re.compile(
    r"context.(?:length|size|window)|maximum model length|(?:prompt|input) is too long", re.I
)
_LIMIT = re.compile(r"(?:context|model).(?:length|size|window)\D{0,12}(\d+)", re.I)
_ASKED = re.compile(r"(?:contains|has|request|resulted in|input length|prompt \(length)\D{0,12}(\d+)", re.I)


def refusal(
    body: bytes, *, status: int, where: str, model: str, prompt: str, reply: int, context: int | None
) -> ModelError:
    """The error for a request that a server refused.

    Args:
        body: The body of the response.
        status: Its status.
        where: Address of the server.
        model: Name of the model.
        prompt: The text that was sent; its tokens are estimated if the server does not count them.
        reply: Longest reply, in tokens.
        context: Context length in tokens, if known.
    """
    told = error_text(body)
    if _TOO_LONG.search(told):
        limit, tokens = _LIMIT.search(told), _ASKED.search(told)
        return PromptTooLong(
            tokens=int(tokens[1]) if tokens else len(prompt.encode("utf-8", "replace")) // 4,
            reply=reply,
            limit=int(limit[1]) if limit else context or 0,
            model=model,
        )
    return ModelError(f"{where} refused the request for {model} ({status}): {told}")


def _constrain(constraint: Constraint, constraints: Constraints) -> dict[str, Any]:
    if constraints == "vllm":
        if constraint.choice is not None:
            return {"structured_outputs": {"choice": constraint.choice}, "logprobs": True}
        if constraint.regex is not None:
            return {"structured_outputs": {"regex": constraint.regex}}
        if constraint.grammar is not None:
            return {"structured_outputs": {"grammar": constraint.grammar}}
        return {"structured_outputs": {"json": constraint.schema}}
    if constraints == "json_schema":
        if constraint.schema is not None:
            schema = {"name": "answer", "schema": constraint.schema}
            return {"response_format": {"type": "json_schema", "json_schema": schema}}
        if constraint.choice is not None:
            return {"logprobs": True}
    return {}


def _logprob(told: Any) -> float | None:
    if not isinstance(told, dict):
        return None
    tokens = cast("dict[str, Any]", told).get("content")
    if not isinstance(tokens, list) or not tokens:
        return None
    total = 0.0
    for token in cast("list[Any]", tokens):
        value = cast("dict[str, Any]", token).get("logprob") if isinstance(token, dict) else None
        if not isinstance(value, int | float) or abs(value) > _MAX_NUMBER:
            return None
        total += value
    return min(0.0, total) if math.isfinite(total) else None


def _usage(told: Any, seconds: float) -> Usage:
    usage = cast("dict[str, Any]", told) if isinstance(told, dict) else {}
    details = usage.get("prompt_tokens_details")
    cached = cast("dict[str, Any]", details).get("cached_tokens") if isinstance(details, dict) else None
    return Usage(
        calls=1,
        prompt_tokens=_count(usage.get("prompt_tokens")) or 0,
        cached_tokens=_count(cached),
        completion_tokens=_count(usage.get("completion_tokens")) or 0,
        seconds=seconds,
    )


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and 0 <= value <= _MAX_NUMBER else None


def object_in(body: bytes) -> dict[str, Any]:
    """Reads a body that is a JSON object.

    Raises:
        MalformedError: It is not one.
    """
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        raise MalformedError(f"it is not JSON: {body[:60]!r}") from None
    return _mapping(value, "it")


def _mapping(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise MalformedError(f"{what} is not an object")
    return cast("dict[str, Any]", value)
