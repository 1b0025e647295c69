"""How many requests a server gets: in flight, per second, and when to try again."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import floor
from types import TracebackType

from asyncio_throttle.throttler import Throttler

from nlsom.budget import calling
from nlsom.errors import UsageError


class Limits:
    """A cap on the requests in flight at one server, shared by all who use this object.

    Slots are granted first come, first served, without polling. The cap adapts like TCP's congestion window:
    it is halved when the server refuses a request (once for all that were in flight together). Then it grows
    by one per success until half of its former value, and from there by one per `cap` successes, never above
    `cap`.

        async with limits.slot() as slot:
            ...
            slot.refused()      # or slot.served()

    Args:
        cap: Most requests in flight.
        per_second: Most requests started per second; None for no limit.

    Raises:
        UsageError: They would let nothing through.
    """

    def __init__(self, cap: int, per_second: float | None = None) -> None:
        if cap < 1:
            raise UsageError(f"a cap of {cap} lets nothing through; give 1 or more")
        if per_second is not None and per_second <= 0:
            raise UsageError(f"{per_second} requests a second let nothing through; give more than 0")
        self.most = cap
        self.held = 0
        self._cap = float(cap)
        self._threshold = float(cap)
        self._era = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._resume: asyncio.TimerHandle | None = None
        self._throttle = _throttle(per_second) if per_second else None

    @property
    def cap(self) -> int:
        """Requests that may be in flight at present."""
        return int(self._cap)

    @property
    def waiting(self) -> int:
        """How many wait for a slot."""
        return len(self._waiting)

    @property
    def free(self) -> bool:
        """Whether a slot could be had without waiting."""
        return self.held < self.cap and self._resume is None

    def slot(self) -> Slot:
        """One place in flight, for an `async with` block."""
        return Slot(self)

    def pause(self, seconds: float) -> None:
        """Grants no slots for a time; those who wait keep their order."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        if self._resume is not None:
            until = max(until, self._resume.when())
            self._resume.cancel()
        self._resume = loop.call_at(until, self._end_pause)

    async def acquire(self) -> int:
        """Waits for a slot, and then for the rate per second.

        Returns:
            The era in which the slot was granted, for `shrink`.
        """
        if self.free:
            self.held += 1
        else:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(waiter)
            try:
                await waiter
            except asyncio.CancelledError:
                if not waiter.cancelled():
                    self.release()  # it was granted just before the cancellation arrived
                elif waiter in self._waiting:
                    self._waiting.remove(waiter)
                raise
        if self._throttle is not None:
            # Its waiters poll, but there are never more of them than slots.
            try:
                await self._throttle.acquire()
            except asyncio.CancelledError:
                self.release()
                raise
        return self._era

    def release(self) -> None:
        """Gives a slot back."""
        self.held -= 1
        self._grant()

    def shrink(self, era: int) -> None:
        """The server refused a request of that era: halves the cap, once per era."""
        if era == self._era:
            self._era += 1
            self._cap = self._threshold = max(1.0, self._cap / 2)

    def grow(self) -> None:
        """The server answered a request: lets the cap grow."""
        if self._cap < self.most:
            step = 1.0 if self._cap < self._threshold else 1.0 / self._cap
            self._cap = min(float(self.most), self._cap + step)
            self._grant()

    def _end_pause(self) -> None:
        self._resume = None
        self._grant()

    def _grant(self) -> None:
        # Called after every change. So whoever waits does so because of a full cap or a pause, and nobody who
        # comes later finds a free slot first.
        while self._waiting and self.held < self.cap and self._resume is None:
            waiter = self._waiting.popleft()
            if not waiter.done():
                self.held += 1
                waiter.set_result(None)


class Slot:
    """A place in flight, held inside an `async with` block."""

    __slots__ = ("_era", "_limits")

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._era = -1

    async def __aenter__(self) -> Slot:
        calls = calling.get()
        if calls is not None:
            calls.add(0)
        self._era = await self._limits.acquire()
        if calls is not None:
            calls.add(1)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._limits.release()

    def served(self) -> None:
        """Says that the server answered."""
        self._limits.grow()

    def refused(self) -> None:
        """Says that the server was too busy."""
        self._limits.shrink(self._era)


def _throttle(per_second: float) -> Throttler:
    """A throttler for the rate, as a whole number of starts per period, which is what it counts."""
    starts = max(1, floor(per_second))
    return Throttler(rate_limit=starts, period=starts / per_second)


def backoff(
    attempt: int,
    *,
    first: float,
    longest: float,
    after: float | None = None,
    jitter: Callable[[float, float], float] = random.uniform,
) -> float:
    """Seconds to wait before a retry: exponential with full jitter, and not before the server allows it.

    Args:
        attempt: How many attempts have failed, from 1.
        first: Longest wait after the first failure, in seconds.
        longest: Longest wait in any case, in seconds.
        after: What the server asked for (Retry-After), in seconds.
        jitter: Draws a number between two.
    """
    # The exponent is bounded because a float is: 2.0 ** 1024 overflows.
    spread = jitter(0.0, min(longest, first * 2.0 ** min(attempt - 1, 32)))
    return spread if after is None else min(longest, max(after, 0.0)) + min(spread, first)


def retry_after(header: str | None, *, now: datetime | None = None) -> float | None:
    """Seconds that a Retry-After header asks for (RFC 9110, section 10.2.3); None if it has no meaning."""
    if header is None:
        return None
    text = header.strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        when = parsedate_to_datetime(text)
        if when.tzinfo is None:
            when = when.replace(tzinfo=UTC)
        return max(0.0, (when - (now or datetime.now(UTC))).total_seconds())
    except (ValueError, OverflowError):  # not a date, or one out of range
        return None
