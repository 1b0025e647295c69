"""Reading back what a trace holds."""

from __future__ import annotations

from typing import TypeVar

from pydantic import BaseModel, ValidationError

from nlsom.errors import TraceError

T = TypeVar("T", bound=BaseModel)


def read_stored(kind: type[T], body: str | bytes) -> T:
    """Reads a value stored as JSON.

    Raises:
        TraceError: It is damaged: something else than nlsom has written into the trace.
    """
    try:
        return kind.model_validate_json(body)
    except ValidationError:
        raise damaged(f"a {kind.__name__}") from None


def read_words(body: bytes) -> str:
    """Reads what was stored as plain text, such as a cause.

    Raises:
        TraceError: It is damaged.
    """
    try:
        return body.decode()
    except UnicodeDecodeError:
        raise damaged("a text") from None


def damaged(what: str) -> TraceError:
    """The error for something in a trace that nlsom cannot have written."""
    return TraceError(
        f"the trace holds {what} that cannot be read; `nlsom traces verify FILE` says which mindstorms are "
        "damaged"
    )
