"""The bus across machines keeps to the contract, and to its promises when machines do not."""

from __future__ import annotations

import asyncio
import signal
import sys
from contextlib import AsyncExitStack, asynccontextmanager
from types import SimpleNamespace

import pytest

from nlsom.bus.nats import NatsBus
from nlsom.errors import (
    AgentFailed,
    BusClosed,
    PluginError,
    Unavailable,
    UnknownAddress,
    WorkerLost,
    WorkerRefused,
)
from nlsom.message import Said
from nlsom.phase import Ask, Inline
from nlsom.task import VqaTask
from nlsom.testing.agents import VOTE, Failing, Hanging, Saying, panel
from nlsom.testing.bus import BusContract, until
from nlsom.testing.nats import NatsServer
from nlsom.testing.pictures import plain
from nlsom.testing.turns import make_message, make_turn
from nlsom.trace import SqliteTrace


@pytest.fixture
async def server():
    async with NatsServer() as server:
        yield server


class TestNatsBus(BusContract):
    @pytest.fixture
    async def bus(self, server):
        async with NatsBus(server.url) as bus:
            yield bus

    settle = staticmethod(lambda: asyncio.sleep(0))


HURRY = {"beat": 0.1, "silence": 0.6, "patience": 2.0}
"""Times for tests: short, but nothing is asserted to be quicker than they say."""


@asynccontextmanager
async def buses(server, number, **options):
    async with AsyncExitStack() as stack:
        yield [
            await stack.enter_async_context(NatsBus(server.url, **{**HURRY, **options}))
            for _ in range(number)
        ]


async def test_a_society_asks_members_wherever_they_are(server, tmp_path):
    path = tmp_path / "run.sqlite"
    seen = []

    class Looking:
        identity = "looking/1"

        async def speak(self, turn):
            seen.append(await turn.media.read(turn.task.images[0]))
            return Said.words(f"{turn.member.name} hears {len(turn.heard)}", answer="yes")

    phases = [
        Ask(ask="everyone", prompt=Inline(text="Look, {{ member.name }}."), label="look"),
        VOTE,
    ]
    here = panel([Saying("never asked here", identity="saying/1") for _ in range(3)], phases)
    async with buses(server, 3) as (caller, one, two):
        await one.host("m0", Looking())
        await one.host("m1", Looking())
        await two.host("m2", Looking())
        here.bus = caller
        async with SqliteTrace(path) as trace:
            here.trace = trace
            async with here:
                assert here.program.identities == ("looking/1",) * 3
                verdict = await here.ask("Is it red?", images=[plain("red")])
                assert verdict.answer == "yes"
                assert verdict.tally == {"yes": 3.0}
                assert len(seen) == 6
                assert len(set(seen)) == 1, "every worker saw the same picture"
                again = await here.ask("Is it red?", images=[plain("red")])
    assert again.answer == "yes"
    assert len(seen) == 6, "what the trace holds is asked of no worker again"


async def test_a_member_whom_nobody_hosts_is_named_before_anything_is_asked(server):
    agent = Saying("yes", identity="saying/1")
    here = panel([agent, agent])
    async with buses(server, 2) as (caller, worker):
        here.bus = caller
        with pytest.raises(UnknownAddress, match="'m0'"):
            async with here:
                pass
        await worker.host("m0", agent)
        with pytest.raises(UnknownAddress, match="'m1'"):
            async with here:
                pass
        await worker.host("m1", agent)
        async with here:
            assert (await here.ask("Is it?")).answer == "yes"


async def test_workers_with_the_same_member_share_its_load(server):
    agents = [Saying("yes", seconds=0.01) for _ in range(3)]
    async with buses(server, 4) as (caller, *workers):
        for worker, agent in zip(workers, agents, strict=True):
            await worker.host("ann", agent)
        await caller.describe(["ann"])
        await until(lambda: len(caller._parts[0].roster.hosting("ann")) == 3)
        await asyncio.gather(*(caller.request(make_turn(ask=str(n)), to="ann") for n in range(60)))
    assert sorted(len(agent.turns) for agent in agents) == [20, 20, 20]


async def test_workers_share_the_load_of_several_schedulers(server):
    agents = [Saying("yes", seconds=0.05) for _ in range(3)]
    async with buses(server, 5) as (one, two, *workers):
        for worker, agent in zip(workers, agents, strict=True):
            await worker.host("ann", agent)
        for caller in (one, two):
            await caller.describe(["ann"])
            await until(lambda caller=caller: len(caller._parts[0].roster.hosting("ann")) == 3)
        asks = [caller.request(make_turn(ask=str(n)), to="ann") for n in range(30) for caller in (one, two)]
        await asyncio.gather(*asks)
        assert [len(agent.turns) for agent in agents] == [20, 20, 20]
        for n in range(30):  # One at a time: all are idle, and any may get it, not always the same.
            await one.request(make_turn(ask=f"alone {n}"), to="ann")
    assert all(len(agent.turns) > 20 for agent in agents)


