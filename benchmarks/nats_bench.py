"""The NATS bus compared with bare NATS: turns per second, added latency, and a superstep over many workers.

    python benchmarks/nats_bench.py [--turns 20000] [--members 10000]

Starts a NATS server on this machine. Ratios within one run are comparable; absolute figures depend on the
machine.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import Any

import nats

from nlsom.bus.nats import NatsBus
from nlsom.message import Said
from nlsom.testing.agents import VOTE, Saying, panel
from nlsom.testing.nats import NatsServer
from nlsom.testing.turns import make_turn
from nlsom.turn import Turn


class Echo:
    """Answers at once."""

    identity = "echo/1"

    async def speak(self, turn: Turn) -> Said:
        """Says yes."""
        return Said.words("yes", answer="yes")


async def work(kind: str, url: str, first: int, end: int) -> None:
    """A worker process: answers bare requests, or hosts members `first` to `end - 1`."""
    if kind == "bare":
        client = await nats.connect(url)

        async def answer(message: Any) -> None:
            await message.respond(b"ok")

        await client.subscribe("bare", cb=answer)
        await client.flush()
    else:
        bus = await NatsBus(url, society="panel").__aenter__()
        for number in range(first, end):
            await bus.host(f"m{number}", Echo())
    print("ready", flush=True)
    await asyncio.Event().wait()


@asynccontextmanager
async def worker(kind: str, url: str, first: int = 0, end: int = 1) -> AsyncIterator[None]:
    """Runs a worker process."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, __file__, "--work", kind, url, str(first), str(end), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    assert await process.stdout.readline() == b"ready\n"
    try:
        yield
    finally:
        process.kill()
        await process.communicate()


async def rate(one: Callable[[int], Awaitable[object]], total: int, at_once: int) -> float:
    """Calls of `one` per second, `at_once` concurrently."""
    numbers = iter(range(total))

    async def loop() -> None:
        for number in numbers:
            await one(number)

    began = time.perf_counter()
    await asyncio.gather(*(loop() for _ in range(at_once)))
    return total / (time.perf_counter() - began)


async def compare(url: str, total: int) -> None:
    """Compares turns with bare requests, measured alternately, so that noise affects both."""
    async with worker("bare", url), worker("bus", url), NatsBus(url, society="panel") as bus:
        client = await nats.connect(url)
        await bus.describe(["m0"])
        turns = [make_turn(ask=f"Question {number}?") for number in range(256)]

        async def bare(number: int) -> None:
            await client.request("bare", b"hi", timeout=30)

        async def turn(number: int) -> None:
            await bus.request(turns[number % 256], to="m0")

        await rate(bare, 500, 64)
        await rate(turn, 500, 64)
        best = {"bare": 0.0, "turn": 0.0, "bare alone": 0.0, "turn alone": 0.0}
        ratios: list[float] = []
        for _ in range(5):
            one = await rate(bare, total // 5, 64)
            two = await rate(turn, total // 5, 64)
            ratios.append(two / one)
            best["bare"], best["turn"] = max(best["bare"], one), max(best["turn"], two)
            best["bare alone"] = max(best["bare alone"], await rate(bare, total // 50, 1))
            best["turn alone"] = max(best["turn alone"], await rate(turn, total // 50, 1))
        await client.close()
    ratios.sort()
    print(f"64 in flight, bare requests of two bytes   {best['bare']:10,.0f} a second")
    print(f"64 in flight, turns                        {best['turn']:10,.0f} a second")
    print(f"ratio, median of 5 (best {ratios[-1]:.2f})               {ratios[2]:10.2f}   target >= 0.45")
    added = 1e3 / best["turn alone"] - 1e3 / best["bare alone"]
    print(f"added latency of a turn                    {added:10.3f} ms   target <= 0.3")


async def superstep(url: str, members: int, workers: int) -> None:
    """Prints the time of a superstep of many members."""
    each = members // workers
    async with AsyncExitStack() as stack:
        await asyncio.gather(
            *(
                stack.enter_async_context(worker("bus", url, at * each, (at + 1) * each))
                for at in range(workers)
            )
        )
        bus = await stack.enter_async_context(NatsBus(url, society="panel"))
        society = panel([Saying(identity="echo/1")] * members, [VOTE])
        society.bus = bus
        began = time.perf_counter()
        await stack.enter_async_context(society)
        print(f"finding {members:,} members on {workers} workers      {time.perf_counter() - began:10.2f} s")
        turn = make_turn()
        steps: list[float] = []
        for step in range(5):
            turns = [replace(turn, seed=at, round=step + 1) for at in range(members)]
            began = time.perf_counter()
            async with asyncio.TaskGroup() as group:
                for at, one in enumerate(turns):
                    group.create_task(bus.request(one, to=f"m{at}"))
            steps.append(time.perf_counter() - began)
        whole = [(await society.ask("Is it?", seed=seed)).usage.seconds for seed in range(3)]
    print(f"superstep of {members:,} turns, best of 5       {min(steps):10.2f} s   target <= 1")
    print(f"a vote of {members:,} members, counted           {min(whole):10.2f} s")


async def main(options: argparse.Namespace) -> None:
    """Runs all measurements."""
    async with NatsServer() as server:
        await compare(server.url, options.turns)
        await superstep(server.url, options.members, 4)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        asyncio.run(work(sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5])))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=20_000)
    parser.add_argument("--members", type=int, default=10_000)
    asyncio.run(main(parser.parse_args()))
