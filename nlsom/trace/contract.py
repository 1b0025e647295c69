"""The contract of a trace.

Resuming after a crash, replaying without a model, asking "what if member 7 had been absent", and caching
calls of models are the same thing: a program runs again, and asks only for turns that have no outcome yet.
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
"""Seconds for which records that nobody waits for are gathered before they are written.

By then the event loop has made the next turns and waits for members. A thread that works beside a busy loop
would compete with it for the interpreter's lock.
"""

OUTCOMES: frozenset[Kind] = frozenset({"replied", "abstained", "cancelled"})


class Header(Frozen):
    """What a mindstorm is about; written once, before its first record.

    Attributes:
        mindstorm: Its id, made from society, task, seed and limits: the same question to the same society is
            the same mindstorm.
        society: Name of the society.
        digest: SHA-256 (hex) of the society's program.
        members: Names and roles, in declaration order.
        kind: Kind of the task.
        task: The task, as JSON.
        seed: The run's seed.
        started: When it first began, in seconds since 1970 (UTC); not part of any key.
        frozen: What was read once and is used throughout, such as reputations, with its digest.
        built: What is needed to build the society again (JSON of `nlsom.counterfactual.Built`); "" if it was
            made in Python. Mindstorms of one society share it, so a store keeps it once.
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
        mindstorm: Id of the mindstorm it belongs to.
        kind: What it records. `intent`: a member whose answer has effects in the world is about to be asked.
            `replied`, `abstained`, `cancelled`: the outcome of a turn. `reused`: the mindstorm took a reply
            that another had stored under the same key (a trace keeps the reply once, without a second body).
            `closed`: a phase ended early. `verdict`: the verdict.
        key: Key of the turn; "" for `closed` and `verdict`.
        member: Who was asked. For `closed`: the member whose own turn ended early, or "" for the phase.
        phase: Name of the phase.
        label: What the phase calls its messages.
        round: From 1.
        body: What was said (JSON), the cause of an abstention or the reason of a cancellation (text), the
            early end (JSON of `nlsom.journal.Closing`), or the verdict (JSON).
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
        outcomes: Outcomes of turns, by key.
        closed: Early ends, by phase, round and member ("" for the phase itself).
        decided: Whether there is a verdict.
        intents: Keys of turns with effects that were about to begin; those without an outcome may have run.
    """

    outcomes: dict[str, Record] = field(default_factory=dict[str, Record])
    closed: dict[tuple[str, int, str], Record] = field(default_factory=dict[tuple[str, int, str], Record])
    decided: bool = False
    intents: set[str] = field(default_factory=set[str])

    def add(self, record: Record) -> None:
        """Adds a record. An outcome replaces an earlier one, unless that is a reply."""
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
        """Begins a mindstorm, or resumes one, and returns what is known of it.

        Waits while another scheduler, in this process or another, is at work on it.

        Raises:
            TraceError: The trace cannot be read or written.
        """
        ...

    async def find(self, keys: Sequence[str]) -> dict[str, Record]:
        """Replies that any mindstorm of this trace has stored under these keys."""
        ...

    def append(self, record: Record) -> None:
        """Appends a record. Never waits; `durable` does.

        Raises:
            TraceError: The mindstorm is not open, or an earlier record could not be written.
        """
        ...

    async def durable(self) -> None:
        """Waits until all records so far would survive the end of this process.

        Raises:
            TraceError: They could not be written. What was durable before is still there.
        """
        ...

    def leave(self, mindstorm: str) -> None:
        """Ends the work on a mindstorm, so that others can open it; its records stay."""
        ...

    def mindstorms(self) -> AsyncIterator[Header]:
        """All mindstorms of this trace, in the order in which they began."""
        ...

    def records(self, mindstorm: str) -> AsyncIterator[Record]:
        """The records of a mindstorm in order; reused replies appear as `replied`, with their bodies."""
        ...

    async def close(self) -> None:
        """Makes all records durable, and closes the store."""
        ...


def message_of(record: Record) -> Message:
    """The message made from a stored reply.

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
    """A mindstorm as lines of JSON: its header, then one line per record."""
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
