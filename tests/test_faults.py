"""Every fault in every kind of society: it ends, says who did not answer and why, and can run again.

A fault hits one member (or the wire, or the store); the same is asserted for every fault: the mindstorm ends
within its limits; each abstention has its cause; no error text is an answer; caps hold; nothing goes on
running; what was stored stays; and the same program runs again.
"""

from __future__ import annotations

import asyncio
import signal
import sqlite3
import sys
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import faults
import pytest
from faults import (
    AT_ONCE,
    CHOICES,
    KINDS,
    SECRET,
    TURNS,
    Garbage,
    Hanging,
    Late,
    Raising,
    build,
    check,
    held,
    members,
)

from nlsom.bus.nats import NatsBus
from nlsom.errors import TraceError
from nlsom.event import Asked
from nlsom.model.http import HttpModel
from nlsom.testing.behaviours import busy, cut, drip, ok, status
from nlsom.testing.bus import until
from nlsom.testing.faulty import FaultyServer
from nlsom.testing.nats import NatsServer
from nlsom.trace import MemoryTrace, SqliteTrace
from nlsom_agents.chat import Chat

FAULTS = {
    "raises": (Raising, f"RuntimeError: {SECRET}"),
    "hangs": (Hanging, "no answer in time"),
    "answers garbage": (Garbage, "no option is named"),
    "answers late": (Late, "no answer in time"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fault", FAULTS)
async def test_a_member_that(fault, kind):
    made, cause = FAULTS[fault]
    faulty = made()
    agents = members(kind, faulty)
    slow = cause == "no answer in time"
    # A limit only where somebody runs into it: on a busy machine the others must have time.
    enough = 2.0 if kind in ("129 members", "nested") else 1.0
    society = build(kind, agents, seconds=enough if slow else None)
    async with society:
        # Several at once, more than a member answers at a time.
        storms = await asyncio.gather(*(held(society, seed=seed) for seed in range(AT_ONCE + 1)))
        for verdict, causes in storms:
            check(kind, verdict, agents)
            # Within a nested society one is named for itself, and so is its society, which had no verdict.
            silent = {"m1", "m1/m1"} if kind == "nested" else {society.members[-1].name}
            if kind == "monarchy" and fault == "answers garbage":  # An expert may say what it likes.
                assert causes == []
            else:
                assert {(member, why) for member, why in causes} == {(name, cause) for name in silent}
            assert not verdict.cut_short
        faulty.well = True
        again, causes = await held(society, seed=-1)
        check(kind, again, agents, faulty=False)
        assert causes == [], "it is well again, and so is the society"


SERVERS = {
    "refuses": (None, "ModelUnavailable"),
    "is busy": (busy(retry_after=0), "ModelUnavailable"),
    "fails": (status(500, SECRET), "ModelError"),
    "cuts its answer": (cut(), "ModelUnavailable"),
    "drips": (drip("cat", size=64), None),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fault", SERVERS)
async def test_a_model_server_that(fault, kind):
    behaviour, error = SERVERS[fault]
    async with FaultyServer(then=ok("cat")) as server:
        model = HttpModel(server.url, retries=1, backoff=0.01, connect_timeout=1.0)
        agents = members(kind, Chat(model=model))
        society = build(kind, agents)
        async with society:
            if behaviour is None:
                await server.__aexit__()
            else:
                server.then = behaviour
            verdict, causes = await held(society)
            check(kind, verdict, agents, faulty=error is not None)
            if error is None:
                assert causes == []
            else:
                assert any(why.startswith(error) for _, why in causes), causes
            await server.until(lambda server: server.in_flight == 0)
            if behaviour is not None:
                server.then = ok("cat")
                again, causes = await held(society, seed=1)
                check(kind, again, agents, faulty=False)
                assert causes == [], "it is well again, and so is the society"


@asynccontextmanager
async def over_nats(kind, agents, server, **more):
    """A society whose members are hosted by a worker on a separate bus."""
    times = {"beat": 0.1, "silence": 0.6, "patience": 8.0, **more}
    async with AsyncExitStack() as stack:
        worker = await stack.enter_async_context(NatsBus(server.url, **times))
        await stack.enter_async_context(build(kind, agents).hosted(worker))
        society = build(kind, agents)
        society.bus = await stack.enter_async_context(NatsBus(server.url, **times))
        yield await stack.enter_async_context(society)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fault", ["slow", "restarted", "partitioned"])
async def test_nats_that_is(fault, kind):
    agents = members(kind, seconds=0.1)
    async with NatsServer() as server, over_nats(kind, agents, server) as society:
        holding = asyncio.create_task(held(society))
        await until(lambda: any(agent.running for agent in agents))
        if fault == "restarted":
            await server.stop()
            await server.start()
        else:
            server.freeze()
            await asyncio.sleep(0.2 if fault == "slow" else 1.0)
            server.thaw()
        verdict, causes = await holding
        check(kind, verdict, agents, faulty=False)
        assert causes == []
        again, _ = await held(society, seed=1)
        check(kind, again, agents, faulty=False)


class Failing(MemoryTrace):
    """A store that is full after some number of records, or slow."""

    def __init__(self, room: int | None = None, seconds: float = 0.0) -> None:
        super().__init__()
        self.room, self._seconds = room, seconds

    def append(self, record) -> None:
        if self.room is not None:
            self.room -= 1
        if self.room is None or self.room >= 0:
            super().append(record)

    async def durable(self) -> None:
        await asyncio.sleep(self._seconds)
        if self.room is not None and self.room < 0:
            raise TraceError("the disk is full")


@pytest.mark.parametrize("kind", KINDS)
async def test_a_store_that_is_full(kind):
    for room in range(0, sum(TURNS[kind]), 1 + sum(TURNS[kind]) // 4):
        agents = members(kind)
        trace = Failing(room)
        async with build(kind, agents, trace=trace) as society:
            with pytest.raises(TraceError, match="full"):
                await held(society)
            assert not any(agent.running for agent in agents)
            stored = set(trace._replies)
            for agent in agents:
                agent.keys.clear()
            trace.room = None
            verdict, _ = await held(society)
            check(kind, verdict, agents, faulty=False)
            assert not stored & {key for agent in agents for key in agent.keys}, "what was stored stays"


@pytest.mark.parametrize("kind", KINDS)
async def test_a_store_that_is_slow(kind):
    agents = members(kind)
    async with build(kind, agents, trace=Failing(seconds=0.05)) as society:
        verdict, causes = await held(society)
        check(kind, verdict, agents, faulty=False)
        assert causes == []


@pytest.mark.parametrize("kind", KINDS)
async def test_a_store_that_is_locked(kind, tmp_path):
    path = tmp_path / "run.sqlite"
    agents = members(kind)
    async with SqliteTrace(path):
        pass
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    trace = SqliteTrace(path, patience=0.05)
    async with build(kind, agents, trace=trace) as society:
        with pytest.raises(TraceError, match="locked"):
            await held(society)
    with pytest.raises(TraceError):
        await trace.close()
    holder.rollback()
    holder.close()
    async with SqliteTrace(path) as trace, build(kind, agents, trace=trace) as society:
        verdict, _ = await held(society)
        check(kind, verdict, agents, faulty=False)
        assert await trace.verify() == []


@pytest.mark.parametrize("kind", KINDS)
async def test_a_client_that_leaves(kind):
    agents = members(kind, seconds=0.05)
    async with build(kind, agents, trace=MemoryTrace()) as society:
        task = await society.make_task("What is it?", choices=CHOICES)
        async with society.mindstorm(task) as storm:
            async for event in storm:
                if isinstance(event, Asked):
                    break
            await until(lambda: any(agent.running for agent in agents))
        assert not any(agent.running for agent in agents)
        verdict, _ = await held(society)
        check(kind, verdict, agents, faulty=False)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=["SIGTERM", "SIGKILL"])
async def test_a_process_that_is_ended_by(number, kind, tmp_path):
    path, asked = tmp_path / "run.sqlite", tmp_path / "asked"
    command = [sys.executable, faults.__file__, kind, str(path), str(asked)]
    first = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.DEVNULL)
    middle = 1 + sum(TURNS[kind]) // 2
    await until(lambda: first.returncode is not None or len(_lines(asked)) >= middle)
    if first.returncode is None:
        first.send_signal(number)
    assert await first.wait() == -number
    async with SqliteTrace(path, read_only=True) as trace:
        (storm,) = [one.mindstorm async for one in trace.mindstorms()]
        stored = {one.key async for one in trace.records(storm)}
    asked.write_text("")
    second = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    told, _ = await second.communicate()
    assert (second.returncode, told.strip()) == (0, b"cat")
    assert not stored & set(_lines(asked)), "no stored reply is asked for again"
    async with SqliteTrace(path) as trace:
        assert await trace.verify() == []


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []
