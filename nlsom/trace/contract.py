"""The contract of a trace.

Resume after a crash, replay without a model, "what if member 7 had been absent" and a cache of model calls
are one thing: the same program runs again, and asks only for what has no outcome yet.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

from pydantic import JsonValue

from nlsom.message import Frozen, Message, Said, digest_of
from nlsom.trace.stored import damaged, read_stored, read_words

SCHEMA = 1
"""Version of keys and records; part of every key."""

Kind = Literal["intent", "replied", "abstained", "cancelled", "reused", "closed", "verdict"]

PAUSE = 0.004
"""Seconds for which what nobody waits for may gather before it is written.

By then the event loop has made the next turns and waits for members; a thread that works beside a busy loop
fights it for the interpreter's lock.
"""

OUTCOMES: frozenset[Kind] = frozenset({"replied", "abstained", "cancelled"})


class Header(Frozen):
    """What a mindstorm is: written once, before its first record.

    Attributes:
        mindstorm: Its id, made from society, task and seed: the same question to the same society with the
            same seed is the same mindstorm.
        society: Name of the society.
        digest: SHA-256 (hex) of the society.
        members: Names and roles, in declaration order.
        kind: Kind of the task.
        task: The task.
        seed: The run's seed.
        started: When it was first begun, in seconds since 1970 (UTC). In no key.
        frozen: What was read once and holds for the whole mindstorm, such as reputations, with its digest.
        built: What it takes to build the society again (JSON of `nlsom.counterfactual.Built`); "" where it
            was made in Python. Mindstorms of one society share it, so a store keeps it once.
    """

    mindstorm: str
    society: str
    digest: str
    members: tuple[tuple[str, str], ...]
    kind: str
    task: JsonValue
    seed: int
    started: float
    frozen: JsonValue = None
    built: str = ""


class Record(NamedTuple):
    """One entry of the log; a tuple, since one is made for every turn.

    Attributes:
        mindstorm: The mindstorm it belongs to.
        kind: `intent`: a member whose answer has effects in the world is about to be asked. `replied`,
            `abstained` (cause), `cancelled` (reason): the outcome of a turn. `reused`: this
            mindstorm took the reply that another stored under the same key; a trace keeps the reply once, so
            it drops the body, unless the other has been dropped meanwhile. `closed`: a phase ended early, and
            who counted. `verdict`: what it came to.
        key: Key of the turn; "" for `closed` and `verdict`.
        member: Who was asked; of a phase that was closed, where they are asked in turn, who was it.
        phase: Name of the phase.
        label: What the phase calls its messages.
        round: From 1.
        body: What was said (JSON), the cause or reason (text), who counted (JSON), the verdict (JSON).
    """

    mindstorm: str
    kind: Kind
    key: str = ""
    member: str = ""
    phase: str = ""
    label: str = ""
    round: int = 0
    body: bytes = b""


@dataclass(slots=True)
class History:
    """What a trace holds of one mindstorm when it is opened.

    Attributes:
        outcomes: By key.
        closed: By phase, round and, where members are asked in turn, who was asked: who counted.
        decided: Whether a verdict is among them.
        intents: Keys of turns with effects that were begun; those without an outcome may have run.
    """

    outcomes: dict[str, Record] = field(default_factory=dict[str, Record])
    closed: dict[tuple[str, int, str], Record] = field(default_factory=dict[tuple[str, int, str], Record])
    decided: bool = False
    intents: set[str] = field(default_factory=set[str])

    def add(self, record: Record) -> None:
        """Takes a record in; an outcome replaces one that is not a reply, and never a reply."""
        if record.kind in OUTCOMES:
            known = self.outcomes.get(record.key)
            if known is None or known.kind != "replied":
                self.outcomes[record.key] = record
        elif record.kind == "closed":
            self.closed[record.phase, record.round, record.member] = record
        elif record.kind == "verdict":
            self.decided = True
        elif record.kind == "intent":
            self.intents.add(record.key)


class Trace(Protocol):
    """An append-only log. One mindstorm is written by one scheduler at a time."""

    async def open(self, header: Header) -> History:
        """Begins a mindstorm, or takes up one that was begun before, and returns what is known of it.

        Waits while another scheduler is at work on it, in this process or in another, until that one leaves
        it.

        Raises:
            TraceError: The trace cannot be read or written.
        """
        ...

    async def find(self, keys: Sequence[str]) -> dict[str, Record]:
        """Replies stored under these keys by any mindstorm of this trace."""
        ...

    def append(self, record: Record) -> None:
        """Appends a record. Never waits; `durable` says when it is safe.

        Raises:
            TraceError: The mindstorm is not open, or an earlier record could not be written.
        """
        ...

    async def durable(self) -> None:
        """Waits until all that was appended so far survives the end of this process.

        Raises:
            TraceError: It could not be written. What was durable before is still there.
        """
        ...

    def leave(self, mindstorm: str) -> None:
        """Leaves a mindstorm that was opened to whoever opens it next; its records stay."""
        ...

    def mindstorms(self) -> AsyncIterator[Header]:
        """The mindstorms of this trace, in the order they were begun."""
        ...

    def records(self, mindstorm: str) -> AsyncIterator[Record]:
        """The records of a mindstorm, in the order they were appended; reused replies stand in full."""
        ...

    async def close(self) -> None:
        """Makes durable what was appended, and lets go of the store."""
        ...


def message_of(record: Record) -> Message:
    """The message that a stored reply became.

    Raises:
        TraceError: The reply cannot be read.
    """
    return Message(
        said=read_stored(Said, record.body),
        sender=record.member,
        label=record.label,
        phase=record.phase,
        round=record.round,
        digest=digest_of(record.key, record.body),
    )


def lines(header: Header, records: Iterable[Record]) -> Iterable[str]:
    """A mindstorm as JSON lines: its header, then a line a record."""
    yield header.model_dump_json()
    for record in records:
        text = read_words(record.body)
        try:
            body: object = text if record.kind in ("abstained", "cancelled") else json.loads(text or "null")
        except (ValueError, RecursionError):
            raise damaged(f"a record of kind {record.kind!r}") from None
        yield json.dumps(
            {
                "mindstorm": record.mindstorm,
                "kind": record.kind,
                "key": record.key,
                "member": record.member,
                "phase": record.phase,
                "label": record.label,
                "round": record.round,
                "body": body,
            },
            ensure_ascii=False,
        )
