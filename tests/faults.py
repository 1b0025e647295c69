"""For the tests of faults: six kinds of society, members that fail, and invariants that must always hold.

Also the program that those tests kill: a separate process, so it imports little.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from nlsom.blueprint import VerdictBy
from nlsom.budget import Cost
from nlsom.event import Spoke
from nlsom.message import Data, Said, Usage
from nlsom.phase import Ask, Hears, Inline, Limits, Repeat
from nlsom.rules import Decree, Plurality
from nlsom.society import Society
from nlsom.testing.agents import panel
from nlsom.trace import SqliteTrace

SECRET = "the words of an error"
CHOICES = ("cat", "dog")
AT_ONCE = 2
"""Turns that a member answers at a time."""


@dataclass
class Well:
    """Answers correctly, from its turn alone; counts the turns in progress."""

    seconds: float = 0.0
    identity: str = "well/1"
    running: int = 0
    most: int = 0
    keys: list[str] = field(default_factory=list)
    note: Callable[[str], object] | None = None
    well: bool = False

    async def speak(self, turn) -> Said | None:
        self.keys.append(turn.key)
        if self.note is not None:
            self.note(turn.key)
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            return await (Well.answer(self, turn) if self.well else self.answer(turn))
        finally:
            self.running -= 1

    async def answer(self, turn) -> Said | None:
        await asyncio.sleep(self.seconds)
        return Said.words("cat", usage=Usage(calls=1))

    def cost(self, turn) -> Cost:
        return Cost(1, 1)


class Raising(Well):
    async def answer(self, turn):
        raise RuntimeError(SECRET)


class Hanging(Well):
    async def answer(self, turn):
        await asyncio.Event().wait()


class Late(Well):
    async def answer(self, turn):
        await asyncio.sleep(10)
        return Said.words("dog", usage=Usage(calls=1))


class Garbage(Well):
    async def answer(self, turn):
        return Said.words(f"⚡ {SECRET} ☃", usage=Usage(calls=1))


def ask(who="everyone", label="answer", form="text", **more) -> Ask:
    return Ask(ask=who, prompt=Inline(text="Speak."), label=label, form=form, **more)


def build(kind: str, agents: list, *, seconds: float | None = None, trace=None) -> Society:
    """A society of the given kind; faults hit the last of the agents."""
    made = _build(kind, agents, seconds=seconds, trace=trace)
    return replace(made, seats=[replace(seat, limit=AT_ONCE) for seat in made.seats])


def _build(kind: str, agents: list, *, seconds: float | None, trace) -> Society:
    more = {"seconds": seconds}
    vote = ask(label="ballot", form="answer", **more)
    limits = Limits(calls=sum(TURNS[kind]), quorum=0)
    plain = VerdictBy(Plurality(), "plurality")
    if kind == "monarchy":
        roles = ["organizer", "leader", "expert", "expert", "expert"]
        phases = [
            Repeat(repeat=2, phases=(ask("organizer", "question"), ask("expert", **more))),
            ask("leader", "ballot", "answer"),
        ]
        decree = VerdictBy(Decree(), "decree", of="leader")
        return panel(agents, phases, roles=roles, limits=limits, trace=trace, verdict=decree)
    if kind == "democracy":
        phases = [ask(**more), vote]
    elif kind == "debate":
        heard = Hears(label=("answer",), scope="latest")
        phases = [Repeat(repeat=2, phases=(ask(hears=heard, **more),)), vote]
    else:
        phases = [vote]
    if kind == "nested":
        from nlsom_agents.society import Nested

        inner = Nested.__new__(Nested)
        inner.society = panel(agents[1:], phases, verdict=plain, limits=Limits(quorum=0))
        outer = None if seconds is None else 3 * seconds
        return panel([agents[0], inner], [ask(label="ballot", form="answer", seconds=outer)], trace=trace)
    return panel(agents, phases, limits=limits, trace=trace, verdict=plain)


TURNS = {
    "solo": [1],
    "monarchy": [1, 3, 1, 3, 1],
    "democracy": [3, 3],
    "debate": [3, 3, 3],
    "nested": [2, 2],
    "129 members": [129],
}
SIZES = {"solo": 1, "monarchy": 5, "democracy": 3, "debate": 3, "nested": 3, "129 members": 129}
KINDS = list(SIZES)


def members(kind: str, faulty=None, **more) -> list:
    agents = [Well(**more) for _ in range(SIZES[kind])]
    return agents if faulty is None else [*agents[:-1], faulty]


async def held(society: Society, *, seed: int = 0):
    """Holds a mindstorm; returns its verdict and all abstentions, including those of a nested society."""
    causes = []
    async with asyncio.timeout(30):
        task = await society.make_task("What is it?", choices=CHOICES)
        async with society.mindstorm(task, seed=seed) as storm:
            async for event in storm:
                if isinstance(event, Spoke):
                    for part in event.message.said.parts:
                        if isinstance(part, Data) and "abstained" in part.value:
                            causes += [(one["member"], one["cause"]) for one in part.value["abstained"]]
            verdict = await storm.verdict()
    causes += [(one.member, one.cause) for one in verdict.abstained]
    return verdict, causes


def check(kind, verdict, agents, *, faulty: bool = True) -> None:
    """Asserts what must hold after any fault."""
    assert verdict.answer == (None if kind == "solo" and faulty else "cat")
    assert set(verdict.tally) <= set(CHOICES), "no error text is an answer"
    assert all(getattr(agent, "running", 0) == 0 for agent in agents), "nothing is left running"
    assert all(getattr(agent, "most", 0) <= AT_ONCE for agent in agents), "caps are never exceeded"
    assert verdict.usage_total.calls <= sum(TURNS[kind])


async def _main(kind: str, path: str, asked: str) -> None:
    """The program of the processes that are killed."""
    with open(asked, "a", buffering=1) as log:

        def note(key: str) -> None:
            log.write(key + "\n")

        agents = members(kind, seconds=0.2, note=note)
        async with SqliteTrace(path) as trace, build(kind, agents, trace=trace) as society:
            verdict, _ = await held(society)
            print(verdict.answer)


if __name__ == "__main__":
    asyncio.run(_main(*sys.argv[1:]))
