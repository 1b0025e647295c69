"""The contract of buses as tests. Subclass `BusContract`, give it a fixture `bus`, and run pytest."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from nlsom.bus.contract import Bus
from nlsom.errors import BusClosed, DeadlineExceeded, NlsomError, UnknownAddress, UsageError
from nlsom.event import Event, Lagged, RoundClosed, Stopped
from nlsom.message import Usage
from nlsom.testing.agents import Failing, Hanging, Saying
from nlsom.testing.turns import make_turn


def _closed(mindstorm: str, round: int) -> RoundClosed:
    return RoundClosed(mindstorm=mindstorm, phase="p", round=round, asked=1, replied=1, usage=Usage())


async def until(true: Callable[[], bool]) -> None:
    """Lets other tasks run until a condition is true."""
    for _ in range(10_000):
        if true():
            return
        await asyncio.sleep(0.001)
    raise AssertionError("it never came true")


class BusContract:
    """The contract of `nlsom.bus.Bus`, as tests."""

    async def test_a_request_brings_back_what_the_agent_said(self, bus: Bus) -> None:
        await bus.host("ann", Saying("hello"))
        said = await bus.request(make_turn(), to="ann")
        assert said is not None
        assert said.text == "hello"

    async def test_nothing_to_say_comes_back_as_none(self, bus: Bus) -> None:
        await bus.host("ann", Saying(lambda turn: None))
        assert await bus.request(make_turn(), to="ann") is None

    async def test_replies_go_to_those_who_asked(self, bus: Bus) -> None:
        await bus.host("ann", Saying(lambda turn: turn.ask, seconds=0.001))
        turns = [make_turn(ask=f"question {n}") for n in range(50)]
        replies = await asyncio.gather(*(bus.request(turn, to="ann") for turn in turns))
        assert [said.text for said in replies if said] == [turn.ask for turn in turns]

    async def test_a_failure_is_raised_where_it_was_asked(self, bus: Bus) -> None:
        await bus.host("ann", Failing(ValueError("no such thing")))
        with pytest.raises(Exception, match="no such thing"):
            await bus.request(make_turn(), to="ann")

    async def test_a_failure_hurts_no_other_request(self, bus: Bus) -> None:
        await bus.host("ann", Failing(times=1, then="well"))
        await bus.host("bob", Saying("fine", seconds=0.01))
        first = await asyncio.gather(
            bus.request(make_turn(), to="ann"), bus.request(make_turn(), to="bob"), return_exceptions=True
        )
        assert isinstance(first[0], Exception)
        assert not isinstance(first[1], BaseException)
        again = await bus.request(make_turn(), to="ann")
        assert again is not None

    async def test_an_unknown_address_is_said_by_name(self, bus: Bus) -> None:
        with pytest.raises(UnknownAddress, match="nobody"):
            await bus.request(make_turn(), to="nobody")

    async def test_agents_are_described_by_their_identities(self, bus: Bus) -> None:
        await bus.host("ann", Saying(identity="ann/1"))
        await bus.host("bob", Saying(identity="bob/2"))
        assert await bus.describe(["bob", "ann", "bob"]) == ["bob/2", "ann/1", "bob/2"]
        with pytest.raises(UnknownAddress, match="nobody"):
            await bus.describe(["ann", "nobody"])

    async def test_an_address_is_hosted_once(self, bus: Bus) -> None:
        await bus.host("ann", Saying())
        with pytest.raises(UsageError, match="ann"):
            await bus.host("ann", Saying())

    async def test_no_more_turns_at_once_than_the_limit(self, bus: Bus) -> None:
        agent = Saying(seconds=0.002)
        await bus.host("ann", agent, limit=3)
        await asyncio.gather(*(bus.request(make_turn(ask=str(n)), to="ann") for n in range(20)))
        assert agent.most == 3

    async def test_a_late_answer_is_an_error_and_the_agent_is_cancelled(self, bus: Bus) -> None:
        agent = Hanging()
        await bus.host("ann", agent)
        deadline = asyncio.get_running_loop().time() + 0.05
        with pytest.raises(DeadlineExceeded):
            await bus.request(make_turn(), to="ann", deadline=deadline)
        await until(lambda: agent.cancelled == 1)

    async def test_cancelling_a_request_cancels_the_agent(self, bus: Bus) -> None:
        agent = Hanging()
        await bus.host("ann", agent)
        request = asyncio.create_task(bus.request(make_turn(), to="ann"))
        await until(lambda: agent.asked == 1)
        request.cancel()
        with pytest.raises(asyncio.CancelledError):
            await request
        await until(lambda: agent.cancelled == 1)

    async def test_a_cancelled_request_gives_its_place_to_the_next(self, bus: Bus) -> None:
        agent = Saying(seconds=0.01)
        await bus.host("ann", agent, limit=1)
        requests = [asyncio.create_task(bus.request(make_turn(ask=str(n)), to="ann")) for n in range(4)]
        await asyncio.sleep(0)
        requests[1].cancel()
        done = await asyncio.gather(*requests, return_exceptions=True)
        assert sum(not isinstance(one, BaseException) for one in done) == 3

    async def test_closing_tells_all_who_wait(self, bus: Bus) -> None:
        agent = Hanging()
        await bus.host("ann", agent)
        requests = [asyncio.create_task(bus.request(make_turn(ask=str(n)), to="ann")) for n in range(5)]
        await until(lambda: agent.asked == 5)
        await bus.close()
        done = await asyncio.gather(*requests, return_exceptions=True)
        assert all(isinstance(one, BusClosed) for one in done)
        await until(lambda: agent.cancelled == 5)

    async def test_a_closed_bus_takes_no_request(self, bus: Bus) -> None:
        await bus.close()
        with pytest.raises(BusClosed):
            await bus.request(make_turn(), to="ann")
        with pytest.raises(BusClosed):
            await bus.host("ann", Saying())

    async def test_listeners_hear_the_events_of_their_mindstorm_in_order(self, bus: Bus) -> None:
        async with bus.listen("one") as events:
            for number in range(3):
                bus.publish(_closed("one", number))
                bus.publish(_closed("two", number))
            bus.publish(Stopped(mindstorm="one", reason="over"))
            heard = [event async for event in events]
        assert [event.round for event in heard if isinstance(event, RoundClosed)] == [0, 1, 2]
        assert isinstance(heard[-1], Stopped), "the iterator ends after the last event"
        assert {event.mindstorm for event in heard} == {"one"}

    async def test_a_listener_to_all_hears_every_mindstorm(self, bus: Bus) -> None:
        async with bus.listen() as events:
            bus.publish(_closed("one", 1))
            bus.publish(_closed("two", 1))
            heard = [await anext(events), await anext(events)]
        assert [event.mindstorm for event in heard] == ["one", "two"]

    async def test_a_slow_listener_misses_the_oldest_and_is_told(self, bus: Bus) -> None:
        async with bus.listen("one", backlog=3) as events:
            for number in range(10):
                bus.publish(_closed("one", number))
            bus.publish(Stopped(mindstorm="one", reason="over"))
            await self.settle()
            heard: list[Event] = [event async for event in events]
        assert isinstance(heard[0], Lagged)
        assert heard[0].missed == 8
        assert isinstance(heard[-1], Stopped), "the last event is never the one that is missed"

    async def test_two_who_wait_for_the_same_events_are_told_and_do_not_wait_for_ever(self, bus: Bus) -> None:
        async with bus.listen("one") as events:
            first = asyncio.ensure_future(anext(events))
            await asyncio.sleep(0)
            with pytest.raises(NlsomError, match="listen once for each"):
                await anext(events)
            bus.publish(Stopped(mindstorm="one", reason="over"))
            assert isinstance(await first, Stopped)

    async def test_nobody_listens_until_somebody_does(self, bus: Bus) -> None:
        assert not bus.observed
        async with bus.listen("one"):
            assert bus.observed
        assert not bus.observed

    async def test_closing_ends_listeners(self, bus: Bus) -> None:
        async with bus.listen("one") as events:
            await bus.close()
            assert [event async for event in events] == []

    settle: Callable[[], Awaitable[None]] = staticmethod(lambda: asyncio.sleep(0))
    """Waits until published events have reached listeners; to be overridden if that takes time."""
