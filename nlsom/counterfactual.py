"""What if: a stored mindstorm again, without some members, by another rule, or with fewer rounds.

The changed program runs over the same trace. Turns whose keys are stored have their replies already; for the
others, members would have to be asked. `ClosedBook` is a bus that only finds out which turns those are.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from nlsom import plugins
from nlsom.bus import MemoryBus
from nlsom.config import load
from nlsom.errors import BusClosed, ConfigError, Fault, UsageError
from nlsom.event import Abstained, Event, Spoke
from nlsom.media import MediaStore
from nlsom.message import Frozen, Said
from nlsom.program import Program, Rounds
from nlsom.society import Society
from nlsom.task import Task
from nlsom.trace.contract import Header, History, Record, Trace
from nlsom.trace.stored import read_stored
from nlsom.turn import Turn


class Built(Frozen):
    """All that is needed to build a society again.

    Attributes:
        society: Its file, with all overrides.
        prompts: The prompts that it uses, by name.
        identities: Identity of each member's agent, by the member's name.
    """

    society: dict[str, Any]
    prompts: dict[str, str]
    identities: dict[str, str]


def built_from(header: Header) -> Built:
    """What the society of a stored mindstorm was built from.

    Raises:
        UsageError: The trace does not hold it: the society was made in Python.
    """
    if not header.built:
        raise UsageError(
            f"mindstorm {header.mindstorm}: the trace does not hold its society, which was made in Python; "
            "change the program there and run it over the same trace"
        )
    return Built.model_validate(json.loads(header.built))


def task_of(header: Header) -> Task:
    """The task of a stored mindstorm."""
    kind: type[Task] = plugins.load("tasks", header.kind)
    return read_stored(kind, json.dumps(header.task))


def vary(
    header: Header,
    *,
    without: Sequence[str] = (),
    rule: str | None = None,
    rounds: int | None = None,
    media: MediaStore | None = None,
) -> Society:
    """Builds the society of a stored mindstorm with changes. It is not open yet.

    Args:
        header: The mindstorm.
        without: Members to leave out. Seeds depend on names, so the turns of the others stay the same.
        rule: Another rule for the verdict.
        rounds: Most rounds of every `repeat`.
        media: Where its pictures are.

    Raises:
        UsageError: There is no such member or rule, nothing is repeated, or this version of nlsom builds a
            different society from what the trace holds.
        ConfigError: The society cannot be made here: a plugin, or a file that it names, is not found.
    """
    built = built_from(header)
    try:
        same = load(built.society, prompts=built.prompts)
    except ConfigError as error:
        told = "it is made again from the trace; what its file names by a path is looked for from here"
        raise ConfigError([*error.faults, Fault(f"society {header.society!r}", told)]) from None
    names = same.program.names
    asked = replace(same.program, identities=tuple(built.identities.get(name, "") for name in names))
    if asked.digest != header.digest:
        raise UsageError(
            f"mindstorm {header.mindstorm}: the society that the trace holds is another one now "
            f"(digest {asked.digest[:12]}, then {header.digest[:12]}); use the version that wrote it"
        )
    tree: dict[str, Any] = json.loads(json.dumps(built.society))
    if rule is not None:
        kept: Mapping[str, Any] = tree.get("verdict") or {}
        tree["verdict"] = {key: kept[key] for key in ("of", "over", "tie_break") if key in kept}
        tree["verdict"]["rule"] = rule
    if rounds is not None:
        repeats = [phase for phase in tree["mindstorm"] if "repeat" in phase]
        if not repeats:
            raise UsageError(f"--rounds: society {header.society!r} repeats nothing")
        for repeat in repeats:
            repeat["repeat"] = str(rounds)
    society = load(tree, prompts=built.prompts, media=media)
    return leave_out(society, without) if without else society


def leave_out(society: Society, absent: Sequence[str]) -> Society:
    """The society without some members. Phases that ask for them do without.

    Raises:
        UsageError: There is no such member, or nobody is left.
        ConfigError: The structure needs one of them.
    """
    known = society.program.names
    if unknown := [name for name in absent if name not in known]:
        raise UsageError(f"no member is called {unknown[0]!r}; there are {', '.join(known)}")
    stay = [at for at, name in enumerate(known) if name not in absent]
    if not stay:
        raise UsageError("a society without any member decides nothing")
    place = {before: now for now, before in enumerate(stay)}
    groups = {
        name: tuple(place[at] for at in members if at in place) for name, members in society.groups.items()
    }
    seats = [society.seats[at] for at in stay]
    there = {seat.member.name for seat in seats} | {seat.member.role for seat in seats}
    for seat in society.seats:
        # A phase or the verdict may name an absent member; its name then selects nobody.
        for name in (seat.member.name, seat.member.role):
            if name not in there:
                groups.setdefault(name, ())
    return replace(society, seats=seats, groups=groups)


class ClosedBook(MemoryBus):
    """A bus on which nobody can be asked: it notes which turns would be, and ends the mindstorm.

    Attributes:
        missing: The turns of the first phase that has turns without a stored outcome.
        known: How many turns had a stored outcome.
    """

    def __init__(self, identities: Mapping[str, str]) -> None:
        super().__init__()
        self._identities = identities
        self.missing: list[Turn] = []
        self.known = 0

    async def describe(self, addresses: Sequence[str]) -> list[str]:
        """The identities that the trace holds."""
        return [self._identities.get(address, "") for address in addresses]

    async def request(self, turn: Turn, *, to: str, deadline: float | None = None) -> Said | None:
        """Notes the turn.

        Raises:
            BusClosed: Always, after the other turns of its phase have been noted.
        """
        self.missing.append(turn)
        # The turns of a phase are started together: each comes here before any of them goes on.
        await asyncio.sleep(0)
        raise BusClosed(f"{to!r} would have to be asked")

    @property
    def observed(self) -> bool:
        """Always true: events tell which outcomes are known."""
        return True

    def publish(self, event: Event) -> None:
        """Counts known outcomes, and passes the event on."""
        if isinstance(event, Spoke | Abstained):
            self.known += 1
        super().publish(event)


class Borrowed:
    """A trace for a variant of a stored mindstorm: turns that failed there count as failed here too.

    Args:
        trace: Where replies are found and, if `write` is set, kept.
        of: The records of the stored mindstorm.
        write: Whether outcomes are kept; if not, the trace may be read-only.
    """

    def __init__(self, trace: Trace, of: Sequence[Record], *, write: bool) -> None:
        self._trace, self._write = trace, write
        self._failed = [record for record in of if record.kind == "abstained"]

    async def open(self, header: Header) -> History:
        """Begins a mindstorm; see `Trace.open`."""
        history = await self._trace.open(header) if self._write else History()
        for record in self._failed:
            history.outcomes.setdefault(record.key, record)
        return history

    async def find(self, keys: Sequence[str]) -> dict[str, Record]:
        """Replies by key; see `Trace.find`."""
        return await self._trace.find(keys)

    def append(self, record: Record) -> None:
        """Appends a record, if `write` is set."""
        if self._write:
            self._trace.append(record)

    async def durable(self) -> None:
        """Waits until what was appended is safe."""
        if self._write:
            await self._trace.durable()

    def leave(self, mindstorm: str) -> None:
        """Drops what is held in memory for a mindstorm."""
        if self._write:
            self._trace.leave(mindstorm)

    def mindstorms(self) -> AsyncIterator[Header]:
        """The mindstorms of the trace."""
        return self._trace.mindstorms()

    def records(self, mindstorm: str) -> AsyncIterator[Record]:
        """The records of a mindstorm of the trace."""
        return self._trace.records(mindstorm)

    async def close(self) -> None:
        """Leaves the trace to whoever opened it."""


def most_turns(program: Program) -> int:
    """How many turns a program can take at most."""
    return sum(
        step.count * sum(len(one.who) for one in step.steps) if isinstance(step, Rounds) else len(step.who)
        for step in program.steps
    )
