"""Measures the embedded engine: what computing turns together and what its prefix cache bring.

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
TOGETHER_AT_LEAST = 4.0  # times the generated tokens a second of one after the other
SECOND_ROUND_AT_MOST = 0.25  # of the first round's prefill seconds a token


def remarks(of: str) -> str:
    """A transcript of about 600 tokens that no cache has seen before."""
    return "\n".join(
        f"Agent {n}: in my view thing {n * 7 % 31} of the {of} is left of thing {n * 5 % 29}, and blue."
        for n in range(24)
    )


async def measure(model: Embedded) -> dict[str, float]:
    """Runs the trials; the model is open.

    Returns:
        `together`: generated tokens a second of 16 turns at once over those of one after the other.
        `second_round`: prefill seconds a prompt token of a turn in a second round over the same transcript,
        grown by one line, over those in the first round; medians of three.
        And the figures that these are made of.
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

    # One member a round: of several, all but one find the transcript in the cache in the first round already.
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
    """Prints the figures beside their targets; the exit code is 1 where one is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--model", default="qwen2.5-coder-1.5b")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
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
