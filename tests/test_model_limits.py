from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nlsom.errors import UsageError
from nlsom.model.limits import Limits, Slot, backoff, retry_after


class Holder:
    """A task that takes a slot, keeps it until it is told, and notes when it got it."""

    def __init__(self, limits: Limits, granted: list[Holder]) -> None:
        self.limits = limits
        self.granted = granted
        self.done = asyncio.Event()
        self.cap_when_granted = 0
        self.slot: Slot | None = None
        self.task = asyncio.ensure_future(self.hold())

    async def hold(self) -> None:
        async with self.limits.slot() as self.slot:
            self.granted.append(self)
            await self.done.wait()


async def settle() -> None:
    for _ in range(4):
        await asyncio.sleep(0)


OPERATIONS = st.lists(
    st.sampled_from(
        ["come", "come", "come", "leave", "cancel", "leave and cancel next", "refused", "served"]
    ),
    max_size=60,
)


@given(cap=st.integers(1, 4), operations=OPERATIONS, pick=st.randoms(use_true_random=False))
def test_whatever_happens_the_cap_holds_the_order_is_kept_and_no_slot_is_lost(cap, operations, pick):
    async def run() -> None:
        limits = Limits(cap)
        granted: list[Holder] = []
        came: list[Holder] = []
        for operation in operations:
            holding = [one for one in granted if not one.task.done()]
            waiting = [one for one in came if one not in granted and not one.task.done()]
            before = len(holding)
            if operation == "come":
                came.append(Holder(limits, granted))
            elif operation == "leave" and holding:
                pick.choice(holding).done.set()
            elif operation == "cancel" and (holding or waiting):
                pick.choice(holding + waiting).task.cancel()
            elif operation == "leave and cancel next" and holding and waiting:
                pick.choice(holding).done.set()
                await asyncio.sleep(0)  # the next in line has been granted the slot, and has not run yet
                waiting[0].task.cancel()
            elif operation == "refused" and holding:
                pick.choice(holding).slot.refused()
            elif operation == "served" and holding:
                pick.choice(holding).slot.served()
            await settle()
            holding = [one for one in granted if not one.task.done()]
            waiting = [one for one in came if one not in granted and not one.task.done()]
            assert limits.held == len(holding)
            assert limits.waiting == len(waiting)
            assert 1 <= limits.cap <= cap
            assert len(holding) <= max(limits.cap, before)
            assert not waiting or len(holding) >= limits.cap
        order = [came.index(one) for one in granted]
        assert order == sorted(order)
        for one in came:
            one.done.set()
        await asyncio.gather(*(one.task for one in came), return_exceptions=True)
        assert limits.held == limits.waiting == 0
        assert limits.free

    asyncio.run(run())


async def test_a_slot_granted_in_the_moment_of_a_cancel_goes_to_the_next():
    limits = Limits(1)
    granted: list[Holder] = []
    first, second, third = (Holder(limits, granted) for _ in range(3))
    await settle()
    first.done.set()
    await asyncio.sleep(0)
    second.task.cancel()
    await settle()
    assert granted == [first, third]
    third.done.set()
    await asyncio.wait([first.task, second.task, third.task])
    assert second.task.cancelled()
    assert limits.held == 0


async def test_an_error_gives_the_slot_back():
    limits = Limits(1)
    with pytest.raises(ValueError, match="inside"):
        async with limits.slot():
            raise ValueError("inside")
    assert limits.free


async def test_refusals_of_requests_in_flight_together_halve_the_cap_once():
    limits = Limits(16)
    slots = [limits.slot() for _ in range(16)]
    for slot in slots:
        await slot.__aenter__()
    for slot in slots:
        slot.refused()
    assert limits.cap == 8
    async with asyncio.TaskGroup() as group:
        for slot in slots:
            group.create_task(slot.__aexit__(None, None, None))
    async with limits.slot() as slot:
        slot.refused()
    assert limits.cap == 4


async def test_the_cap_never_falls_under_one_and_grows_back_to_where_it_was():
    limits = Limits(8)
    for _ in range(6):
        async with limits.slot() as slot:
            slot.refused()
    assert limits.cap == 1
    caps = []
    for _ in range(60):
        async with limits.slot() as slot:
            slot.served()
        caps.append(limits.cap)
    assert all(later - earlier in (0, 1) for earlier, later in pairwise(caps))
    assert caps[-1] == 8


async def test_waiters_set_no_timers_so_they_do_not_poll(monkeypatch):
    loop = asyncio.get_running_loop()
    timers = []
    monkeypatch.setattr(loop, "call_at", lambda when, *rest, **named: timers.append(when))
    limits = Limits(1)
    granted: list[Holder] = []
    holders = [Holder(limits, granted) for _ in range(100)]
    await settle()
    assert limits.waiting == 99
    for one in holders:
        one.done.set()
    await asyncio.gather(*(one.task for one in holders))
    assert granted == holders
    assert timers == []


async def test_a_pause_grants_nothing_and_then_goes_on_in_order():
    limits = Limits(2)
    granted: list[Holder] = []
    first = Holder(limits, granted)
    await settle()
    limits.pause(0.05)
    limits.pause(0.01)  # a shorter one does not end the longer
    began = asyncio.get_running_loop().time()
    later = [Holder(limits, granted) for _ in range(3)]
    for one in (first, *later):
        one.done.set()
    await first.task  # gives its slot back, to nobody yet
    await settle()
    assert granted == [first]
    assert not limits.free
    await asyncio.gather(*(one.task for one in later))
    assert asyncio.get_running_loop().time() - began >= 0.045
    assert granted == [first, *later]


async def test_the_rate_spreads_the_starts_and_a_cancel_while_waiting_for_it_gives_the_slot_back():
    limits = Limits(8, per_second=20)
    began = asyncio.get_running_loop().time()
    for _ in range(21):
        async with limits.slot():
            pass
    assert asyncio.get_running_loop().time() - began >= 0.95
    limits = Limits(8, per_second=0.001)
    async with limits.slot():
        pass
    waiting = asyncio.ensure_future(limits.acquire())
    await settle()
    assert limits.held == 1
    waiting.cancel()
    await asyncio.wait([waiting])
    assert limits.held == 0


@pytest.mark.parametrize(("cap", "rate"), [(0, None), (1, 0.0), (1, -1.0)])
def test_limits_that_let_nothing_through_are_refused(cap, rate):
    with pytest.raises(UsageError, match="nothing through"):
        Limits(cap, rate)


@given(attempt=st.integers(1, 5000), draw=st.floats(0, 1))
def test_a_wait_is_jittered_over_an_exponential_range_that_is_bounded(attempt, draw):
    waited = backoff(attempt, first=0.5, longest=30, jitter=lambda low, high: low + draw * (high - low))
    assert waited == pytest.approx(draw * min(30, 0.5 * 2 ** min(attempt - 1, 10)))


@given(after=st.floats(0, 1e9), attempt=st.integers(1, 50))
def test_a_wait_is_never_shorter_than_the_server_asks_up_to_the_longest(after, attempt):
    waited = backoff(attempt, first=0.5, longest=30, after=after)
    assert min(after, 30) <= waited <= min(after, 30) + 0.5


NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("", None),
        ("soon", None),
        ("-3", None),
        ("1.5", None),
        ("0", 0.0),
        (" 120 ", 120.0),
        ("9" * 400, 999999999.0),
        ("Fri, 99999999999 Jan 2026 03:04:35 GMT", None),
        ("Fri, 02 Jan 2026 03:04:35 GMT", 30.0),
        ("Fri, 02 Jan 2026 03:04:35 -0000", 30.0),
        ("Fri, 02 Jan 2026 03:00:00 GMT", 0.0),
    ],
)
def test_retry_after_is_read_as_seconds_or_as_a_date(header, seconds):
    assert retry_after(header, now=NOW) == seconds


@given(st.text())
def test_any_retry_after_is_read_without_an_error(header):
    seconds = retry_after(header)
    assert seconds is None or seconds >= 0
