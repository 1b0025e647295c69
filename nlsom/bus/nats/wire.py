"""The wire format: JSON messages in which what several turns share is written only once.

Messages, transcripts and tasks are blobs named by digest. A caller sends each blob to a worker once, with the
first turn that refers to it; a worker that no longer holds a blob asks for it again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from pydantic_core import from_json

from nlsom import errors
from nlsom.errors import AgentFailed, NlsomError, words_of
from nlsom.message import File, Image, Message, whole
from nlsom.trace.contract import SCHEMA
from nlsom.turn import Turn

WIRE = 1
"""Version of the wire format; caller and worker need the same."""


def files_of(turn: Turn) -> Sequence[Image | File]:
    """The pictures and files that a turn refers to."""
    heard = turn.heard.once("files", lambda: _files(turn.heard.messages)) if turn.heard.messages else ()
    if not heard and not turn.own:
        return turn.task.images
    return [*turn.task.images, *heard, *_files(turn.own)]


def _files(messages: Sequence[Message]) -> list[Image | File]:
    parts = (part for message in messages for part in message.said.parts)
    return [part for part in parts if isinstance(part, Image | File)]


def read(data: bytes) -> dict[str, Any]:
    """Reads a message.

    Raises:
        ValueError: It is not a message of nlsom.
    """
    told = from_json(data)
    if not isinstance(told, dict) or "t" not in told:
        raise ValueError("no message of nlsom")
    return told  # pyright: ignore[reportUnknownVariableType]


def mismatch(worker: str, told: Mapping[str, Any], society: str) -> str | None:
    """Why caller and worker cannot work together; None if they can."""
    if told["wire"] != WIRE or told["schema"] != SCHEMA:
        return (
            f"worker {worker!r} and this process run different versions of nlsom (wire {told['wire']} and "
            f"{WIRE}, schema {told['schema']} and {SCHEMA}); install the same on both"
        )
    if told["society"] != society:
        return (
            f"worker {worker!r} hosts another society of this name (members {str(told['society'])[:12]} and "
            f"{society[:12]}); start both with the same file, --model and --set"
        )
    return None


def failure(error: BaseException) -> list[str]:
    """An error on the wire: its class and its message."""
    return [type(error).__name__, whole(words_of(error))]


def raised(kind: str, words: str) -> NlsomError:
    """An error that an agent raised elsewhere: of the same class if it is nlsom's, else of the same name."""
    known = getattr(errors, kind, None)
    if isinstance(known, type) and issubclass(known, NlsomError) and known.__init__ is Exception.__init__:
        return known(words)
    return _named(kind)(words)


@cache
def _named(kind: str) -> type[AgentFailed]:
    # Verdicts name the cause of an abstention by class and message, wherever the agent ran.
    return type(kind, (AgentFailed,), {})
