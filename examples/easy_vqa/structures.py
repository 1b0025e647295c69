"""Does it help that members talk, where each knows another part of what there is to see?

Three witnesses look at pictures of easy-VQA: one sees the shape, one the colour, one where the thing is.
Every structure is run over the same questions, and beside each a vote of as many tokens without any talk.

    python examples/easy_vqa/structures.py RUN/ --limit 60
"""

from __future__ import annotations

import argparse
import asyncio
from dataclasses import replace
from pathlib import Path

from witness import COLOURS, Witness, colour, shape, where

from nlsom import Member, Model, Seat
from nlsom.bench.equal_cost import markdown, run_all
from nlsom.bench.folder import RunFolder
from nlsom.bench.progress import Progress
from nlsom.bench.run import Runner
from nlsom.bench.sample import Sample
from nlsom.bench.sets import SETS, open_set
from nlsom.bench.sets.fields import Row
from nlsom.bench.sets.spec import Pictures
from nlsom.bench.structures import Cast, Structures
from nlsom_agents.local.embedded import Embedded


def cast(large: Model, small: Model) -> Cast:
    """Two witnesses with the large model as their mind, one with the small."""
    minds = (
        Seat(Member("ann", "expert"), Witness(model=large, eye=shape)),
        Seat(Member("bob", "expert"), Witness(model=large, eye=colour)),
        Seat(Member("cid", "expert"), Witness(model=small, eye=where)),
    )
    return Cast(minds)


def narrowed(row: Row, find: Pictures) -> Sample:
    """A sample whose options are those of its kind: yes and no, the shapes, or the colours.

    Among thirteen options by letter the 1.5B is lost, and what kind a question is its words show plainly.
    """
    sample = SETS["easy-vqa"].convert(row, find)
    (right,) = sample.answers
    kinds = (("yes", "no"), ("circle", "rectangle", "triangle"), tuple(COLOURS))
    options = next(kind for kind in kinds if right in kind)
    task = sample.task.model_copy(update={"choices": options})
    return replace(sample, task=task, choice=options.index(right))


def told(progress: Progress) -> None:
    score = f"{progress.score.lenient:.3f}" if progress.score else "–"
    print(f"{progress.society} {progress.done}/{progress.total} {score} {progress.rate:.2f}/s", flush=True)


async def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path, help="the folder that keeps the run; given again, it goes on")
    parser.add_argument("--limit", type=int, default=60, help="questions (default: 60)")
    parser.add_argument("--sample-seed", type=int, default=0, help="draws the questions (default: 0)")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="runs this structure")
    parser.add_argument("--concurrency", type=int, default=8, help="samples at once (default: 8)")
    given = parser.parse_args()
    runner = Runner(
        open_set(replace(SETS["easy-vqa"], name="easy-vqa, options of a kind", convert=narrowed)),
        RunFolder(given.run),
        limit=given.limit,
        sample_seed=given.sample_seed,
        concurrency=given.concurrency,
        watch=told,
    )
    # Open for as long as all structures run; each society would load them again otherwise.
    async with Embedded("qwen2.5-coder-1.5b") as large, Embedded("smollm2-135m") as small:
        table = await run_all(runner, Structures(cast(large, small), only=given.only))
    print(markdown(table))


if __name__ == "__main__":
    asyncio.run(main())
