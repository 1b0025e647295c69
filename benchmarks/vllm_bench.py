"""Prompt layout, constrained votes and cancellation on a vLLM server.

    python benchmarks/vllm_bench.py [--profile NAME | --url URL --model NAME] [--members 32]

*Prefix law.* Members that share a transcript of about 1,300 tokens write 8 tokens each: with their persona in
a system message before the transcript, compared with nlsom's layout (shared parts first, persona last).
*Votes.* Each member votes for one of four options: constrained to a label, compared with free text.
*Cancel.* Seconds from cancelling eight calls until the server is idle.

Transcripts are new in every run, so that caches of earlier runs do not help.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from nlsom.form import ChoiceForm, TextForm
from nlsom.home import home
from nlsom.media import MediaStore
from nlsom.model import Prompt, Settings
from nlsom.model.http import HttpModel
from nlsom_serve.vllm import Metrics, serving

SMOLLM2 = str(Path(__file__).parents[1] / "tests" / "integration" / "vllm" / "smollm2.yaml")
ROLES = ("a doctor", "an artist", "a pilot", "a cook")
Messages = list[dict[str, str]]
FASTER_AT_LEAST, CACHED_AT_LEAST, IDLE_WITHIN = 8.0, 0.9, 1.0


def transcript(random_: random.Random, lines: int = 60) -> str:
    """A random transcript of about 1,300 tokens."""

    def one_of(*words: str) -> str:
        return random_.choice(words)

    return "\n".join(
        f"Member {n}: I think the {one_of('cat', 'dog', 'car', 'boat')} number {random_.randint(1, 99)} is "
        f"{one_of('red', 'blue', 'green')} and left of the {one_of('house', 'road', 'hill')}."
        for n in range(lines)
    )


def persona_first(said: str, member: int, ask: str) -> Messages:
    """The usual layout: persona in a system message."""
    return [
        {"role": "system", "content": f"You are member {member}, {ROLES[member % 4]}."},
        {"role": "user", "content": f"{said}\n{ask}"},
    ]


def persona_last(said: str, member: int, ask: str) -> Messages:
    """Nlsom's layout: one user message, shared parts first."""
    prompt = Prompt(
        head=f"{said}\n",
        tail=f"You are member {member}, {ROLES[member % 4]}. {ask}",
        images=(),
        media=MediaStore(),
    )
    return [{"role": "user", "content": prompt.text}]


@dataclass(frozen=True)
class Cost:
    """The cost of a batch of requests."""

    seconds: float
    metrics: Metrics
    texts: Sequence[str]


class Bench:
    """One server under measurement."""

    def __init__(self, http: httpx.AsyncClient, url: str, model: str) -> None:
        self.http, self.url, self.model = http, url, model

    async def metrics(self) -> Metrics:
        """The server's counters."""
        return Metrics.read((await self.http.get(f"{self.url}/metrics")).text)

    async def ask(self, messages: Messages, **fields: Any) -> str:
        """Sends one request; returns the reply's text."""
        body = {"model": self.model, "messages": messages} | fields
        response = await self.http.post(f"{self.url}/v1/chat/completions", json=body)
        response.raise_for_status()
        return response.json()["choices"][0]["message"]["content"]

    async def cost(self, prompts: Sequence[Messages], **fields: Any) -> Cost:
        """Sends all requests concurrently, and measures their cost."""
        before, started = await self.metrics(), time.perf_counter()
        texts = await asyncio.gather(*(self.ask(messages, **fields) for messages in prompts))
        seconds = time.perf_counter() - started
        return Cost(seconds, (await self.metrics()).since(before), texts)


