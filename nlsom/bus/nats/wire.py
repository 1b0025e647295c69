"""What travels: turns to workers, outcomes back. JSON, in which what many turns share stands once.

Messages, transcripts and tasks are blobs named by digest. A caller sends a worker each blob once, with the
first turn that needs it; a worker that does not hold one any more answers that it needs it.
"""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Generic, TypeVar

from pydantic import TypeAdapter
from pydantic_core import from_json, to_json

from nlsom import errors, plugins
from nlsom.errors import AgentFailed, NlsomError
from nlsom.form import Form
from nlsom.media import MediaStore
from nlsom.member import Member
from nlsom.message import File, Image, Message
from nlsom.task import Task
from nlsom.trace.contract import SCHEMA
from nlsom.turn import Transcript, Turn

WIRE = 1
"""Version of what travels. Caller and worker have to speak the same."""

T = TypeVar("T")
_FORM: TypeAdapter[Form] = TypeAdapter(Form)


class Held(Generic[T]):
    """What was used last, up to so many."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._held: OrderedDict[str, T] = OrderedDict()

    def get(self, key: str) -> T | None:
        """The value, which is now the one used last; None where it is not held."""
        value = self._held.get(key)
        if value is not None:
            self._held.move_to_end(key)
        return value

    def put(self, key: str, value: T) -> None:
        """Holds a value, and lets go of the one not used for longest."""
        self._held[key] = value
        if len(self._held) > self._most:
            self._held.popitem(last=False)


@dataclass(frozen=True, slots=True)
class Row:
    """One turn on its way.

    Attributes:
        number: The caller's, by which the outcome is matched.
        turn: What is asked.
        to: The address.
        identity: What the caller believes that the agent there is; None if it did not ask.
        left: Seconds until its deadline when it was sent.
    """

    number: int
    turn: Turn
    to: str
    identity: str | None = None
    left: float | None = None


class Packer:
    """Makes messages of turns for one worker, each below a size, and remembers what the worker was sent."""

    def __init__(self, head: Mapping[str, Any], most: int) -> None:
        self._head = to_json(dict(head))[:-1]
        self._most = most
        self._sent = Held[bool](60_000)
        self._tasks = Held[tuple[Task, str]](64)

    def forget(self, digests: Sequence[str]) -> None:
        """Takes note that the worker does not hold these."""
        for digest in digests:
            self._sent.put(digest, False)

    def pack(self, rows: Sequence[Row]) -> tuple[list[Packed], list[tuple[Row, str]]]:
        """Messages for these turns; and the turns that fit into none, with the reason."""
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
            except ValueError as error:  # Text that is no text, such as half a surrogate pair.
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
        """A message; `pack` names the object that holds its blobs, where they are too many to go along."""
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
        """What the worker does not know yet of what a turn names."""
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
        """Bytes of a turn without what goes as blobs; 0 where it is plainly small."""
        turn = row.turn
        if len(turn.ask) + len(turn.member.persona) + 70 * len(turn.own) < self._most // 16:
            return 0
        alone = Packed()
        return len(self._row(row, alone)) + alone.size

    def _task(self, task: Task) -> str:
        known = self._tasks.get(str(id(task)))
        if known is None:
            told = f"{task.kind} {task.model_dump_json()}"
            known = task, hashlib.sha256(told.encode()).hexdigest()
            self._tasks.put(str(id(task)), known)
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
    """A message of turns before it is encoded."""

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


class Needed(Exception):
    """A worker does not hold blobs that a turn names."""

    def __init__(self, digests: Sequence[str]) -> None:
        self.digests = tuple(digests)
        super().__init__(f"{len(self.digests)} blobs")


class Unpacker:
    """Makes turns of messages, on a worker. Holds what it was sent, so that it comes once.

    Turns that hear the same share one `Transcript`, so the head of their prompts is made once here too.
    """

    def __init__(self, media: MediaStore) -> None:
        self._media = media
        self._tasks = Held[Task](1_000)
        self._messages = Held[Message](65_000)
        self._heard = Held[Transcript](500)
        self._partly = Held[list[str]](500)
        self._forms = Held[Form](500)

    def take(self, blobs: Mapping[str, Any]) -> None:
        """Holds blobs."""
        heard: list[tuple[str, Any]] = []
        for digest, (kind, *value) in blobs.items():
            if kind == "task":
                made: type[Task] = plugins.load("tasks", value[0])
                self._tasks.put(digest, made.model_validate_json(to_json(value[1])))
            elif kind == "message":
                self._messages.put(digest, Message.model_validate_json(to_json(value[0])))
            else:
                heard.append((digest, value))
        for digest, (content, digests) in heard:
            messages = {one: self._messages.get(one) for one in digests}
            if missing := [one for one, message in messages.items() if message is None]:
                self._partly.put(digest, missing)
            else:
                whole = tuple(message for one in digests if (message := messages[one]) is not None)
                self._heard.put(digest, Transcript(whole, content))

    def turn(self, row: Sequence[Any], shared: Sequence[Any]) -> Turn:
        """The turn of a row.

        Raises:
            Needed: It names what is not held here.
        """
        _, key, _, _, (name, role, persona, id), seed, own, _, _ = row
        task_id, heard_id, form, ask, phase, number = shared
        task = self._tasks.get(task_id)
        own_messages = [self._messages.get(digest) for digest in own]
        heard = Transcript((), heard_id) if len(heard_id) < 64 else self._heard.get(heard_id)
        missing = [digest for digest, held in zip(own, own_messages, strict=True) if held is None]
        if task is None:
            missing.append(task_id)
        if heard is None:
            missing += [heard_id, *(self._partly.get(heard_id) or ())]
        if task is None or heard is None or missing:
            raise Needed(missing)
        return Turn(
            task=task,
            ask=ask,
            form=self._form(form),
            heard=heard,
            own=tuple(message for message in own_messages if message is not None),
            member=Member(name, role, persona, id),
            phase=phase,
            round=number,
            seed=seed,
            key=key,
            media=self._media,
        )

    def _form(self, told: Mapping[str, Any]) -> Form:
        key = json.dumps(told)
        form = self._forms.get(key)
        if form is None:
            form = _FORM.validate_json(key)
            self._forms.put(key, form)
        return form


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
    return [type(error).__name__, str(error)]


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
