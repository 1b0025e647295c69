"""Overhead of the core: most rows compare nlsom with plain asyncio within the same run.

    python benchmarks/core.py [--json] [--repeat 5]

Exits with 1 if a target is missed. Run it on a quiet machine: load increases times, and ratios a little.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import importlib.metadata
import json
import statistics
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from packaging.requirements import Requirement

from nlsom import (
    Agent,
    Ask,
    Completion,
    Inline,
    Member,
    MemoryBus,
    Prompt,
    Repeat,
    Seat,
    Society,
    Usage,
    VerdictBy,
)
from nlsom.event import RoundClosed
from nlsom.form import Form
from nlsom.message import Said
from nlsom.model.contract import Settings
from nlsom.rules import Plurality
from nlsom.structure import STRUCTURES
from nlsom.testing.agents import Saying
from nlsom.testing.turns import make_turn
from nlsom.turn import Turn
from nlsom_agents.chat import Chat
from nlsom_agents.script import Script
from nlsom_societies.samples import sample

SLEEP = 0.010


@dataclass(frozen=True)
class Row:
    """One measurement with its unit and target, and whether the target was met."""

    what: str
    value: float
    unit: str
    target: str
    met: bool
    detail: str = ""


class Bare:
    """An agent that takes 10 ms and says a word."""

    async def speak(self, turn: Turn) -> Said:
        """Says yes."""
        await asyncio.sleep(SLEEP)
        return Said.words("yes")


class Slow:
    """A model that takes 10 ms."""

    identity = "slow"
    sees = False

    async def complete(self, prompt: Prompt, *, form: Form, settings: Settings, seed: int) -> Completion:
        """Completes a prompt; reads its text, so that it is rendered."""
        await asyncio.sleep(SLEEP)
        return Completion("yes", usage=Usage(calls=1, prompt_tokens=len(prompt.text), completion_tokens=1))


def debate(size: int, agent: Agent, rounds: int, structure: str = "democracy") -> Society:
    """`size` members who answer in `rounds` rounds, hearing each other by the structure."""
    phase = Ask(ask="everyone", prompt=Inline(text="Answer the question."), label="answer")
    return Society(
        name="debate",
        seats=[Seat(Member(f"m{at}"), agent) for at in range(size)],
        phases=[Repeat(repeat=rounds, phases=(phase,))],
        verdict=VerdictBy(Plurality(), "plurality"),
        structure=STRUCTURES[structure](),
    )


async def timed(work: Callable[[], Awaitable[object]]) -> float:
    """Seconds that `work` takes."""
    began = time.perf_counter()
    await work()
    return time.perf_counter() - began


async def overhead(repeat: int) -> list[Row]:
    """129 members, 3 rounds, everyone hears everyone, 10 ms per turn, compared with 387 sleeps."""

    async def floor() -> None:
        for _ in range(3):
            await asyncio.gather(*(asyncio.sleep(SLEEP) for _ in range(129)))

    rows: list[Row] = []
    for what, agent, target in (
        ("a bare agent", Bare(), 1.4),
        ("chat, prompts rendered", Chat(model=Slow()), 1.6),
    ):
        async with debate(129, agent, 3) as society:
            await society.ask("?")
            ratios: list[float] = []
            for _ in range(repeat):
                bare = await timed(floor)
                ratios.append(await timed(lambda: society.ask("?")) / bare)
        ratio = statistics.median(ratios)
        rows.append(
            Row(f"129 members x 3 rounds, {what}", ratio, "x 387 sleeps", f"<= {target}", ratio <= target)
        )
    return rows


async def bus(repeat: int) -> list[Row]:
    """Turns through the bus, and events to observers, compared with asyncio's queues."""
    count, observers = 20_000, 129
    carried = MemoryBus()
    await carried.host("ann", Saying("yes"))
    turn = make_turn()

    async def turns() -> None:
        for _ in range(count):
            await carried.request(turn, to="ann")

    async def round_trips() -> None:
        ask: asyncio.Queue[int] = asyncio.Queue()
        answer: asyncio.Queue[int] = asyncio.Queue()

        async def other() -> None:
            for _ in range(count):
                answer.put_nowait(await ask.get())

        task = asyncio.create_task(other())
        for number in range(count):
            ask.put_nowait(number)
            await answer.get()
        await task

    event = RoundClosed(mindstorm="one", phase="p", round=1, asked=1, replied=1, usage=Usage())
    events = 500

    async def fan_out() -> None:
        async def hear() -> None:
            async with carried.listen("one") as heard:
                ready.release()
                for _ in range(events):
                    await anext(heard)

        ready = asyncio.Semaphore(0)
        tasks = [asyncio.create_task(hear()) for _ in range(observers)]
        for _ in range(observers):
            await ready.acquire()
        for _ in range(events):
            carried.publish(event)
            await asyncio.sleep(0)
        await asyncio.gather(*tasks)

    async def queues() -> None:
        every: list[asyncio.Queue[object]] = [asyncio.Queue() for _ in range(observers)]

        async def hear(queue: asyncio.Queue[object]) -> None:
            for _ in range(events):
                await queue.get()

        tasks = [asyncio.create_task(hear(queue)) for queue in every]
        for _ in range(events):
            for queue in every:
                queue.put_nowait(event)
            await asyncio.sleep(0)
        await asyncio.gather(*tasks)

    speed = statistics.median([await timed(round_trips) / await timed(turns) for _ in range(repeat)])
    reach = statistics.median([await timed(queues) / await timed(fan_out) for _ in range(repeat)])
    return [
        Row("turns a second through the bus", speed, "x queue round trips", ">= 0.2", speed >= 0.2),
        Row("events to 129 observers", reach, "x asyncio queues", ">= 1.0", reach >= 1.0),
    ]