async def prefix_law(bench: Bench, members: int, rounds: int) -> dict[str, Any]:
    """Seconds and prefix-cache hit rates of both layouts, measured alternately."""
    random_ = random.Random()  # noqa: S311 (varies texts; not a secret)
    rows: dict[str, list[Cost]] = {"persona first": [], "persona last": []}
    for _ in range(rounds):
        for name, layout in (("persona first", persona_first), ("persona last", persona_last)):
            said = transcript(random_)
            prompts = [layout(said, member, "What is the answer?") for member in range(members)]
            cost = await bench.cost(prompts, max_tokens=8, temperature=1.0, ignore_eos=True)
            rows[name].append(cost)
            print(f"  {name}: {cost.seconds:.1f} s, {cost.metrics.hit_rate or 0:.1%} cached", flush=True)
    found = {
        name: {
            "seconds": sorted(cost.seconds for cost in costs)[len(costs) // 2],
            "cached": sum(c.metrics.cache_hits for c in costs) / sum(c.metrics.cache_queries for c in costs),
            "prompt_tokens": costs[0].metrics.prompt_tokens,
        }
        for name, costs in rows.items()
    }
    return found | {"speedup": found["persona first"]["seconds"] / found["persona last"]["seconds"]}


async def votes(bench: Bench, members: int) -> dict[str, Any]:
    """Tokens and seconds per ballot, constrained and free, and the share that can be parsed."""
    form = ChoiceForm(options=("a red car", "a blue boat", "a green cat", "a red dog"))
    random_ = random.Random()  # noqa: S311 (varies texts; not a secret)
    found: dict[str, Any] = {}
    for name in ("free", "constrained"):
        said = transcript(random_)
        ask = f"What is left of the house?\n{form.instruct()}"
        prompts = [persona_last(said, member, ask) for member in range(members)]
        fields: dict[str, Any] = {"max_tokens": 64}
        if name == "constrained":
            constraint = form.constraint()
            assert constraint is not None
            assert constraint.choice is not None
            fields = {
                "max_tokens": form.max_tokens,
                "structured_outputs": {"choice": list(constraint.choice)},
                "logprobs": True,
            }
        await bench.ask(prompts[0], **fields)  # caches the transcript, as earlier phases do in a society
        cost = await bench.cost(prompts, temperature=1.0, **fields)
        found[name] = {
            "seconds_a_vote": cost.seconds / members,
            "tokens_a_vote": cost.metrics.generated_tokens / members,
            "read": sum(form.read(text).answer is not None for text in cost.texts) / members,
        }
        print(f"  votes, {name}: {found[name]}", flush=True)
    return found


async def cancel(bench: Bench) -> dict[str, Any]:
    """Seconds from cancelling until the server is idle, polled without a pause."""
    endless = HttpModel(f"{bench.url}/v1", bench.model, pictures=0, extra={"ignore_eos": True})
    async with endless as model:
        form, settings = TextForm(max_tokens=1500), Settings(temperature=1.0)
        prompts = [Prompt(f"Tell story {n}, a long one.", "", (), MediaStore()) for n in range(8)]
        calls = [
            asyncio.ensure_future(model.complete(prompt, form=form, settings=settings, seed=0))
            for prompt in prompts
        ]
        while (await bench.metrics()).running < len(calls):
            await asyncio.sleep(0.05)
        started = time.perf_counter()
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        while (await bench.metrics()).running:
            pass
        found = {"seconds": time.perf_counter() - started}
    print(f"  cancel: {found['seconds']:.2f} s", flush=True)
    return found


async def main() -> int:
    """Measures and prints JSON; returns 1 if a target is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--profile", default=SMOLLM2, help="profile of the server to start, without --url")
    parser.add_argument("--python", help="where vLLM is; by default that of `make test-vllm` for its SmolLM2")
    parser.add_argument("--url", help="URL of a running server, without /v1; needs --model")
    parser.add_argument("--model")
    parser.add_argument("--members", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=1)
    asked = parser.parse_args()
    async with AsyncExitStack() as stack:
        if not (asked.url and asked.model):
            python = asked.python or (
                str(home() / "test-vllm" / "venv") if asked.profile == SMOLLM2 else None
            )
            (server,) = await stack.enter_async_context(serving([asked.profile], vllm=python))
            asked.url, asked.model = server.url, server.model
        http = await stack.enter_async_context(httpx.AsyncClient(trust_env=False, timeout=1800))
        bench = Bench(http, asked.url, asked.model)
        await bench.ask([{"role": "user", "content": "Hello."}], max_tokens=2)  # warm
        law = await prefix_law(bench, asked.members, asked.rounds)
        ballots = await votes(bench, asked.members)
        cancelled = await cancel(bench)
    met = law["speedup"] >= FASTER_AT_LEAST and law["persona last"]["cached"] >= CACHED_AT_LEAST
    met = met and cancelled["seconds"] <= IDLE_WITHIN
    found = {"members": asked.members, "prefix_law": law, "votes": ballots, "cancel": cancelled, "met": met}
    print(json.dumps(found, indent=2))
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
