"""With a trace, an interrupted run resumes where it stopped, and a finished one is shown without a model."""

import asyncio
import tempfile
from pathlib import Path

from nlsom import SqliteTrace
from nlsom.testing.agents import Saying, panel


async def hold(trace: SqliteTrace, members: list[Saying]) -> None:
    async with panel(members, trace=trace) as society:
        try:
            async with asyncio.timeout(0.5):  # stands for a power cut
                verdict = await society.ask("What is it?", choices=["cat", "dog"])
        except TimeoutError:
            print("cut off", end="; ")
        else:
            print(verdict.answer, dict(verdict.tally), end="; ")
    print("asked:", [len(member.turns) for member in members])


def three(slow: float) -> list[Saying]:
    """Three members, the last of which takes `slow` seconds to answer."""
    times = (0.0, 0.0, slow)
    return [Saying("A", seconds=time, identity=f"mind {at}") for at, time in enumerate(times)]


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "run.sqlite"
        for slow in (3600, 0, 0):
            async with SqliteTrace(file) as trace:
                await hold(trace, three(slow))
        async with SqliteTrace(file, read_only=True) as trace:
            async for header in trace.mindstorms():
                async for record in trace.records(header.mindstorm):
                    print(record.kind, record.member)


asyncio.run(main())
