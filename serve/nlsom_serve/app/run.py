"""A mindstorm that runs in a server, and its events for any number of watchers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Literal

from starlette.types import Receive

from nlsom.answers import Answers, OpenTurn
from nlsom.errors import NlsomError
from nlsom.event import Abstained, Asked, Decided, Event, Spoke, Stopped
from nlsom.phase import Limits
from nlsom.society import Society
from nlsom.task import Task
from nlsom.verdict import Verdict
from nlsom_serve.app.sse import disconnected

State = Literal["queued", "running", "decided", "stopped", "cancelled"]


@dataclass(frozen=True, slots=True)
class Seen:
    """An event, with a number if the trace stores it.

    Replies and abstentions are numbered from 1 in the order of the trace, so that numbers stay valid after a
    restart. Other events have no number, and only live watchers get them.
    """

    event: Event
    number: int | None


class Run:
    """A mindstorm that runs or is queued.

    Attributes:
        id: Its id.
        society_id: Id of its society.
        society: Its society.
        task: The task.
        seed: The run's seed.
        limits: What it may spend.
        kept: Whether it continues without clients, and after a restart.
        wanted: How many clients wait for it.
        state: Whether it is queued or running, or how it ended.
        verdict: Its verdict, once it is decided.
        error: Why it stopped without a verdict.
        spent: Tokens spent by this run, without those of earlier runs.
        over: Resolved when it has ended, in whatever way.
        work: The asyncio task that runs it.
        seen: Its events so far.
    """

    def __init__(
        self,
        id: str,
        society_id: str,
        society: Society,
        task: Task,
        *,
        seed: int,
        limits: Limits,
        known: Sequence[Seen] = (),
        answers: Answers,
    ) -> None:
        self.id, self.society_id, self.society, self.task = id, society_id, society, task
        self.seed, self.limits = seed, limits
        self.kept = False
        self.wanted = 0
        self.state: State = "queued"
        self.verdict: Verdict | None = None
        self.error: NlsomError | None = None
        self.spent = 0
        self.work: asyncio.Task[None] | None = None
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._answers = answers
        self.seen = list(known)
        self._known = {_place(seen.event) for seen in known}
        self._number = len(known)
        self._asked: dict[str, Asked] = {}
        self._wake: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._ending: Decided | Stopped | None = None

    def add(self, event: Event) -> None:
        """Adds an event and wakes the watchers; the last event waits until `close`."""
        number = None
        if isinstance(event, Asked):
            self._asked[event.member] = event
        elif isinstance(event, Spoke | Abstained):
            place = _place(event)
            if place in self._known:
                return  # stored by an earlier run, and among `seen` from the start
            self._known.add(place)
            self._asked.pop(place[0], None)
            self._number += 1
            number = self._number
            if isinstance(event, Spoke) and not event.again:
                self.spent += event.message.said.usage.tokens
        elif isinstance(event, Decided | Stopped):
            self._ending = self._ending or event
            return  # `close` sends it, after setting the state: a watcher may ask for the state at once
        self._append(Seen(event, number))

    def _append(self, seen: Seen) -> None:
        self.seen.append(seen)
        wake, self._wake = self._wake, asyncio.get_running_loop().create_future()
        wake.set_result(None)

    async def watch(self, after: int = 0) -> AsyncGenerator[Seen]:
        """Yields all events so far, then new ones; the last is a `Decided` or a `Stopped`.

        Args:
            after: Numbered events up to this number are left out.
        """
        at = 0
        while True:
            while at < len(self.seen):
                seen = self.seen[at]
                at += 1
                if seen.number is None or seen.number > after:
                    yield seen
                if isinstance(seen.event, Decided | Stopped):
                    return
            wake = self._wake
            await asyncio.shield(wake)

    def waiting(self) -> list[OpenTurn]:
        """Its turns that wait for a person."""
        found = (self._answers.get(asked.key) for asked in self._asked.values())
        return [turn for turn in found if turn is not None]

    def close(self, state: State) -> None:
        """Marks it as over and sends the last event."""
        self.state = state
        reason = "cancelled" if self.error is None else str(self.error)
        self._append(Seen(self._ending or Stopped(mindstorm=self.id, reason=reason), None))
        if not self.over.done():
            self.over.set_result(None)


async def until_over(runs: Sequence[Run], receive: Receive) -> bool:
    """Waits until all runs are over; returns False if the client disconnects before."""
    leaving = asyncio.ensure_future(disconnected(receive))
    ending = asyncio.ensure_future(asyncio.wait([run.over for run in runs]))
    try:
        await asyncio.wait((leaving, ending), return_when=asyncio.FIRST_COMPLETED)
    finally:
        leaving.cancel()
        ending.cancel()
        await asyncio.gather(leaving, ending, return_exceptions=True)
    return all(run.over.done() for run in runs)


def _place(event: Event) -> tuple[str, str, int]:
    """Member, phase and round of a reply or abstention: unique within a mindstorm."""
    if isinstance(event, Spoke):
        message = event.message
        return message.sender, message.phase, message.round
    assert isinstance(event, Abstained)
    return event.abstention.member, event.abstention.phase, event.abstention.round
