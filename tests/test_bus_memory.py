"""The bus within a process fulfils the contract, and passes events on without waiting."""

from __future__ import annotations

import asyncio

import pytest

from nlsom.bus import MemoryBus
from nlsom.errors import AgentFailed, BusClosed
from nlsom.testing.agents import Failing, Hanging, Saying
from nlsom.testing.bus import BusContract, until
from nlsom.testing.turns import make_turn


class TestMemoryBus(BusContract):
    @pytest.fixture
    async def bus(self):
        bus = MemoryBus()
        yield bus
        await bus.close()


async def test_an_idle_address_needs_no_task():
    bus = MemoryBus()
    before = asyncio.all_tasks()
    for number in range(1000):
        await bus.host(f"m{number}", Saying())
    assert asyncio.all_tasks() == before


async def test_a_caller_that_was_told_the_bus_is_closed_can_go_on():
    bus = MemoryBus()
    agent = Hanging()
    await bus.host("ann", agent)

    async def ask_and_go_on() -> str:
        try:
            await bus.request(make_turn(), to="ann")
        except Exception as error:
            await asyncio.sleep(0)  # A task that is still marked as cancelled would end here.
            return type(error).__name__
        return "answered"

    asking = asyncio.create_task(ask_and_go_on())
    await until(lambda: agent.asked == 1)
    await bus.close()
    assert await asking == "BusClosed"


async def test_another_bus_that_is_closed_is_a_failure_of_the_agent():
    bus = MemoryBus()
    await bus.host("ann", Failing(BusClosed("the NATS server is gone")))
    with pytest.raises(AgentFailed, match="BusClosed: the NATS server is gone"):
        await bus.request(make_turn(), to="ann")
    await bus.close()


async def test_a_time_out_of_the_agent_itself_is_no_deadline():
    class Impatient:
        async def speak(self, turn):
            raise TimeoutError("my own")

    bus = MemoryBus()
    await bus.host("ann", Impatient())
    with pytest.raises(TimeoutError, match="my own"):
        await bus.request(make_turn(), to="ann", deadline=asyncio.get_running_loop().time() + 60)
