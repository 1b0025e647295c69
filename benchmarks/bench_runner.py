"""Overhead of a benchmark run: `python benchmarks/bench_runner.py [--samples 50000]`.

Runs a society of one member that answers at once over easy-VQA, with pictures through the media gate and
outcomes in the trace: milliseconds per sample, and the memory of the process over time.
"""

import argparse
import asyncio
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from nlsom import Said, Turn
from nlsom.bench.folder import RunFolder
from nlsom.bench.progress import Progress
from nlsom.bench.run import Contender, Runner
from nlsom.bench.sample import Sample
from nlsom.bench.sets import SampleSet, load_set
from nlsom.testing.agents import panel


class AtOnce:
    """Answers at once, and keeps nothing."""

    identity = "at once/1"

    async def speak(self, turn: Turn) -> Said:
        """Answers."""
        return Said.words("circle", answer="circle")


@dataclass(frozen=True, slots=True)
class Repeated(SampleSet):
    """The set repeated endlessly, with new ids and contexts, to get more samples than it has."""

    def __iter__(self) -> Iterator[Sample]:
        again = 0
        while True:
            for sample in load_set("easy-vqa"):
                task = sample.task.model_copy(update={"context": f"{again}"})
                yield replace(sample, id=f"{again}.{sample.id}", task=task)
            again += 1


def resident() -> float:
    """Megabytes of this process in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6


async def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=5000)
    given = parser.parse_args()
    found = load_set("easy-vqa")
    marks: list[tuple[int, float]] = []

    def watch(progress: Progress) -> None:
        if progress.done % max(1, given.samples // 10) == 0:
            marks.append((progress.done, resident()))

    with tempfile.TemporaryDirectory() as folder:
        samples = Repeated(found.spec, found.path)
        runner = Runner(samples, RunFolder(Path(folder) / "run"), limit=given.samples, watch=watch)
        began, cpu = time.perf_counter(), time.process_time()
        await runner.run([Contender.of(panel([AtOnce()]))])
        wall, cpu = time.perf_counter() - began, time.process_time() - cpu
    each = 1000 / given.samples
    print(f"{given.samples} samples: {each * wall:.2f} ms a sample, CPU {each * cpu:.2f} ms")
    for done, megabytes in dict(marks).items():
        print(f"{done:>8} samples: {megabytes:.0f} MB")


if __name__ == "__main__":
    asyncio.run(main())
