"""Soak tests: memory stays flat, kills lose nothing, societies cope with failing members.

    python benchmarks/soak.py [memory] [kills] [nats] [failing] [--mindstorms 100000] [--questions 1000]

Runs all parts by default. Exits with 1 if a check fails.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import hashlib
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from nlsom.blueprint import VerdictBy
from nlsom.bus.nats import NatsBus
from nlsom.message import Said, Usage
from nlsom.phase import Ask, Inline, Limits, Repeat
from nlsom.rules import Decree
from nlsom.society import Society
from nlsom.testing.agents import VOTE, panel
from nlsom.testing.nats import NatsServer
from nlsom.trace import SqliteTrace
from nlsom.turn import Turn

CHOICES = ("cat", "dog", "horse", "bird")
WAYS = ("raises", "hangs", "says nothing", "answers garbage", "answers late")


def draw(*of: object) -> float:
    """A pseudo-random number in [0, 1), a function of the arguments."""
    return int.from_bytes(hashlib.sha256(repr(of).encode()).digest()[:6]) / 2**48


class Scripted:
    """Answers as a function of the turn, right in four of five cases; may fail, also as a function of it.

    Args:
        seconds: How long an answer takes.
        failing: Share of turns that fail, evenly in the five ways.
        log: File for the keys of the turns that it is asked.
    """

    identity = "scripted/1"

    def __init__(self, seconds: float = 0.0, failing: float = 0.0, log: Any = None) -> None:
        self._seconds, self._failing, self._log = seconds, failing, log

    async def speak(self, turn: Turn) -> Said | None:
        """Says an answer, or fails."""
        if self._log is not None:
            self._log.write(turn.key + "\n")
        who = (turn.seed, turn.member.name, turn.phase, turn.round, turn.task.question)
        right = "cat" if draw(who) < 0.8 else "dog"
        if draw(who, "fails") < self._failing:
            way = WAYS[int(draw(who, "way") * len(WAYS))]
            if way == "raises":
                raise RuntimeError("scripted")
            if way == "says nothing":
                return None
            if way == "answers garbage":
                return Said.words("⚡ zzz ☃")
            await asyncio.sleep(3600 if way == "hangs" else 2.0)
        await asyncio.sleep(self._seconds)
        return Said.words(right, usage=Usage(calls=1))


def democracy(agent: Scripted, **options: Any) -> Society:
    """Three members who speak, hear each other, and vote."""
    speak = Ask(
        ask="everyone", prompt=Inline(text="Speak."), label="answer", seconds=options.pop("late", None)
    )
    return panel([agent] * 3, [speak, VOTE.model_copy(update={"seconds": speak.seconds})], **options)


def monarchy(agent: Scripted, **options: Any) -> Society:
    """An organizer questions three experts, twice; a leader decides."""
    late = options.pop("late", None)

    def ask(who: str, label: str, form: Any = "text") -> Ask:
        return Ask(ask=who, prompt=Inline(text="Speak."), label=label, form=form, seconds=late)  # pyright: ignore[reportCallIssue]

    rounds = Repeat(repeat=2, phases=(ask("organizer", "question"), ask("expert", "answer")))
    roles = ("organizer", "leader", "expert", "expert", "expert")
    decree = VerdictBy(Decree(), "decree", of="leader")
    return panel(
        [agent] * 5, [rounds, ask("leader", "ballot", "answer")], roles=roles, verdict=decree, **options
    )


def solo(agent: Scripted, **options: Any) -> Society:
    """One member."""
    late = options.pop("late", None)
    return panel([agent], [VOTE.model_copy(update={"seconds": late})], **options)


async def ask_all(society: Society, questions: int, at_once: int = 16) -> list[str | None]:
    """Asks questions, `at_once` concurrently; returns the answers."""
    answers: list[str | None] = [None] * questions
    numbers = iter(range(questions))

    async def one() -> None:
        for number in numbers:
            verdict = await society.ask(f"Question {number}?", choices=CHOICES)
            answers[number] = verdict.answer

    async with asyncio.TaskGroup() as group:
        for _ in range(at_once):
            group.create_task(one())
    return answers


# Memory.


def held() -> tuple[float, int, int, int]:
    """Resident memory (MB), tasks, threads, open files and sockets."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    files = len(os.listdir("/proc/self/fd"))
    # The event loop's own pool of threads ends with the loop.
    threads = sum(not thread.name.startswith("asyncio_") for thread in threading.enumerate())
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20, len(asyncio.all_tasks()), threads, files


