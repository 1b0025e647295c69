"""Reading back what a trace holds."""

from __future__ import annotations

from typing import TypeVar

from pydantic import BaseModel, ValidationError

from nlsom.errors import TraceError

T = TypeVar("T", bound=BaseModel)


def read_stored(kind: type[T], body: str | bytes) -> T:
    """What was stored as JSON.

    Raises:
        TraceError: It is none any more: somebody else wrote into the trace.
    """
    try:
        return kind.model_validate_json(body)
    except ValidationError:
        raise TraceError(
            f"the trace holds a {kind.__name__} that cannot be read; `nlsom traces verify FILE` says which "
            "mindstorms are damaged"
        ) from None
