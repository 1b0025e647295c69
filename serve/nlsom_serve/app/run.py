"""A mindstorm under way in a server: its events for whoever watches, and who still wants it."""

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
from nlsom_serve.app.sse import gone

State = Literal["queued", "running", "decided", "stopped", "cancelled"]


@dataclass(frozen=True, slots=True)
class Seen:
    """An event, and its number if it is one that the trace keeps.

    What members said and why they did not are numbered from 1 in the order of the trace; so the numbers mean
    the same after a restart. All else is for those who watch just now.
    """

    event: Event
    number: int | None


class Run:
    """A mindstorm that runs or waits for its place.

    Attributes:
        id: Of the mindstorm.
        society_id: Id of its society.
        society: The society.
        task: What it is asked.
        seed: The run's seed.
        limits: What it may spend.
        kept: Whether it goes on although nobody waits for it, and after a restart.
        wanted: How many clients wait for it.
        state: Whether it waits or runs, or how it ended.
        verdict: Once it is decided.
        error: Why it stopped without one.
        spent: Tokens spent now.
        over: Done when it has ended, however it did.
        work: What runs it.
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

    def take(self, event: Event) -> None:
        """Takes in an event and wakes whoever watches; the ending is told by `close`."""
        number = None
        if isinstance(event, Asked):
            self._asked[event.member] = event
        elif isinstance(event, Spoke | Abstained):
            place = _place(event)
            if place in self._known:
                return  # stored by an earlier run of it, and shown already
            self._known.add(place)
            self._asked.pop(place[0], None)
            self._number += 1
            number = self._number
            if isinstance(event, Spoke) and not event.again:
                self.spent += event.message.said.usage.tokens
        elif isinstance(event, Decided | Stopped):
            self._ending = self._ending or event
            return  # who hears of it may ask at once how it ended, and shall not be told that it runs
        self._tell(Seen(event, number))

    def _tell(self, seen: Seen) -> None:
        self.seen.append(seen)
        wake, self._wake = self._wake, asyncio.get_running_loop().create_future()
        wake.set_result(None)

    async def watch(self, after: int = 0) -> AsyncGenerator[Seen]:
        """The events from the beginning, then as they come; the last is a `Decided` or a `Stopped`.

        Args:
            after: The number of the last event that is known; numbered ones up to it are left out.
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
        """Turns of it that wait for a person."""
        found = (self._answers.get(asked.key) for asked in self._asked.values())
        return [turn for turn in found if turn is not None]

    def close(self, state: State) -> None:
        """Says that it is over, and how it ended."""
        self.state = state
        reason = "cancelled" if self.error is None else str(self.error)
        self._tell(Seen(self._ending or Stopped(mindstorm=self.id, reason=reason), None))
        if not self.over.done():
            self.over.set_result(None)


async def until_over(runs: Sequence[Run], receive: Receive) -> bool:
    """Waits until mindstorms are over; False where the client left before."""
    leaving = asyncio.ensure_future(gone(receive))
    ending = asyncio.ensure_future(asyncio.wait([run.over for run in runs]))
    try:
        await asyncio.wait((leaving, ending), return_when=asyncio.FIRST_COMPLETED)
    finally:
        leaving.cancel()
        ending.cancel()
        await asyncio.gather(leaving, ending, return_exceptions=True)
    return all(run.over.done() for run in runs)


def _place(event: Event) -> tuple[str, str, int]:
    """Who spoke or did not, in which phase and round: once in a mindstorm."""
    if isinstance(event, Spoke):
        message = event.message
        return message.sender, message.phase, message.round
    assert isinstance(event, Abstained)
    return event.abstention.member, event.abstention.phase, event.abstention.round
