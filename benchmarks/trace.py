"""The durable trace: outcomes per second, overhead in a debate, mindstorms per second.

    python benchmarks/trace.py [--folder .]

Measures the disk of the folder. Ratios within one run are comparable; absolute figures depend on the machine.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from pathlib import Path
from typing import Literal

from nlsom.message import Said
from nlsom.phase import Ask, Hears, Inline, Repeat
from nlsom.testing.agents import VOTE, Saying, panel
from nlsom.testing.traces import header, record
from nlsom.trace import Record, SqliteTrace
from nlsom.turn import Turn

Level = Literal["NORMAL", "FULL"]
ROUNDS = 3
LATEST = Hears(scope="latest")


class Slow:
    """Answers after 10 ms."""

    identity = "slow/1"

    async def speak(self, turn: Turn) -> Said:
        """Says yes."""
        await asyncio.sleep(0.010)
        return Said.words("yes")


class Counting(SqliteTrace):
    """Records the largest backlog of appended records that are not durable yet."""

    waiting = 0
    greatest = 0

    def append(self, record: Record) -> None:
        """Appends a record and counts it."""
        self.waiting += 1
        self.greatest = max(self.greatest, self.waiting)
        super().append(record)

    async def durable(self) -> None:
        """Waits for durability and reduces the backlog."""
        before = self.waiting
        await super().durable()
        self.waiting = max(0, self.waiting - before)


async def outcomes(folder: Path, level: Level, waiting: int, total: int) -> tuple[float, float]:
    """Outcomes per second, with `waiting` tasks that wait for durability; and CPU µs per outcome."""
    body = b'{"parts":[{"kind":"text","text":"' + b"x" * 300 + b'"}]}'
    records = [record(str(number), body=body) for number in range(total)]
    async with SqliteTrace(folder / f"outcomes-{level}-{waiting}.sqlite", synchronous=level) as trace:
        await trace.open(header())
        left = iter(records)

        async def one() -> None:
            for each in left:
                trace.append(each)
                await trace.durable()

        began, busy = time.perf_counter(), time.process_time()
        await asyncio.gather(*(one() for _ in range(waiting)))
        took = time.process_time() - busy
        return total / (time.perf_counter() - began), took / total * 1e6


async def debate(trace: Counting | None, seed: int) -> float:
    """Seconds of a debate of 129 members over three rounds, 10 ms per call."""
    phases = [
        Repeat(
            repeat=ROUNDS,
            phases=(Ask(ask="everyone", prompt=Inline(text="Speak."), label="answer", hears=LATEST),),
        )
    ]
    async with panel([Slow()] * 129, phases, trace=trace) as society:
        task = await society.make_task("Is it?")
        began = time.perf_counter()
        await society.ask(task, seed=seed)
        return time.perf_counter() - began


async def debates(folder: Path, repeat: int) -> None:
    """Prints what durability adds to a debate; the three variants alternate, so that noise affects all."""
    async with (
        Counting(folder / "debate-normal.sqlite") as normal,
        Counting(folder / "debate-full.sqlite", synchronous="FULL") as full,
    ):
        await debate(None, 0)
        rows = [
            (await debate(None, seed), await debate(normal, seed), await debate(full, seed))
            for seed in range(1, repeat + 1)
        ]
        bare = statistics.median(row[0] for row in rows)
        for name, at, most in (("NORMAL", 1, 8), ("FULL", 2, 15)):
            more = statistics.median(row[at] / row[0] for row in rows) - 1
            what = f"129 members, {ROUNDS} rounds, {name:6}"
            print(f"{what:34} {more:+9.1%} over {bare * 1e3:.0f} ms   target <= {most} %")
        print(f"  greatest backlog                 {max(normal.greatest, full.greatest):9,} records")


async def mindstorms(folder: Path, total: int) -> None:
    """Prints durable mindstorms per second: one member, one turn, a verdict; 64 concurrently."""
    async with Counting(folder / "storms.sqlite") as trace:
        async with panel(
            [Saying("yes", identity="saying/1", turns=Forgetful())], [VOTE], trace=trace
        ) as society:
            task = await society.make_task("Is it?")
            seeds = iter(range(total))

            async def one() -> None:
                for seed in seeds:
                    await society.ask(task, seed=seed)

            began = time.perf_counter()
            await asyncio.gather(*(one() for _ in range(64)))
            rate = total / (time.perf_counter() - began)
        print(f"durable scripted mindstorms        {rate:9,.0f} a second   target >= 2,500")
        print(f"  greatest backlog                 {trace.greatest:9,} records")


class Forgetful(list[Turn]):
    """A list that stays empty."""

    def append(self, turn: Turn, /) -> None:
        """Does nothing."""


async def main(options: argparse.Namespace) -> None:
    """Runs all measurements."""
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        place = Path(folder)
        levels: tuple[Level, Level] = ("NORMAL", "FULL")
        for level in levels:
            for waiting in (64, 512):
                rate, took = await outcomes(place, level, waiting, 30_000)
                what = f"outcomes, {waiting:3} waiting, {level:6}"
                print(f"{what:34} {rate:9,.0f} a second   target >= 25,000   ({took:.0f} µs of CPU each)")
        await debates(place, options.repeat)
        await mindstorms(place, options.mindstorms)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", default=".")
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--mindstorms", type=int, default=10_000)
    asyncio.run(main(parser.parse_args()))