async def memory(options: argparse.Namespace) -> bool:
    """Holds many mindstorms in one process, without and with a trace."""
    good = True
    for traced in (False, True):
        total = options.mindstorms if not traced else options.mindstorms // 5
        before = held()
        with tempfile.TemporaryDirectory() as folder:
            async with AsyncExitStack() as stack:
                trace = None
                if traced:
                    trace = await stack.enter_async_context(SqliteTrace(Path(folder) / "soak.sqlite"))
                society = await stack.enter_async_context(democracy(Scripted(), trace=trace))
                warm = 0.0
                for part in range(10):
                    began = time.perf_counter()
                    for _ in range(total // 10 // 1000 or 1):
                        await ask_all(society, min(1000, total // 10), 64)
                    now = held()[0]
                    warm = now if part == 1 else warm
                    rate = total // 10 / (time.perf_counter() - began)
                    done = (part + 1) * total // 10
                    print(f"  {done:8,}  {now:7.1f} MB  {rate:7,.0f} a second{', traced' if traced else ''}")
        after = held()
        print(
            f"after warm-up {now - warm:+.1f} MB; left behind: {after[1] - before[1]} tasks, "
            f"{after[2] - before[2]} threads, {after[3] - before[3]} files and sockets"
        )
        good &= now - warm < 10 and after[1:] == before[1:]
    return good


# Kills.


async def run(path: str, log: str, questions: int, url: str | None) -> None:
    """The process that is killed repeatedly: asks the questions with a trace."""
    with open(log, "a", buffering=1) as asked:
        async with AsyncExitStack() as stack:
            trace = await stack.enter_async_context(SqliteTrace(path))
            society = democracy(Scripted(0.002, log=asked), trace=trace)
            if url is not None:
                society.bus = await stack.enter_async_context(NatsBus(url, society="panel", patience=15))
            await stack.enter_async_context(society)
            await ask_all(society, questions)


async def work(url: str, log: str) -> None:
    """A worker process: hosts the members over NATS."""
    with open(log, "a", buffering=1) as asked:
        async with (
            NatsBus(url, society="panel", patience=30) as bus,
            democracy(Scripted(0.002, log=asked)).hosted(bus),
        ):
            print("ready", flush=True)
            await bus.gone()


@asynccontextmanager
async def process(*words: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """Runs this file in another process."""
    made = await asyncio.create_subprocess_exec(
        sys.executable, __file__, *words, stdout=asyncio.subprocess.PIPE
    )
    try:
        yield made
    finally:
        if made.returncode is None:
            made.kill()
        await made.communicate()


def lines(logs: Sequence[Path]) -> list[int]:
    """The number of keys in each log."""
    return [log.stat().st_size // 65 if log.exists() else 0 for log in logs]


def keys(logs: Sequence[Path], after: Sequence[int]) -> list[str]:
    """The keys in each log after the first `after` ones."""
    return [
        key
        for log, start in zip(logs, after, strict=True)
        if log.exists()
        for key in log.read_text().splitlines()[start:]
    ]


async def stored(path: Path) -> tuple[set[str], dict[str, str]]:
    """The keys of a trace's replies, and its verdicts' answers by question."""
    if not path.exists():
        return set(), {}
    held_keys: set[str] = set()
    answers: dict[str, str] = {}
    async with SqliteTrace(path, read_only=True) as trace:
        async for header in trace.mindstorms():
            async for one in trace.records(header.mindstorm):
                if one.kind == "replied":
                    held_keys.add(one.key)
                elif one.kind == "verdict":
                    task: Any = header.task
                    answers[task["question"]] = one.body.decode().partition('"answer":"')[2].partition('"')[0]
    return held_keys, answers


async def kills(
    options: argparse.Namespace, url: str | None = None, server: NatsServer | None = None
) -> bool:
    """Kills a run twenty times (SIGKILL) and resumes it; compares it with an undisturbed run."""
    questions, times = options.questions, 20
    async with democracy(Scripted()) as society:
        whole = await ask_all(society, questions)
    rng = random.Random(1)  # noqa: S311
    again = 0
    with tempfile.TemporaryDirectory() as folder:
        path, logs = Path(folder) / "run.sqlite", [Path(folder) / f"asked{at}" for at in range(4)]
        async with AsyncExitStack() as stack:
            for at in range(3 if url else 0):
                worker = await stack.enter_async_context(process("--work", str(url), str(logs[at])))
                assert worker.stdout is not None
                assert await worker.stdout.readline() == b"ready\n"
            killed = 0
            while True:
                known, _ = await stored(path)
                before = lines(logs)
                async with process("--run", str(path), str(logs[3]), str(questions), url or "-") as one:
                    goal = sum(before) + int(questions * 6 / (times + 1) * rng.uniform(0.5, 1.0))
                    while killed < times and one.returncode is None and sum(lines(logs)) < goal:
                        await asyncio.sleep(0.02)
                    if killed == times:
                        await one.wait()
                    if server is not None and killed in (7, 14) and one.returncode is None:
                        await server.stop()
                        await asyncio.sleep(0.5)
                        await server.start()
                        await asyncio.sleep(0.5)
                    ended = one.returncode
                    if ended is None:
                        one.send_signal(signal.SIGKILL)
                        killed += 1
                again += len(known & set(keys(logs, before)))
                if ended is not None:
                    break
        _, answers = await stored(path)
        async with SqliteTrace(path) as trace:
            damaged = await trace.verify()
    lost = questions - len(answers)
    same = sum(answers.get(f"Question {number}?") == answer for number, answer in enumerate(whole))
    where = "NATS, 3 workers, server restarted twice" if url else "memory bus"
    print(
        f"{where}: killed {killed} times; answers lost {lost}; stored replies asked again {again}; "
        f"answers as in a run without kills {same} of {questions}; damaged mindstorms {len(damaged)}"
    )
    return (ended, lost, again, same, damaged) == (0, 0, 0, questions, [])


async def over_nats(options: argparse.Namespace) -> bool:
    """Like `kills`, over NATS with three workers."""
    async with NatsServer() as server:
        return await kills(options, server.url, server)


# Failing members.


async def failing(options: argparse.Namespace) -> bool:
    """Prints how often verdicts stay the same when 30 % of all calls fail in five ways."""
    number = min(options.questions, 1000)
    print(f"30 % of all calls fail ({', '.join(WAYS)}), {number} mindstorms each:")
    for name, build in (("solo", solo), ("monarchy", monarchy), ("democracy", democracy)):
        async with build(Scripted()) as society:
            faultless = await ask_all(society, number, 64)
        async with build(Scripted(failing=0.3), late=1.0, limits=Limits(quorum=0)) as society:
            now = await ask_all(society, number, 250)
        same = sum(one == two for one, two in zip(faultless, now, strict=True))
        none = sum(one is None for one in now)
        print(f"  {name:10} {same / number:6.1%} the faultless verdict, {none / number:6.1%} none")
    return True


async def main(options: argparse.Namespace) -> int:
    """Runs the chosen parts; returns 1 if a check fails."""
    parts = {"memory": memory, "kills": kills, "nats": over_nats, "failing": failing}
    good = True
    for name in options.parts or parts:
        print(f"== {name}", flush=True)
        good &= await parts[name](options)
    return 0 if good else 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["--run"]:
        _, _, path, log, questions, url = sys.argv
        asyncio.run(run(path, log, int(questions), None if url == "-" else url))
    elif sys.argv[1:2] == ["--work"]:
        asyncio.run(work(sys.argv[2], sys.argv[3]))
    else:
        parser = argparse.ArgumentParser(description=__doc__)
        parser.add_argument("parts", nargs="*", choices=["memory", "kills", "nats", "failing", []])
        parser.add_argument("--mindstorms", type=int, default=100_000)
        parser.add_argument("--questions", type=int, default=1_000)
        sys.exit(asyncio.run(main(parser.parse_args())))
