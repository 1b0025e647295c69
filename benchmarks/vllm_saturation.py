"""Whether nlsom keeps a vLLM server busy: concurrent mindstorms, compared with the same requests from httpx.

    python benchmarks/vllm_saturation.py [--mindstorms 64] [--pairs 5] [--url URL --model NAME]

A first run, not timed, warms the server and records all requests. Then pairs of runs are timed: the
mindstorms, and an httpx client that sends the recorded requests with the same concurrency and no
dependencies between them. The ratio is nlsom's time divided by httpx's; 1 is ideal. Client and server share
the cores of one machine, so the clients' CPU time is printed too, which depends less on other load.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import json
import statistics
import sys
import time
from contextlib import AsyncExitStack
from pathlib import Path

import httpx
from PIL import Image

import nlsom
from nlsom.form import Form
from nlsom.home import home
from nlsom.model import Completion, Prompt, Settings, wire
from nlsom.model.http import HttpModel
from nlsom_serve.vllm import serving

AT_ONCE = 64
MOST = 1.25
Took = tuple[float, float]
COLOURS = ("red", "green", "blue", "yellow", "white", "black", "orange", "purple")


class Recorder:
    """A model that forwards to another and records the body of each request."""

    def __init__(self, model: HttpModel, name: str) -> None:
        self.model, self.name, self.bodies = model, name, list[bytes]()

    @property
    def identity(self) -> str:
        """The other model's identity."""
        return self.model.identity

    async def complete(self, prompt: Prompt, *, form: Form, settings: Settings, seed: int) -> Completion:
        """Forwards a prompt and records its request."""
        body = wire.chat_body(
            self.name,
            prompt.text,
            [wire.picture_part(await prompt.media.data_url(image)) for image in prompt.images],
            constraint=form.constraint(),
            max_tokens=wire.reply_tokens(form, settings, 0),
            settings=settings,
            seed=seed,
            constraints="vllm",
        )
        self.bodies.append(body)
        return await self.model.complete(prompt, form=form, settings=settings, seed=seed)


def picture(colour: str) -> bytes:
    """A PNG of one colour."""
    out = io.BytesIO()
    Image.new("RGB", (160, 120), colour).save(out, "PNG")
    return out.getvalue()


class Watch:
    """Measures wall-clock and CPU seconds of this process."""

    def __init__(self) -> None:
        self._started, self._spent = time.perf_counter(), time.process_time()

    def read(self) -> Took:
        """Wall-clock and CPU seconds since the start."""
        return time.perf_counter() - self._started, time.process_time() - self._spent


async def mindstorms(url: str, model: str, count: int, recorder: list[Recorder] | None = None) -> Took:
    """Holds `count` mindstorms of `vqa-democracy` concurrently; returns their seconds."""
    async with AsyncExitStack() as stack:
        served = await stack.enter_async_context(
            HttpModel(f"{url}/v1", model, pictures=1, concurrency=AT_ONCE)
        )
        shared = Recorder(served, model) if recorder is not None else served
        if recorder is not None:
            recorder.append(shared)  # type: ignore[arg-type]
        society = nlsom.load("vqa-democracy", models={"vlm": f"{url}/v1#{model}", "llm": f"{url}/v1#{model}"})
        for seat in society.seats:
            seat.agent.model = shared  # type: ignore[attr-defined]
        await stack.enter_async_context(society)
        images = [picture(colour) for colour in COLOURS]
        tasks = [
            await society.make_task(
                f"Question {n}: what is it?", images=[images[n % len(images)]], choices=("cat", "dog")
            )
            for n in range(count)
        ]
        watch = Watch()
        await asyncio.gather(*(society.ask(task, seed=n) for n, task in enumerate(tasks)))
        return watch.read()


async def bare(url: str, bodies: list[bytes]) -> Took:
    """Sends the same requests with httpx alone; returns their seconds."""
    limits = httpx.Limits(max_connections=AT_ONCE, max_keepalive_connections=AT_ONCE)
    # Requests queue outside httpx, whose pool takes time quadratic in the number of waiting requests.
    slots = asyncio.Semaphore(AT_ONCE)
    async with httpx.AsyncClient(trust_env=False, timeout=1800, limits=limits) as http:

        async def send(body: bytes) -> None:
            headers = {"content-type": "application/json"}
            async with slots:
                response = await http.post(f"{url}/v1/chat/completions", content=body, headers=headers)
            response.raise_for_status()
            response.json()

        watch = Watch()
        await asyncio.gather(*map(send, bodies))
        return watch.read()


async def main() -> int:
    """Measures and prints JSON; returns 1 if the target is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--profile", default="cpu-test")
    parser.add_argument("--url", help="URL of a running server, without /v1; needs --model")
    parser.add_argument("--model")
    parser.add_argument("--mindstorms", type=int, default=64)
    parser.add_argument("--pairs", type=int, default=5)
    asked = parser.parse_args()
    async with AsyncExitStack() as stack:
        if not (asked.url and asked.model):
            venv: Path = home() / "test-vllm" / "venv"
            python = str(venv) if asked.profile == "cpu-test" else None
            (server,) = await stack.enter_async_context(serving([asked.profile], vllm=python))
            asked.url, asked.model = server.url, server.model
        recorders: list[Recorder] = []
        await mindstorms(asked.url, asked.model, asked.mindstorms, recorders)
        bodies = recorders[0].bodies
        ratios: list[float] = []
        for _ in range(asked.pairs):
            ours, our_cpu = await mindstorms(asked.url, asked.model, asked.mindstorms)
            theirs, their_cpu = await bare(asked.url, bodies)
            ratios.append(ours / theirs)
            cpu = f"{our_cpu / len(bodies) * 1e3:.1f} and {their_cpu / len(bodies) * 1e3:.1f} ms"
            row = f"nlsom {ours:.2f} s, httpx {theirs:.2f} s: {ratios[-1]:.2f}; CPU per request {cpu}"
            print(f"  {row}", flush=True)
    median = statistics.median(ratios)
    print(json.dumps({"requests": len(bodies), "ratios": ratios, "median": median, "most": MOST}, indent=2))
    return 0 if median <= MOST else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
