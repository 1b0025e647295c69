"""Turns a chat into a question, and an answer into message content. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from nlsom_serve.app.choices import Asked, read_choices
from nlsom_serve.app.errors import bad
from nlsom_serve.app.shapes import AsObject, AsSchema, AsText, ChatMessage, ImagePart

BYTES_A_TOKEN = 4
"""Bytes of UTF-8 that count as one token of `max_tokens`: the members share no tokenizer."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """A parsed chat.

    Attributes:
        asked: The question and its options.
        context: The earlier messages, as plain text.
        pictures: URLs of all pictures, in order.
    """

    asked: Asked
    context: str
    pictures: tuple[str, ...]


def read_chat(messages: Sequence[ChatMessage]) -> Conversation:
    """Parses a chat: the last message is the question, the earlier ones are its context.

    Raises:
        ApiError: 400: the last message is not the user's.
    """
    *before, last = messages
    if last.role != "user":
        message = "the last message must have the role `user`: it is the question for the society"
        raise bad(message, param=f"messages.{len(before)}.role")
    pictures = [
        part.image_url.url
        for message in messages
        if isinstance(message.content, list)
        for part in message.content
        if isinstance(part, ImagePart)
    ]
    context = [f"{message.role}: {text}" for message in before if (text := _text(message).strip())]
    return Conversation(read_choices(_text(last)), "\n".join(context), tuple(pictures))


def _text(message: ChatMessage) -> str:
    if isinstance(message.content, str) or message.content is None:
        return message.content or ""
    return "\n".join(part.text for part in message.content if part.type == "text")


def shorten(content: str, *, stops: Sequence[str], most_tokens: int | None) -> tuple[str, str]:
    """Cuts content at the first stop text and at the length limit; also returns the `finish_reason`."""
    ends = [at for stop in stops if (at := content.find(stop)) >= 0]
    if ends:
        content = content[: min(ends)]
    if most_tokens is None:
        return content, "stop"
    encoded = content.encode("utf-8", "replace")
    if len(encoded) <= most_tokens * BYTES_A_TOKEN:
        return content, "stop"
    return encoded[: most_tokens * BYTES_A_TOKEN].decode("utf-8", "ignore"), "length"


def wrap(content: str, shape: AsText | AsObject | AsSchema | None) -> str:
    """Wraps content in an object for `json_object`; with a schema it is JSON already."""
    return json.dumps({"answer": content}, ensure_ascii=False) if isinstance(shape, AsObject) else content
