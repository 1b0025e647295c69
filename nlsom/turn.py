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
    """Messages in the order they were said, shared by all members who hear the same.

    Whatever is derived from it (its digest, the head of a prompt) is computed once, not once a member.

    Attributes:
        messages: What was said, in order.
        content: How much of each message is heard: its words, or only the answer they come down to.
        digest: SHA-256 (hex) of content and messages.
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
        """Returns what `make` returned the first time it was asked for under `key`."""
        try:
            return self._derived[key]
        except KeyError:
            value = self._derived[key] = make()
            return value


SILENCE = Transcript()


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """All that a member may see when it is asked to speak. A value: equal keys, equal turns.

    Attributes:
        task: What the society works on.
        ask: What this member is asked now, rendered from the phase's prompt.
        form: The shape the answer is wanted in.
        heard: What the member hears, shared with all who hear the same.
        own: The member's own words, where `heard` does not hold them.
        member: Who is asked.
        phase: Name of the phase.
        round: From 1, how many times that phase has run.
        seed: For sampling; depends on the run's seed, the member's name, phase and round only.
        key: SHA-256 (hex) of all of the above; names this turn in the trace.
        media: Where the bytes of pictures are found.
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