async def test_a_closing_workers_turns_are_asked_elsewhere(server):
    slow, quick = Hanging(), Saying("well")
    async with buses(server, 2) as (caller, second):
        async with NatsBus(server.url, **HURRY) as first:
            await first.host("ann", slow)
            asking = asyncio.create_task(caller.request(make_turn(), to="ann"))
            await until(lambda: slow.asked == 1)
            await second.host("ann", quick)
        said = await asking
    assert said.text == "well"
    assert slow.cancelled == 1


async def test_a_worker_that_leaves_answers_what_it_has_begun_and_takes_no_more(server):
    old, new = Saying("old", seconds=0.2), Saying("new")
    async with buses(server, 3) as (caller, leaving, staying):
        await leaving.host("ann", old)
        begun = asyncio.create_task(caller.request(make_turn(ask="one"), to="ann"))
        await until(lambda: old.running == 1)
        await staying.host("ann", new)
        await leaving.leave(5)
        assert (await caller.request(make_turn(ask="two"), to="ann")).text == "new"
        assert (await begun).text == "old"


WORKER = """
import asyncio, os, sys
from nlsom.bus.nats import NatsBus
from nlsom.message import Said

class Agent:
    identity = "agent/1"
    async def speak(self, turn):
        if turn.ask == "hang":
            print("asked", flush=True)
            await asyncio.sleep(3600)
        return Said.words(str(os.getpid()))

async def main():
    async with NatsBus(sys.argv[1], beat=0.1, silence=0.6) as bus:
        await bus.host("ann", Agent())
        print("ready", flush=True)
        await asyncio.sleep(3600)

asyncio.run(main())
"""


def asked(process):
    """Waits until the worker says that it was asked, or whoever asks has failed."""

    async def wait(asking):
        line = asyncio.create_task(process.stdout.readline())
        await asyncio.wait({asking, line}, return_when=asyncio.FIRST_COMPLETED)
        if asking.done():
            line.cancel()
            await asking
        assert await line == b"asked\n"

    return wait


@asynccontextmanager
async def worker_process(server):
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", WORKER, server.url, stdout=asyncio.subprocess.PIPE
    )
    try:
        assert await process.stdout.readline() == b"ready\n"
        yield process, asked(process)
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGCONT)
            process.kill()
        await process.communicate()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
async def test_a_worker_that_dies_or_hangs_is_noticed_and_its_turn_asked_elsewhere(server, how):
    async with buses(server, 2) as (caller, other), worker_process(server) as (process, was_asked):
        asking = asyncio.create_task(caller.request(make_turn(ask="hang"), to="ann"))
        await was_asked(asking)
        agent = Saying("from the other", identity="agent/1")
        await other.host("ann", agent)
        process.send_signal(how)
        assert (await asking).text == "from the other"


async def test_a_member_whose_only_worker_died_is_given_up_by_name(server):
    async with buses(server, 1) as (caller,), worker_process(server) as (process, was_asked):
        asking = asyncio.create_task(caller.request(make_turn(ask="hang"), to="ann"))
        await was_asked(asking)
        process.kill()
        with pytest.raises(WorkerLost, match="'ann'"):
            await asking


async def test_a_worker_cancels_the_turns_of_a_caller_that_is_gone(server):
    agent = Hanging()
    async with buses(server, 1) as (worker,):
        await worker.host("ann", agent)
        code = (
            "import asyncio, sys\nfrom nlsom.bus.nats import NatsBus\n"
            "from nlsom.testing.turns import make_turn\n"
            "async def main():\n async with NatsBus(sys.argv[1]) as bus:\n"
            "  await bus.request(make_turn(), to='ann')\nasyncio.run(main())"
        )
        caller = await asyncio.create_subprocess_exec(sys.executable, "-c", code, server.url)
        await until(lambda: agent.asked == 1)
        caller.kill()
        await caller.wait()
        await until(lambda: agent.cancelled == 1)


async def test_a_server_that_is_restarted_loses_no_turn(server):
    agent = Saying(lambda turn: turn.ask, seconds=0.3)
    async with buses(server, 2) as (caller, worker):
        await worker.host("ann", agent)
        await caller.describe(["ann"])
        asking = [asyncio.create_task(caller.request(make_turn(ask=str(n)), to="ann")) for n in range(40)]
        await until(lambda: agent.running > 0)
        await server.stop()
        late = asyncio.create_task(caller.request(make_turn(ask="while it is away"), to="ann"))
        await until(lambda: agent.running == 0)  # Their answers come while nobody carries them.
        await server.start()
        assert [said.text for said in await asyncio.gather(*asking)] == [str(n) for n in range(40)]
        assert (await late).text == "while it is away"


async def test_a_server_that_freezes_and_thaws_loses_no_turn(server):
    agent = Saying(lambda turn: turn.ask, seconds=0.05)
    async with buses(server, 2, silence=10.0) as (caller, worker):
        await worker.host("ann", agent)
        await caller.describe(["ann"])
        asking = [asyncio.create_task(caller.request(make_turn(ask=str(n)), to="ann")) for n in range(40)]
        await until(lambda: agent.running > 0)
        server.freeze()
        await asyncio.sleep(0.3)
        server.thaw()
        assert [said.text for said in await asyncio.gather(*asking)] == [str(n) for n in range(40)]
    assert len(agent.turns) == 40, "and asks none of them twice"


async def test_a_server_that_does_not_come_back_ends_those_who_wait():
    agent = Hanging()
    async with NatsServer() as server, buses(server, 2, patience=1.5) as (caller, worker):
        await worker.host("ann", agent)
        asking = asyncio.create_task(caller.request(make_turn(), to="ann"))
        await until(lambda: agent.asked == 1)
        await server.stop()
        with pytest.raises(BusClosed, match="the NATS server is gone"):
            await asking
        with pytest.raises(BusClosed, match="the NATS server is gone"):
            await worker.gone()


async def test_a_fault_on_the_way_out_ends_those_who_wait_and_the_bus_says_so(server, monkeypatch, caplog):
    def broken(*_):
        raise TypeError("a fault of nlsom")

    agent = Hanging()
    async with buses(server, 2) as (caller, worker):
        await worker.host("ann", agent)
        waiting = asyncio.create_task(caller.request(make_turn(), to="ann"))
        await until(lambda: agent.asked == 1)
        monkeypatch.setattr("nlsom.bus.nats.packer.Packer.pack", broken)
        told = "the bus failed .TypeError: a fault of nlsom."
        with pytest.raises(BusClosed, match=told):
            await caller.request(make_turn(round=2), to="ann")
        with pytest.raises(BusClosed, match=f"{told} while 'ann' was asked"):
            await waiting
        with pytest.raises(BusClosed, match=told):
            await caller.request(make_turn(round=3), to="ann")
        with pytest.raises(BusClosed, match=told):
            await caller.gone()
    assert "Packer" in caplog.text or "broken" in caplog.text, "the log has the traceback"


async def test_a_worker_that_cannot_send_answers_any_more_says_so(server, monkeypatch):
    agent = Saying("yes")
    async with buses(server, 2) as (caller, worker):
        await worker.host("ann", agent)
        assert (await caller.request(make_turn(), to="ann")).text == "yes"

        async def broken(*_):
            raise TypeError("a fault of nlsom")

        monkeypatch.setattr("nlsom.bus.nats.worker.Host._try_send", broken)
        asking = asyncio.create_task(caller.request(make_turn(round=2), to="ann"))
        with pytest.raises(BusClosed, match="the bus failed"):
            await worker.gone()
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)


async def test_a_kind_of_task_that_a_worker_does_not_have_is_said_and_not_sent_for_ever(server):
    class Strange(VqaTask):
        kind = "strange"

    async with buses(server, 2) as (caller, worker):
        await worker.host("ann", Saying("yes"))
        turn = make_turn(task=Strange)
        with pytest.raises(PluginError, match="strange"):
            await caller.request(turn, to="ann")


async def test_no_server_is_said(unused_tcp_port):
    with pytest.raises(Unavailable, match="no NATS server at nats://127.0.0.1"):
        async with NatsBus(f"nats://user:secret@127.0.0.1:{unused_tcp_port}", patience=0.3):
            pass


async def test_a_worker_of_another_society_version_or_agent_refuses_by_name(server, monkeypatch):
    async with buses(server, 1, digest="one") as (worker,):
        agent = Saying(identity="saying/1")
        await worker.host("ann", agent)
        async with NatsBus(server.url, digest="two") as caller:
            with pytest.raises(WorkerRefused, match="hosts another society of this name"):
                await caller.request(make_turn(), to="ann")
        async with NatsBus(server.url, digest="one") as caller:
            assert await caller.describe(["ann"]) == ["saying/1"]
            agent.identity = "saying/2"  # The model behind it was exchanged meanwhile.
            with pytest.raises(WorkerRefused, match="'saying/2', and this run began with 'saying/1'"):
                await caller.request(make_turn(), to="ann")
        monkeypatch.setattr("nlsom.bus.nats.roster.WIRE", 99)
        monkeypatch.setattr("nlsom.bus.nats.wire.WIRE", 99)
        async with NatsBus(server.url, digest="one") as caller:
            with pytest.raises(WorkerRefused, match="run different versions of nlsom"):
                await caller.request(make_turn(), to="ann")


async def test_workers_that_speak_for_a_member_differently_are_named(server):
    async with buses(server, 3) as (caller, one, two):
        await one.host("ann", Saying(identity="model a"))
        await two.host("ann", Saying(identity="model b"))
        await until(lambda: len(caller._parts[0].roster.hosting("ann")) == 2)
        with pytest.raises(WorkerRefused, match="'ann' differently"):
            await caller.describe(["ann"])


async def test_long_talks_and_long_answers_go_round_the_payload_limit(server):
    heard = [make_message("x" * 9_000, sender=f"m{n}") for n in range(300)]
    agent = Saying(lambda turn: str(len(turn.heard)) + "y" * 2_000_000)
    async with buses(server, 2) as (caller, worker):
        await worker.host("ann", agent)
        said = await caller.request(make_turn(heard=heard), to="ann")
        assert said.text == "300" + "y" * 2_000_000
        assert agent.turns[0].heard[7] == heard[7]
        with pytest.raises(Exception, match="max_payload"):
            await caller.request(make_turn(ask="z" * 2_000_000), to="ann")
        with pytest.raises(Exception, match="JSON"):
            await caller.request(make_turn(ask="half a \ud83d"), to="ann")
        assert (await caller.request(make_turn(), to="ann")).text.startswith("0y")


async def test_what_a_worker_forgot_is_sent_again(server):
    heard = [make_message("hello")]
    agent = Saying(lambda turn: turn.heard[0].text)
    async with buses(server, 2) as (caller, worker):
        await worker.host("ann", agent)
        assert (await caller.request(make_turn(heard=heard), to="ann")).text == "hello"
        worker._parts[1]._unpackers.clear()
        own = [make_message("mine", sender="ann")]
        assert (await caller.request(make_turn(heard=heard, own=own), to="ann")).text == "hello"
        assert agent.turns[-1].own == tuple(own)


async def test_turns_that_hear_the_same_share_a_transcript_on_the_worker(server):
    agent = Saying()
    async with buses(server, 2) as (caller, worker):
        await worker.host("ann", agent)
        heard = [make_message("hello")]
        turns = [make_turn(ask=str(n), heard=heard) for n in range(5)]
        await asyncio.gather(*(caller.request(turn, to="ann") for turn in turns))
    assert len({id(turn.heard) for turn in agent.turns}) == 1
    assert {turn.key for turn in agent.turns} == {turn.key for turn in turns}
    assert {(t.ask, t.form, t.seed, t.member, t.task) for t in map(values, agent.turns)} == {
        (t.ask, t.form, t.seed, t.member, t.task) for t in map(values, turns)
    }


def values(turn):
    return SimpleNamespace(
        ask=turn.ask, form=repr(turn.form), seed=turn.seed, member=turn.member, task=turn.task.digest
    )


async def test_pictures_need_jetstream_and_that_is_said():
    async with NatsServer(jetstream=False) as server, buses(server, 2) as (caller, worker):
        await worker.host("ann", Saying())
        with pytest.raises(Unavailable, match="start the server with -js"):
            await caller.request(make_turn(pictures=[plain("red")]), to="ann")
        assert (await caller.request(make_turn(), to="ann")).text == "yes"


class Panic(BaseException):
    """As a library written in Rust raises it."""


class Wordless(Exception):
    def __str__(self):
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    ("error", "told"),
    [(Panic("out of bounds"), "out of bounds"), (Wordless(), "^$"), (ValueError("a\ud800"), "a\ufffd")],
)
async def test_whatever_an_agent_raises_on_a_worker_reaches_who_asked(server, error, told):
    async with buses(server, 2) as (worker, caller):
        await worker.host("ann", Failing(error))
        with pytest.raises(AgentFailed, match=told) as raised:
            await asyncio.wait_for(caller.request(make_turn(), to="ann"), 10)
        assert type(raised.value).__name__ == type(error).__name__


async def test_half_a_surrogate_pair_from_a_worker_is_replaced_as_it_is_within_a_process(server):
    async with buses(server, 2) as (worker, caller):
        await worker.host("ann", Saying("cat \ud83d"))
        said = await asyncio.wait_for(caller.request(make_turn(), to="ann"), 10)
        assert said is not None
        assert said.text == "cat \ufffd"
