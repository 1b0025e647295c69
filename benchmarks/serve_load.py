"""Latency that the server adds: requests at a fixed rate to a society of three members, 10 ms each.

    python benchmarks/serve_load.py [--rate 50] [--seconds 20] [--requests 20000]

Members speak in turn, so a mindstorm takes at least 30 ms. The latency of a request minus the time of the
same mindstorm without HTTP is what the server adds. With `--requests`, sends that many afterwards, 32
concurrently, and measures the server's memory.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
import statistics
import tempfile
import time
from multiprocessing.synchronize import Event
from pathlib import Path

import httpx

from nlsom.blueprint import Seat, VerdictBy
from nlsom.member import Member
from nlsom.message import Said
from nlsom.phase import Ask, Inline
from nlsom.rules import Plurality
from nlsom.society import Society
from nlsom.turn import Turn
from nlsom_serve.app import Keys, Settings, opened_house
from nlsom_serve.server import served


class Bare:
    """Says yes after 10 ms; keeps nothing, since memory is measured."""

    async def speak(self, turn: Turn) -> Said:
        """Says yes."""
        await asyncio.sleep(0.01)
        return Said.words("yes")


def society() -> Society:
    """Three members who speak one after the other, 10 ms each."""
    return Society(
        name="trio",
        seats=[Seat(Member(f"m{number}"), Bare()) for number in range(3)],
        phases=[
            Ask(ask="everyone", prompt=Inline(text="Vote."), label="ballot", form="answer", order="in_turn")
        ],
        verdict=VerdictBy(Plurality(), "plurality"),
    )


def run_server(where: multiprocessing.Queue[str], end: Event) -> None:
    """Runs a server, in a process of its own so that the client does not share its event loop."""

    async def work() -> None:
        with tempfile.TemporaryDirectory() as folder:
            settings = Settings(at_once=64, queue=256)
            async with (
                opened_house([society()], Path(folder), settings=settings, keys=Keys()) as house,
                served(house) as url,
            ):
                where.put(url)
                await asyncio.to_thread(end.wait)

    asyncio.run(work())


def memory(pid: int) -> float:
    """Resident memory of a process in MB."""
    line = next(
        line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS")
    )
    return int(line.split()[1]) / 1024


def busy(pid: int) -> float:
    """CPU seconds of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def alone(count: int = 100) -> float:
    """Median seconds of the mindstorm without a server and without a trace."""
    took: list[float] = []
    async with society() as made:
        for number in range(count):
            began = time.perf_counter()
            await made.ask(f"{number}?")
            took.append(time.perf_counter() - began)
    return statistics.median(took)


async def open_loop(url: str, rate: float, seconds: float) -> tuple[list[float], list[int]]:
    """Sends requests at a fixed rate, however long responses take; returns their seconds and statuses."""
    took: list[float] = []
    statuses: list[int] = []
    limits = httpx.Limits(max_connections=200, max_keepalive_connections=200)
    async with (
        httpx.AsyncClient(base_url=url, timeout=60, limits=limits) as client,
        asyncio.TaskGroup() as group,
    ):

        async def one(number: int) -> None:
            began = time.perf_counter()
            body = {"model": "society/trio", "messages": [{"role": "user", "content": f"{number}?"}]}
            response = await client.post("/v1/chat/completions", json=body)
            took.append(time.perf_counter() - began)
            statuses.append(response.status_code)

        began = time.perf_counter()
        for number in range(int(rate * seconds)):
            await asyncio.sleep(max(0.0, began + number / rate - time.perf_counter()))
            group.create_task(one(number))
    return took, statuses


async def many(url: str, pid: int, count: int) -> None:
    """Sends requests, 32 concurrently, and prints the server's memory and CPU time."""
    limit = asyncio.Semaphore(32)
    before = busy(pid)
    async with httpx.AsyncClient(base_url=url, timeout=60) as client:

        async def one(number: int) -> None:
            async with limit:
                body = {"model": "society/trio", "messages": [{"role": "user", "content": f"m{number}?"}]}
                response = await client.post("/v1/chat/completions", json=body)
                response.raise_for_status()

        step = max(1, count // 10)
        for start in range(0, count, step):
            await asyncio.gather(*(one(number) for number in range(start, min(count, start + step))))
            print(f"{min(count, start + step):>7} requests: {memory(pid):.1f} MB")
    print(f"server: {(busy(pid) - before) / count * 1e3:.1f} ms of a core a request")


async def measure(url: str, pid: int, rate: float, seconds: float, requests: int) -> None:
    """Measures, and prints."""
    base = await alone()
    await open_loop(url, rate, 2)
    took, statuses = await open_loop(url, rate, seconds)
    took.sort()
    added = statistics.median(took) - base
    print(
        f"alone {base * 1e3:.1f} ms; through the server at {rate:g}/s: "
        f"median {statistics.median(took) * 1e3:.1f}, "
        f"p95 {took[int(len(took) * 0.95)] * 1e3:.1f}, p99 {took[int(len(took) * 0.99)] * 1e3:.1f} ms; "
        f"added (median) {added * 1e3:.1f} ms; statuses {sorted(set(statuses))}"
    )
    if requests:
        await many(url, pid, requests)


def main() -> None:
    """Starts a server in another process and measures it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=float, default=50)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--requests", type=int, default=0)
    given = parser.parse_args()
    spawn = multiprocessing.get_context("spawn")
    where, end = spawn.Queue(), spawn.Event()
    server = spawn.Process(target=run_server, args=(where, end))
    server.start()
    try:
        url = where.get(timeout=60)
        assert server.pid is not None
        asyncio.run(measure(url, server.pid, given.rate, given.seconds, given.requests))
    finally:
        end.set()
        server.join()


if __name__ == "__main__":
    main()
