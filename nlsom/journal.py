"""What a mindstorm tells its trace, and finds there when it is taken up again."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pydantic_core import to_json

from nlsom.program import Program
from nlsom.task import Task
from nlsom.trace.contract import Header, History, Kind, Record, Trace
from nlsom.turn import Turn
from nlsom.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Closing:
    """That a phase ended early.

    Attributes:
        reason: Why.
        asked: How many had been asked by then, where members are asked in turn.
        in_flight: Calls of members that were cut off after they had been asked, by name.
    """

    reason: str
    asked: int | None = None
    in_flight: Mapping[str, int] = field(default_factory=dict[str, int])


class Journal:
    """A mindstorm's side of its trace. Without a trace it knows nothing and keeps nothing."""

    def __init__(self, trace: Trace | None, mindstorm: str) -> None:
        self._trace, self._mindstorm = trace, mindstorm
        self._history = History()
        self._unsafe = False

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
        told = json.loads(record.body)
        return Closing(told["reason"], told.get("asked"), told.get("in_flight", {}))

    async def outcomes(self, keys: Iterable[str], *, failures: bool, elsewhere: bool) -> Mapping[str, Record]:
        """What came of turns in earlier runs, by key.

        Args:
            keys: Of the turns.
            failures: Whether abstentions stand, or are to be asked again.
            elsewhere: Whether replies that other mindstorms stored are taken too.

        Raises:
            TraceError: The trace cannot be read.
        """
        if self._trace is None:
            return {}
        known: dict[str, Record] = {}
        missing: list[str] = []
        for key in keys:
            record = self._history.outcomes.get(key)
            if record is None:
                missing.append(key)
            elif failures or record.kind != "abstained":
                known[key] = record
        if missing and elsewhere:
            known |= await self._trace.find(missing)
        return known

    def begun(self, key: str) -> bool:
        """Whether a turn with effects was begun in an earlier run."""
        return key in self._history.intents

    def holds(self, key: str) -> bool:
        """Whether an outcome under this key is this mindstorm's own, not another's."""
        return key in self._history.outcomes

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
        told: dict[str, object] = {"reason": closing.reason, "counted": list(counted)}
        if closing.asked is None:
            told["in_flight"] = closing.in_flight
        else:
            told["asked"] = closing.asked
        self._append(
            Record(self._mindstorm, "closed", member=alone, phase=phase, round=round, body=to_json(told))
        )

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
            await self._trace.durable()
            self._unsafe = False

    async def decide(self, verdict: Verdict) -> None:
        """Tells the verdict. A replay that told nothing new comes to the one that is there already.

        Raises:
            TraceError: It could not be written.
        """
        if self._trace is not None and not self._history.decided:
            self._append(Record(self._mindstorm, "verdict", body=to_json(verdict)))
            await self.durable()

    def leave(self) -> None:
        """The mindstorm is over: nothing of it need be held in memory."""
        if self._trace is not None:
            self._trace.leave(self._mindstorm)
