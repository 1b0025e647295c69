"""From a chat to a question, and from a verdict to content. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from nlsom_serve.app.choices import Asked, read_choices
from nlsom_serve.app.errors import bad
from nlsom_serve.app.shapes import AsObject, AsSchema, AsText, ChatMessage, ImagePart

BYTES_A_TOKEN = 4
"""No tokenizer is common to all members: a token of `max_tokens` is four bytes of UTF-8."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """A chat taken apart.

    Attributes:
        asked: The question and its options.
        context: What was said before, in plain words.
        pictures: URLs of all pictures, in the order they were sent.
    """

    asked: Asked
    context: str
    pictures: tuple[str, ...]


def read_chat(messages: Sequence[ChatMessage]) -> Conversation:
    """Takes a chat apart: the last message of the user is the question, what stands before it is context.

    Raises:
        ApiError: 400: it does not end with a message of the user.
    """
    *before, last = messages
    if last.role != "user":
        told = "the last message has to be the user's: it is what the society is asked"
        raise bad(told, param=f"messages.{len(before)}.role")
    pictures = [
        part.image_url.url
        for message in messages
        if isinstance(message.content, list)
        for part in message.content
        if isinstance(part, ImagePart)
    ]
    told = [f"{message.role}: {words}" for message in before if (words := _words(message).strip())]
    return Conversation(read_choices(_words(last)), "\n".join(told), tuple(pictures))


def _words(message: ChatMessage) -> str:
    if isinstance(message.content, str) or message.content is None:
        return message.content or ""
    return "\n".join(part.text for part in message.content if part.type == "text")


def shorten(content: str, *, stops: Sequence[str], most_tokens: int | None) -> tuple[str, str]:
    """The content up to a stop or the bound, and why it ends: `stop` or `length`."""
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
    """The content in the shape that was asked for; one by schema is JSON already."""
    return json.dumps({"answer": content}, ensure_ascii=False) if isinstance(shape, AsObject) else content
