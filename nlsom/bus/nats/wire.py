"""What travels: turns to workers, outcomes back. JSON, in which what many turns share stands once.

Messages, transcripts and tasks are blobs named by digest. A caller sends a worker each blob once, with the
first turn that needs it; a worker that does not hold one any more answers that it needs it.
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
"""Version of what travels. Caller and worker have to speak the same."""


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
    """A message as it came.

    Raises:
        ValueError: It is none of ours.
    """
    told = from_json(data)
    if not isinstance(told, dict) or "t" not in told:
        raise ValueError("no message of nlsom")
    return told  # pyright: ignore[reportUnknownVariableType]


def mismatch(worker: str, told: Mapping[str, Any], society: str) -> str | None:
    """Why caller and worker cannot work together, each by name; None if they can."""
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
    """An error as it travels: its class and its words."""
    return [type(error).__name__, whole(words_of(error))]


def raised(kind: str, words: str) -> NlsomError:
    """An error that an agent raised elsewhere, under the name it had there."""
    known = getattr(errors, kind, None)
    if isinstance(known, type) and issubclass(known, NlsomError) and known.__init__ is Exception.__init__:
        return known(words)
    return _named(kind)(words)


@cache
def _named(kind: str) -> type[AgentFailed]:
    # The verdict names causes by class and words; so it says the same wherever the agent ran.
    return type(kind, (AgentFailed,), {})
