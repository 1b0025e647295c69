"""What a mindstorm writes to its trace, and finds there when it is resumed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress

from pydantic import NonNegativeInt
from pydantic_core import to_json

from nlsom.message import Frozen, Message
from nlsom.program import Program
from nlsom.task import Task
from nlsom.trace.contract import PAUSE, Header, History, Kind, Record, Trace
from nlsom.trace.stored import read_stored
from nlsom.turn import Turn
from nlsom.verdict import Verdict


class Closing(Frozen):
    """The early end of a phase, as the trace keeps it.

    Attributes:
        reason: Why it ended.
        asked: How many members had been asked, if they are asked in turn.
        in_flight: Calls of models begun by members who were cut off, by name.
        counted: Names of those whose replies counted; for readers of the trace.
    """

    reason: str
    asked: NonNegativeInt | None = None
    in_flight: dict[str, NonNegativeInt] = {}
    counted: tuple[str, ...] = ()


class Journal:
    """A mindstorm's view of its trace. Without a trace it knows nothing and keeps nothing."""

    def __init__(self, trace: Trace | None, mindstorm: str) -> None:
        self._trace, self._mindstorm = trace, mindstorm
        self._history = History()
        self._opened = False
        self._unsafe = False
        self._writing: asyncio.Task[None] | None = None
        self._wanted = asyncio.Event()
        self._news: set[str] = set()

    @property
    def kept(self) -> bool:
        """Whether there is a trace."""
        return self._trace is not None

    async def open(self, program: Program, task: Task, *, seed: int, built: str) -> None:
        """Begins the mindstorm in the trace, or resumes what an earlier run left there.

        Raises:
            TraceError: The trace cannot be read or written.
        """
        if self._trace is None:
            return
        header = Header(
            mindstorm=self._mindstorm,
            society=program.name,
            digest=program.digest,
            members=tuple((member.name, member.role) for member in program.members),
            kind=task.kind,
            task=task.model_dump(mode="json"),
            seed=seed,
            started=time.time(),
            built=built,
            frozen=program.decision.frozen,
        )
        self._history = await self._trace.open(header)
        self._opened = True

    def closing(self, phase: str, round: int, alone: str = "") -> Closing | None:
        """How a phase ended early in an earlier run; None if it did not.

        Args:
            phase: Its name.
            round: From 1.
            alone: If members are asked in turn: the member whose own turn ended early; "" for the phase.
        """
        record = self._history.closed.get((phase, round, alone))
        if record is None:
            return None
        return read_stored(Closing, record.body)

    async def outcomes(
        self, turns: Iterable[Turn], *, failures: bool, elsewhere: bool
    ) -> Mapping[str, Record]:
        """Stored outcomes of turns, by key.

        Args:
            turns: The turns.
            failures: Whether abstentions count as outcomes; if not, those turns are asked again.
            elsewhere: Whether replies stored by other mindstorms count too.

        Raises:
            TraceError: The trace cannot be read.
        """
        if self._trace is None:
            return {}
        known: dict[str, Record] = {}
        missing: list[str] = []
        for turn in turns:
            record = self._history.outcomes.get(turn.key)
            if record is None:
                if not self._is_new(turn):
                    missing.append(turn.key)
            elif failures or record.kind != "abstained":
                known[turn.key] = record
        if missing and elsewhere:
            known |= await self._trace.find(missing)
        return known

    def _is_new(self, turn: Turn) -> bool:
        """Whether a turn hears something first said in this run: then no stored reply can exist for it."""

        def hears_news() -> bool:
            return any(message.digest in self._news for message in turn.heard.messages)

        if not self._news:
            return False
        return turn.heard.once("news", hears_news) or any(own.digest in self._news for own in turn.own)

    def begun(self, key: str) -> bool:
        """Whether a turn with effects was begun in an earlier run."""
        return key in self._history.intents

    def holds(self, key: str) -> bool:
        """Whether this mindstorm itself has stored an outcome under this key."""
        return key in self._history.outcomes

    def note(self, message: Message) -> None:
        """Notes that a message was said for the first time in this run."""
        if self._trace is not None:
            self._news.add(message.digest)

    def tell(self, kind: Kind, turn: Turn, label: str, body: bytes = b"") -> None:
        """Records the outcome of a turn. Never waits; `durable` does.

        Raises:
            TraceError: It cannot be written.
        """
        if self._trace is not None:
            self._append(
                Record(self._mindstorm, kind, turn.key, turn.member.name, turn.phase, label, turn.round, body)
            )

    def tell_closing(
        self, closing: Closing, phase: str, round: int, alone: str, counted: Iterable[str]
    ) -> None:
        """Records that a phase ended early, and whose replies counted.

        Raises:
            TraceError: It cannot be written.
        """
        if self._trace is None:
            return
        told = closing.model_copy(update={"counted": tuple(counted)})
        body = told.model_dump_json(exclude_unset=True).encode()
        self._append(Record(self._mindstorm, "closed", member=alone, phase=phase, round=round, body=body))

    def _append(self, record: Record) -> None:
        assert self._trace is not None
        self._history.decided = False
        self._unsafe = True
        self._trace.append(record)

    async def durable(self) -> None:
        """Waits until all records are durable; returns at once in a replay, which records nothing.

        Raises:
            TraceError: It could not be written.
        """
        if self._trace is not None and self._unsafe:
            self._unsafe = False
            await self._trace.durable()

    def write(self) -> None:
        """Begins to make all records durable while the next phase runs."""
        if self._unsafe:
            self._wanted.clear()
            self._writing = asyncio.create_task(self._write())

    async def _write(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(PAUSE):
                await self._wanted.wait()
        await self.durable()

    async def written(self) -> None:
        """Waits for what `write` began: so at most two phases are ever not durable.

        Raises:
            TraceError: It could not be written.
        """
        self._wanted.set()
        writing, self._writing = self._writing, None
        if writing is not None:
            await writing

    async def decide(self, verdict: Verdict) -> None:
        """Records the verdict, unless it is there already: a replay without new records reaches the same one.

        Raises:
            TraceError: It could not be written.
        """
        if self._trace is not None and not self._history.decided:
            self._append(Record(self._mindstorm, "verdict", body=to_json(verdict)))
            await self.durable()

    async def leave(self) -> None:
        """Ends this run's work on the mindstorm; whoever waits for it may resume it."""
        try:
            if self._writing is not None:
                self._writing.cancel()
                await asyncio.gather(self._writing, return_exceptions=True)
        finally:
            if self._trace is not None and self._opened:
                self._trace.leave(self._mindstorm)