async def sharing() -> list[Row]:
    """A picture of 1 MB read by 129 members."""
    async with debate(129, Script(says="yes"), 1) as society:
        data = sample("astronaut").read_bytes()
        data += b"\x00" * (1_000_000 - len(data))  # padding after the picture's end, which decoders ignore
        task = await society.make_task("?", images=[data])
        image = task.images[0]
        began = time.perf_counter()
        held = [await society.media.read(image) for _ in range(129)]
        took = (time.perf_counter() - began) * 1000
        once = len({id(one) for one in held}) == 1
    return [Row("1 MB picture to 129 members", took, "ms", "<= 5, one copy", took <= 5 and once)]


async def size() -> list[Row]:
    """Memory of idle members, and seconds of large societies."""
    rows: list[Row] = []
    gc.collect()
    tracemalloc.start()
    agent = Script(says="yes")
    before, tasks = tracemalloc.get_traced_memory()[0], len(asyncio.all_tasks())
    society = debate(10_000, agent, 3)
    async with society:
        each = (tracemalloc.get_traced_memory()[0] - before) / 10_000
        extra = len(asyncio.all_tasks()) - tasks
    tracemalloc.stop()
    rows.append(Row("an idle member", each, "bytes", "<= 1280, no task", each <= 1280 and extra == 0))
    for structure in ("ring", "democracy"):
        async with debate(10_000, agent, 3, structure) as society:
            took = await timed(lambda: society.ask("?"))
        rows.append(Row(f"10,000 members x 3 rounds in a {structure}", took, "s", "<= 2", took <= 2))
    return rows


async def rate() -> list[Row]:
    """Scripted mindstorms per second, 64 concurrently, and the memory they leave behind."""
    each = 100

    async with debate(3, Script(says="yes"), 2) as society:
        task = await society.make_task("?")

        async def some() -> None:
            for _ in range(each):
                await society.ask(task)

        async def all_of_them() -> None:
            await asyncio.gather(*(some() for _ in range(64)))

        tracemalloc.start()
        for _ in range(2):  # fills caches
            await all_of_them()
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        await all_of_them()
        gc.collect()
        grown = (tracemalloc.get_traced_memory()[0] - before) / 1024
        tracemalloc.stop()
        speed = 64 * each / await timed(all_of_them)
    return [
        Row("scripted mindstorms, 3 members x 2 rounds", speed, "a second", ">= 4000", speed >= 4000),
        Row("memory left by 6,400 of them", grown, "KB", "flat (<= 64)", grown <= 64),
    ]


def imports() -> list[Row]:
    """Seconds of `import nlsom` over bare Python, and the size of the dependencies."""

    def start(code: str) -> float:
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)  # noqa: S603
        return time.perf_counter() - began

    bare = min(start("pass") for _ in range(5))
    took = min(start("import nlsom") for _ in range(5)) - bare
    core, everything = _needed(()), _needed(("all",))
    return [
        Row("import nlsom over bare Python", took, "s", "<= 0.30", took <= 0.30),
        Row("distributions installed by the core", len(core), "", "none", True, f"{_megabytes(core):.0f} MB"),
        Row(
            "distributions installed by all",
            len(everything),
            "",
            "none",
            True,
            f"{_megabytes(everything):.0f} MB",
        ),
    ]


def _needed(extras: tuple[str, ...]) -> set[str]:
    """The distributions that nlsom depends on, directly or indirectly."""
    found: set[str] = set()
    waiting = [("nlsom", extra) for extra in ("", *extras)]
    while waiting:
        name, extra = waiting.pop()
        if f"{name}[{extra}]" in found:
            continue
        try:
            wanted = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        found.add(f"{name}[{extra}]")
        for text in wanted:
            need = Requirement(text)
            if need.marker is None or need.marker.evaluate({"extra": extra}):
                waiting += [(need.name.lower(), one) for one in ("", *need.extras)]
    return {name.partition("[")[0] for name in found} - {"nlsom"}


def _megabytes(names: set[str]) -> float:
    files = [file for name in names for file in importlib.metadata.files(name) or ()]
    paths = [Path(str(file.locate())) for file in files]
    return sum(path.stat().st_size for path in paths if path.is_file()) / 2**20


async def measure(repeat: int) -> list[Row]:
    """All rows."""
    rows = [*await overhead(repeat), *await bus(repeat), *await sharing(), *await size(), *await rate()]
    return [*rows, *imports()]


def main() -> int:
    """Measures and prints all rows; returns 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--repeat", type=int, default=5, help="how often to measure each ratio")
    asked = parser.parse_args()
    rows = asyncio.run(measure(asked.repeat))
    if asked.json:
        print(json.dumps([asdict(row) for row in rows], indent=2))
    else:
        for row in rows:
            mark = "ok  " if row.met else "MISS"
            value = f"{row.value:,.3g} {row.unit} {row.detail}".strip()
            print(f"{mark}  {row.what:48} {value:36} target {row.target}")
    return 0 if all(row.met for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
