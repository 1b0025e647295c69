"""Replays the events of past mindstorms from the trace."""

from __future__ import annotations

from nlsom.event import Abstained, Decided, Event, Spoke, Started
from nlsom.task import Task
from nlsom.trace import Header, Record, Trace
from nlsom.trace.contract import message_of
from nlsom.trace.stored import read_stored, read_words
from nlsom.verdict import Abstention, Verdict
from nlsom_serve.app.run import Seen


async def recall(trace: Trace, mindstorm: str) -> tuple[list[Seen], Verdict | None]:
    """Reads a mindstorm's numbered events from a trace, and its verdict if it reached one.

    Raises:
        TraceError: A record cannot be read.
    """
    seen: list[Seen] = []
    verdict: Verdict | None = None
    places: set[tuple[str, str, int]] = set()
    async for record in trace.records(mindstorm):
        if record.kind == "verdict":
            verdict = read_stored(Verdict, record.body)
        place = (record.member, record.phase, record.round)
        if record.kind in ("replied", "abstained") and place not in places:
            places.add(place)
            seen.append(Seen(_event(record), len(seen) + 1))
    return seen, verdict


def _event(record: Record) -> Event:
    if record.kind == "replied":
        return Spoke(mindstorm=record.mindstorm, message=message_of(record), again=True)
    abstention = Abstention(
        member=record.member, phase=record.phase, round=record.round, cause=read_words(record.body)
    )
    return Abstained(mindstorm=record.mindstorm, abstention=abstention)


def beginning(header: Header, kind: type[Task]) -> Started:
    """The first event of a mindstorm."""
    return Started(
        mindstorm=header.mindstorm,
        society=header.society,
        members=tuple(name for name, _ in header.members),
        task=kind.model_validate(header.task),
        seed=header.seed,
    )


def ending(id: str, verdict: Verdict) -> Decided:
    """The last event of a mindstorm that reached a verdict."""
    return Decided(mindstorm=id, verdict=verdict)
