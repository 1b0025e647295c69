"""The embedded engine: speedup from batching turns and from the prefix cache.

Both figures are ratios within one run, so that they can be compared between machines.

    python benchmarks/embedded.py [--model NAME] [--json]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Sequence
from statistics import median

from nlsom.form import TextForm
from nlsom.media import MediaStore
from nlsom.model import Completion, Prompt, Settings
from nlsom_agents.local.embedded import Embedded

MEMBERS = 16
TOGETHER_AT_LEAST = 4.0  # times the generation rate of sequential turns
SECOND_ROUND_AT_MOST = 0.25  # of the first round's prefill time per token


def remarks(of: str) -> str:
    """A transcript of about 600 tokens, different for each `of`."""
    return "\n".join(
        f"Agent {n}: in my view thing {n * 7 % 31} of the {of} is left of thing {n * 5 % 29}, and blue."
        for n in range(24)
    )


async def measure(model: Embedded) -> dict[str, float]:
    """Measures an open model.

    Returns:
        `together`: tokens per second of 16 concurrent turns, divided by that of sequential turns.
        `second_round`: prefill seconds per prompt token in a second round, over the same transcript plus one
        line, divided by those in the first round; medians of three.
        And the figures from which these are computed.
    """
    media = MediaStore()

    async def ask(head: str, tail: str, max_tokens: int) -> Completion:
        settings = Settings(max_tokens=max_tokens)
        return await model.complete(Prompt(head, tail, (), media), form=TextForm(), settings=settings, seed=0)

    def rate(replies: Sequence[Completion], since: float) -> float:
        return sum(reply.usage.completion_tokens for reply in replies) / (time.perf_counter() - since)

    async def prefill(head: str) -> float:
        since = time.perf_counter()
        reply = await ask(head, "\nYou are the next to speak. What is it?", 1)
        return (time.perf_counter() - since) / reply.usage.prompt_tokens

    await ask("", "Say hello.", 4)
    stories = [f"Write a long story about the number {n}." for n in range(MEMBERS)]
    since = time.perf_counter()
    alone = rate([await ask("", story, 48) for story in stories[:4]], since)
    since = time.perf_counter()
    together = rate(await asyncio.gather(*(ask("", story, 48) for story in stories)), since)

    # One member per round: with several, all but the first would find the transcript in the cache.
    firsts: list[float] = []
    seconds: list[float] = []
    for n in range(3):
        head = remarks(f"picture {n} of {time.time_ns()}")
        firsts.append(await prefill(head))
        seconds.append(await prefill(f"{head}\nAgent 24: I agree with the others."))
    first, second = median(firsts), median(seconds)
    return {
        "alone_tokens_per_second": alone,
        "together_tokens_per_second": together,
        "together": together / alone,
        "first_round_prefill_ms_per_token": 1000 * first,
        "second_round_prefill_ms_per_token": 1000 * second,
        "second_round": second / first,
    }


async def run(model: str) -> dict[str, float]:
    """Opens the model and measures it."""
    async with Embedded(model) as opened:
        return await measure(opened)


def main() -> int:
    """Prints the figures and their targets; returns 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--model", default="qwen2.5-coder-1.5b")
    parser.add_argument("--json", action="store_true", help="print JSON")
    given = parser.parse_args()
    figures = asyncio.run(run(given.model))
    met = figures["together"] >= TOGETHER_AT_LEAST and figures["second_round"] <= SECOND_ROUND_AT_MOST
    if given.json:
        targets = {"together": TOGETHER_AT_LEAST, "second_round": SECOND_ROUND_AT_MOST}
        print(json.dumps({"model": given.model, **figures, "targets": targets, "met": met}))
    else:
        for name, figure in figures.items():
            target = {
                "together": f"   target: at least {TOGETHER_AT_LEAST}",
                "second_round": f"   target: at most {SECOND_ROUND_AT_MOST}",
            }.get(name, "")
            print(f"{name:36} {figure:9.3f}{target}")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
