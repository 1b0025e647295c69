"""A turn: all that a member may see when it is asked to speak."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar, overload

from nlsom.form import Form
from nlsom.media import MediaStore
from nlsom.member import Member
from nlsom.message import Message
from nlsom.task import Task

T = TypeVar("T")

Content = Literal["reasons", "answers", "tally"]


class Transcript(Sequence[Message]):
    """Messages in order; one object for all members who hear the same.

    Whatever is derived from it (its digest, the head of a prompt) is computed once, not once per member.

    Attributes:
        messages: What was said, in order.
        content: How much is heard: the words (`reasons`), only `answers`, or only how often each was given
            (`tally`).
        digest: SHA-256 (hex) of `content` and the messages.
    """

    __slots__ = ("_derived", "content", "digest", "messages")

    def __init__(self, messages: tuple[Message, ...] = (), content: Content = "reasons") -> None:
        self.messages = messages
        self.content: Content = content
        self.digest = hashlib.sha256((content + "".join(m.digest for m in messages)).encode()).hexdigest()
        self._derived: dict[Any, Any] = {}

    @overload
    def __getitem__(self, at: int) -> Message: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Message, ...]: ...
    def __getitem__(self, at: int | slice) -> Message | tuple[Message, ...]:
        return self.messages[at]

    def __len__(self) -> int:
        return len(self.messages)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Transcript) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __iter__(self) -> Iterator[Message]:
        return iter(self.messages)

    def once(self, key: Any, make: Callable[[], T]) -> T:
        """Returns the value cached under `key`; the first time, `make` makes it."""
        try:
            return self._derived[key]
        except KeyError:
            value = self._derived[key] = make()
            return value


SILENCE = Transcript()


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """All that a member may see when it is asked to speak. Turns with equal keys are equal.

    Attributes:
        task: What the society works on.
        ask: What this member is asked: the phase's prompt, rendered.
        form: The form of the answer.
        heard: What the member hears.
        own: The member's own messages, if `heard` does not contain them.
        member: Who is asked.
        phase: Name of the phase.
        round: How many times that phase has run, from 1.
        seed: For sampling; depends on the run's seed, the member's name, the phase and the round only.
        key: SHA-256 (hex) of all of the above; identifies the turn in the trace.
        media: Where the bytes of pictures are.
    """

    task: Task
    ask: str
    form: Form
    heard: Transcript = SILENCE
    own: tuple[Message, ...] = ()
    member: Member
    phase: str
    round: int
    seed: int
    key: str
    media: MediaStore = field(repr=False, compare=False)
