"""Large societies end to end: overhead, seconds and memory.

    python benchmarks/societies.py [--json] [--small] [--embedded MODEL]

- artist-critic, 129 members, with a scripted model that takes 50 ms: milliseconds over the ideal, three
  supersteps of 50 ms. With `--embedded smollm2-135m` also on that model, on this machine's CPU.
- 1,000 members in a random DAG, 10,000 in a ring and in a democracy: two rounds of answers and a vote.

Each row runs in a process of its own, whose peak memory is measured.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from nlsom import Ask, Hears, Inline, Member, Repeat, Seat, Society, Verdict, VerdictBy, load
from nlsom.rules import Plurality
from nlsom.structure import STRUCTURES
from nlsom.task import GeneralTask
from nlsom.testing.agents import Saying

SECONDS = 0.05
PICTURE = "A fox in the snow, for the cover of a winter tale."


@dataclass(frozen=True)
class Row:
    """One society: seconds from question to verdict, and peak memory of its process."""

    society: str
    members: int
    calls: int
    build: float
    seconds: float
    megabytes: float
    answer: str


def asking(label: str) -> Ask:
    """A phase in which everyone answers, hearing the latest answers."""
    prompt = Inline(text="Answer the question.")
    return Ask.model_validate(
        {"ask": "everyone", "prompt": prompt, "as": label, "hears": Hears(scope="latest")}
    )


def crowd(name: str, size: int, **options: object) -> Society:
    """`size` members who answer twice, hearing each other by the structure, and vote."""
    agent = Saying(lambda turn: "yes" if turn.seed % 3 else "no")
    return Society(
        name=f"{name} of {size}",
        seats=[Seat(Member(f"m{at}"), agent) for at in range(size)],
        structure=STRUCTURES[name].model_validate(options),
        phases=[
            Repeat(repeat=2, phases=(asking("answer"),)),
            asking("ballot"),
        ],
        verdict=VerdictBy(Plurality(), "plurality", tie_break="first"),
        task=GeneralTask,
    )


def artist_critic(model: str) -> Society:
    """The shipped society, with one model for all three of its models."""
    return load(
        "artist-critic", overrides=[f"models.{name}={model}" for name in ("first", "second", "third")]
    )


ROWS = {
    "artist-critic, scripted": lambda: artist_critic(f"{{scripted: 1, seconds: {SECONDS}}}"),
    "random DAG, p=0.1": lambda: crowd("random_dag", 1_000, p=0.1),
    "ring": lambda: crowd("ring", 10_000),
    "democracy": lambda: crowd("democracy", 10_000),
}
SMALL = {
    "random DAG, p=0.1": lambda: crowd("random_dag", 100, p=0.1),
    "ring": lambda: crowd("ring", 500),
    "democracy": lambda: crowd("democracy", 500),
}


async def hold(society: Society) -> tuple[Verdict, float]:
    """Holds a mindstorm; returns its verdict and seconds."""
    async with society:
        began = time.perf_counter()
        verdict = await society.ask(GeneralTask(question=PICTURE))
        return verdict, time.perf_counter() - began


def measure(what: str, model: str | None, small: bool) -> Row:
    """Measures one row, in this process."""
    began = time.perf_counter()
    known = {**ROWS, **SMALL} if small else ROWS
    society = artist_critic(f"{{embedded: {model}}}") if model else known[what]()
    build = time.perf_counter() - began
    verdict, seconds = asyncio.run(hold(society))
    both = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    kilobytes = sum(resource.getrusage(who).ru_maxrss for who in both)
    agent = society.seats[0].agent
    calls = len(agent.turns) if isinstance(agent, Saying) else verdict.usage.calls
    return Row(what, len(society.members), calls, build, seconds, kilobytes / 1024, verdict.answer or "none")


def main(argv: Sequence[str] | None = None) -> int:
    """Measures all rows, each in a process of its own."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--small", action="store_true", help="use a tenth of the members or fewer")
    parser.add_argument("--embedded", metavar="MODEL", help="run artist-critic on this embedded model too")
    parser.add_argument("--row", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.row:
        print(json.dumps(asdict(measure(options.row, options.embedded, options.small))))
        return 0
    wanted: list[tuple[str, str | None]] = [(what, None) for what in ROWS]
    if options.embedded:
        wanted.append((f"artist-critic, {options.embedded}", options.embedded))
    rows: list[dict[str, object]] = []
    for what, model in wanted:
        more = [*(["--embedded", model] if model else []), *(["--small"] if options.small else [])]
        command = [sys.executable, __file__, "--row", what, *more]
        done = subprocess.run(command, capture_output=True, text=True)  # noqa: S603
        if done.returncode:
            print(done.stderr, file=sys.stderr)
            return 1
        rows.append(json.loads(done.stdout.splitlines()[-1]))
        if not options.json:
            show(rows[-1])
    if options.json:
        print(json.dumps({"rows": rows}, indent=2))
    else:
        over = 1000 * (float(str(rows[0]["seconds"])) - 3 * SECONDS)
        print(f"artist-critic, scripted: {over:.0f} ms over the ideal of three times {1000 * SECONDS:.0f} ms")
    return 0


def show(row: dict[str, object]) -> None:
    """Prints a row."""
    print(
        f"{row['society']:<28} {row['members']:>6} members {row['calls']:>6} turns, built in "
        f"{row['build']:5.2f} s, held in {row['seconds']:7.2f} s, {row['megabytes']:5.0f} MB"
    )


if __name__ == "__main__":
    sys.exit(main())
