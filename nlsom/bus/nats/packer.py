"""Packing: a caller's turns become messages of limited size; see `nlsom.bus.nats.wire`."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic_core import to_json

from nlsom.recent import Recent
from nlsom.task import Task
from nlsom.turn import Turn


@dataclass(frozen=True, slots=True)
class Row:
    """A turn to be sent.

    Attributes:
        number: The caller's number for it, which comes back with the outcome.
        turn: What is asked.
        to: The address.
        identity: The agent's identity as the caller knows it; None if it has not asked for it.
        left: Seconds until the deadline, at the time of sending; None without a deadline.
    """

    number: int
    turn: Turn
    to: str
    identity: str | None = None
    left: float | None = None


class Packer:
    """Packs turns for one worker into messages, and remembers which blobs it has been sent.

    Args:
        head: Fields that every message begins with.
        most: Largest message, in bytes.
    """

    def __init__(self, head: Mapping[str, Any], most: int) -> None:
        self._head = to_json(dict(head))[:-1]
        self._most = most
        self._sent = Recent[str, bool](60_000)
        self._tasks = Recent[int, tuple[Task, str]](64)

    def forget(self, digests: Sequence[str]) -> None:
        """Notes that the worker does not hold these blobs."""
        for digest in digests:
            self._sent.put(digest, False)

    def pack(self, rows: Sequence[Row]) -> tuple[list[Packed], list[tuple[Row, str]]]:
        """Packs turns into messages; also returns those that cannot be sent, with the reasons."""
        packed: list[Packed] = []
        refused: list[tuple[Row, str]] = []
        now = Packed()
        for row in rows:
            try:
                size = self._large(row)
                if size > self._most:
                    what = f"the turn takes {size} bytes, and NATS carries {self._most} here (max_payload)"
                    refused.append((row, what))
                    continue
                blobs = self._blobs(row.turn)
                told = self._row(row, now)
            except ValueError as error:  # Text that cannot be encoded, such as a lone surrogate.
                refused.append((row, f"the turn cannot be written as JSON: {error}"))
                continue
            new = {digest: blob for digest, blob in blobs.items() if digest not in now.blobs}
            size = len(told) + sum(map(len, new.values())) + 80 * len(new)
            if now.rows and now.size + size > self._most:
                packed.append(now)
                now = Packed()
                told = self._row(row, now)
                size = len(told) + sum(map(len, blobs.values())) + 80 * len(blobs)
                new = blobs
            now.blobs.update(new)
            now.rows.append(told)
            now.numbers.append(row.number)
            now.size += size
            for digest in new:
                self._sent.put(digest, True)
        if now.rows:
            packed.append(now)
        return packed, refused

    def encode(self, packed: Packed, pack: str | None = None) -> bytes:
        """Encodes a message; `pack` names the object with its blobs, if they are too large to go with it."""
        blobs = b"{}" if pack else packed.blobs_json()
        return b"".join(
            (
                self._head,
                b',"pack":',
                to_json(pack),
                b',"blobs":',
                blobs,
                b',"shared":[',
                b",".join(packed.shared),
                b'],"turns":[',
                b",".join(packed.rows),
                b"]}",
            )
        )

    def _blobs(self, turn: Turn) -> dict[str, bytes]:
        """The blobs that a turn refers to and the worker does not hold yet."""
        blobs: dict[str, bytes] = {}
        task = self._task(turn.task)
        if not self._sent.get(task):
            blobs[task] = b'["task",%b,%b]' % (to_json(turn.task.kind), turn.task.model_dump_json().encode())
        heard = turn.heard
        if heard.messages and not self._sent.get(heard.digest):
            for message in heard.messages:
                if not self._sent.get(message.digest):
                    blobs[message.digest] = b'["message",%b]' % message.model_dump_json().encode()
            digests = [message.digest for message in heard.messages]
            blobs[heard.digest] = b'["heard",%b,%b]' % (to_json(heard.content), to_json(digests))
        for message in turn.own:
            if not self._sent.get(message.digest):
                blobs[message.digest] = b'["message",%b]' % message.model_dump_json().encode()
        return blobs

    def _large(self, row: Row) -> int:
        """Bytes of a turn without its blobs; 0 if it is obviously small."""
        turn = row.turn
        if len(turn.ask) + len(turn.member.persona) + 70 * len(turn.own) < self._most // 16:
            return 0
        alone = Packed()
        return len(self._row(row, alone)) + alone.size

    def _task(self, task: Task) -> str:
        known = self._tasks.get(id(task))
        if known is None:
            told = f"{task.kind} {task.model_dump_json()}"
            known = task, hashlib.sha256(told.encode()).hexdigest()
            self._tasks.put(id(task), known)
        return known[1]

    def _row(self, row: Row, packed: Packed) -> bytes:
        turn = row.turn
        same = (id(turn.task), id(turn.heard), id(turn.form), turn.ask, turn.phase, turn.round)
        at = packed.places.get(same)
        if at is None:
            at = packed.places[same] = len(packed.shared)
            heard = turn.heard.digest if turn.heard.messages else turn.heard.content
            told = to_json(
                [self._task(turn.task), heard, turn.form.model_dump(), turn.ask, turn.phase, turn.round]
            )
            packed.shared.append(told)
            packed.size += len(told)
        member = turn.member
        own = [message.digest for message in turn.own]
        return to_json(
            [
                row.number,
                turn.key,
                row.to,
                at,
                [member.name, member.role, member.persona, member.id],
                turn.seed,
                own,
                row.identity,
                row.left,
            ]
        )


@dataclass(slots=True)
class Packed:
    """A message of turns, before it is encoded.

    Attributes:
        size: Bytes that it will take.
        blobs: JSON of what the worker does not hold yet, by digest.
        shared: What several turns have in common, each as JSON.
        rows: The rest of each turn, as JSON; refers to `shared` by place.
        numbers: The turns' numbers.
        places: Places in `shared`, by what stands there.
    """

    size: int = 300
    blobs: dict[str, bytes] = field(default_factory=dict[str, bytes])
    shared: list[bytes] = field(default_factory=list[bytes])
    rows: list[bytes] = field(default_factory=list[bytes])
    numbers: list[int] = field(default_factory=list[int])
    places: dict[Any, int] = field(default_factory=dict[Any, int])

    def blobs_json(self) -> bytes:
        """The blobs as a JSON object."""
        pairs = (b'"%b":%b' % (digest.encode(), blob) for digest, blob in self.blobs.items())
        return b"{" + b",".join(pairs) + b"}"
