"""What a mindstorm tells its trace, and finds there when it is taken up again."""

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
    """That a phase ended early.

    Attributes:
        reason: Why.
        asked: How many had been asked by then, where members are asked in turn.
        in_flight: Calls of members that were cut off after they had been asked, by name.
        counted: Who counted, for those who read the trace.
    """

    reason: str
    asked: NonNegativeInt | None = None
    in_flight: dict[str, NonNegativeInt] = {}
    counted: tuple[str, ...] = ()


class Journal:
    """A mindstorm's side of its trace. Without a trace it knows nothing and keeps nothing."""

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
        """Begins the mindstorm in the trace, or takes up what an earlier run left there.

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
        """How a phase was ended early in an earlier run; None if it was not.

        Args:
            phase: Its name.
            round: From 1.
            alone: Who was asked, where members are asked in turn and that one's time was up.
        """
        record = self._history.closed.get((phase, round, alone))
        if record is None:
            return None
        return read_stored(Closing, record.body)

    async def outcomes(
        self, turns: Iterable[Turn], *, failures: bool, elsewhere: bool
    ) -> Mapping[str, Record]:
        """What came of turns in earlier runs, by key.

        Args:
            turns: The turns.
            failures: Whether abstentions stand, or are to be asked again.
            elsewhere: Whether replies that other mindstorms stored are taken too.

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
        """Whether a turn hears what was first said in this run: then nobody can have answered it."""

        def hears_news() -> bool:
            return any(message.digest in self._news for message in turn.heard.messages)

        if not self._news:
            return False
        return turn.heard.once("news", hears_news) or any(own.digest in self._news for own in turn.own)

    def begun(self, key: str) -> bool:
        """Whether a turn with effects was begun in an earlier run."""
        return key in self._history.intents

    def holds(self, key: str) -> bool:
        """Whether an outcome under this key is this mindstorm's own, not another's."""
        return key in self._history.outcomes

    def note(self, message: Message) -> None:
        """Takes note that a message is news: it was said in this run, for the first time."""
        if self._trace is not None:
            self._news.add(message.digest)

    def tell(self, kind: Kind, turn: Turn, label: str, body: bytes = b"") -> None:
        """Tells what came of a turn. Never waits; `durable` says when it is safe.

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
        """Tells that a phase ended early, and who counted.

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
        """Waits until all that was told is safe; a replay, which tells nothing, need not.

        Raises:
            TraceError: It could not be written.
        """
        if self._trace is not None and self._unsafe:
            self._unsafe = False
            await self._trace.durable()

    def write(self) -> None:
        """Begins to make safe what was told, while the next phase runs."""
        if self._unsafe:
            self._wanted.clear()
            self._writing = asyncio.create_task(self._write())

    async def _write(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(PAUSE):
                await self._wanted.wait()
        await self.durable()

    async def written(self) -> None:
        """Waits until what was told before `write` is safe: so no more than two phases ever are not.

        Raises:
            TraceError: It could not be written.
        """
        self._wanted.set()
        writing, self._writing = self._writing, None
        if writing is not None:
            await writing

    async def decide(self, verdict: Verdict) -> None:
        """Tells the verdict. A replay that told nothing new comes to the one that is there already.

        Raises:
            TraceError: It could not be written.
        """
        if self._trace is not None and not self._history.decided:
            self._append(Record(self._mindstorm, "verdict", body=to_json(verdict)))
            await self.durable()

    async def leave(self) -> None:
        """The mindstorm is over, for this run: whoever waits for it may take it up."""
        try:
            if self._writing is not None:
                self._writing.cancel()
                await asyncio.gather(self._writing, return_exceptions=True)
        finally:
            if self._trace is not None and self._opened:
                self._trace.leave(self._mindstorm)
