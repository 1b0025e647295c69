"""A member that changes something in the world is never silently asked twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from nlsom.errors import TraceError
from nlsom.message import Said
from nlsom.society import Society
from nlsom.testing.agents import Saying, panel
from nlsom.trace import MemoryTrace, SqliteTrace, Trace
from nlsom.turn import Turn


class Payer:
    """Pays when asked, and may be cut off before it can say so."""

    effects = True
    identity = "payer/1"

    def __init__(self, *, hangs: bool) -> None:
        self.paid: list[str] = []
        self._hangs = hangs
        self.began = asyncio.Event()

    async def speak(self, turn: Turn) -> Said | None:
        self.paid.append(turn.key)
        self.began.set()
        if self._hangs:
            await asyncio.Event().wait()
        return Said.words("yes")


@pytest.fixture(params=["memory", "sqlite"])
async def trace(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Trace]:
    if request.param == "memory":
        yield MemoryTrace()
        return
    async with SqliteTrace(tmp_path / "trace.db") as store:
        yield store


def society(payer: object, trace: Trace, *, retry_failed: bool = False) -> Society:
    made = panel([payer, Saying("yes")], trace=trace)  # type: ignore[list-item]
    made.retry_failed = retry_failed
    return made


async def cut_off(trace: Trace) -> None:
    """Holds a mindstorm that ends while the payer is at work."""
    payer = Payer(hangs=True)
    async with society(payer, trace) as made:
        running = asyncio.ensure_future(made.ask("Pay?"))
        await payer.began.wait()
        running.cancel()
        await asyncio.wait([running])
    assert len(payer.paid) == 1


async def kinds(trace: Trace, member: str) -> list[str]:
    headers = [header async for header in trace.mindstorms()]
    return [r.kind async for r in trace.records(headers[0].mindstorm) if r.member == member and r.key]


async def test_the_trace_is_told_before_it_runs(trace: Trace) -> None:
    async with society(Payer(hangs=False), trace) as made:
        await made.ask("Pay?")
    assert await kinds(trace, "m0") == ["intent", "replied"]
    assert await kinds(trace, "m1") == ["replied"]


async def test_what_the_trace_cannot_be_told_of_does_not_run_and_ends_the_mindstorm() -> None:
    class Full(MemoryTrace):
        async def durable(self) -> None:
            raise TraceError("there is no room")

    payer = Payer(hangs=False)
    async with society(payer, Full()) as made:
        with pytest.raises(TraceError, match="no room"):
            await made.ask("Pay?")
    assert payer.paid == []


async def test_one_that_was_cut_off_abstains_since_it_may_have_run(trace: Trace) -> None:
    await cut_off(trace)
    again = Payer(hangs=False)
    async with society(again, trace) as made:
        verdict = await made.ask("Pay?")
    assert again.paid == []
    assert [(one.member, "may have run" in one.cause) for one in verdict.abstained] == [("m0", True)]


async def test_a_retry_that_was_asked_for_runs_it_under_the_same_key(trace: Trace) -> None:
    await cut_off(trace)
    again = Payer(hangs=False)
    async with society(again, trace, retry_failed=True) as made:
        verdict = await made.ask("Pay?")
    assert len(again.paid) == 1
    assert verdict.tally == {"yes": 2.0}


async def test_one_that_answered_is_not_run_again(trace: Trace) -> None:
    first, second = Payer(hangs=False), Payer(hangs=False)
    for payer in (first, second):
        async with society(payer, trace) as made:
            assert (await made.ask("Pay?")).tally == {"yes": 2.0}
    assert (len(first.paid), len(second.paid)) == (1, 0)
