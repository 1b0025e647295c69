"""Smoke test of a vLLM server: two societies answer questions about the shipped photographs.

    python serve/gpu_smoke.py                              the profile small-vlm, on a GPU
    python serve/gpu_smoke.py --profile middle-vlm         another profile, or a YAML file of your own
    python serve/gpu_smoke.py --model ./models/mine        another model: a folder or hub id
    python serve/gpu_smoke.py --url http://gpu-1:8000/v1   a vLLM server that is already running
    python serve/gpu_smoke.py --profile cpu-test           the random model of `make test-vllm`, on the CPU

Starts the server, or uses one of that name that is running, and leaves that one running. Asks `vqa-monarchy`
and `vqa-democracy` the shipped questions, each with four options. Prints each answer beside the right one,
then the server's tokens per second and prefix-cache hit rate. Exits with 1 if any question got no answer.

Not yet run on a GPU; `make test-vllm` runs it on vLLM's CPU build.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path

import httpx

import nlsom
from nlsom.bench.sample import Sample
from nlsom.bench.sets import load_set
from nlsom.errors import NlsomError
from nlsom_serve.vllm import Metrics, Progress, load, serving
from nlsom_societies import samples

SOCIETIES = ("vqa-monarchy", "vqa-democracy")


def with_model(profile: str, model: str, folder: str) -> str:
    """Writes a copy of a profile with another model to `folder`; returns its path."""
    (like,) = load(profile)
    given = Path(model).expanduser()
    kept = {key: value for key, value in like.vllm.items() if key != "served-model-name"}
    vllm = kept | {"model": str(given.resolve()) if given.exists() else model}
    path = Path(folder) / "gpu-smoke.yaml"
    path.write_text(
        json.dumps({"vllm": vllm, "nlsom": like.facts.model_dump(mode="json", exclude={"shape"})})
    )
    return str(path)


def show(progress: Progress) -> None:
    """Prints the progress of the start."""
    print(f"{progress.seconds:6.1f} s  {progress.stage}", flush=True)


async def answer(society: nlsom.Society, sample: Sample) -> bool:
    """Asks one question and prints the answer; returns whether there was one."""
    (picture,) = sample.pictures
    assert isinstance(picture, str)
    assert sample.choice is not None
    task = sample.task
    asked = f"{society.name}  {Path(picture).name}  {task.question}"
    try:
        verdict = await society.ask(task.question, images=[picture], choices=task.choices, seed=0)
    except NlsomError as error:
        print(f"{asked}\n    failed: {error}", flush=True)
        return False
    print(f"{asked}\n    {verdict.answer!r} (right: {task.choices[sample.choice]!r})", flush=True)
    for abstained in verdict.abstained:
        print(f"    {abstained.member} abstained in {abstained.phase}: {abstained.cause}", flush=True)
    return verdict.answer is not None


async def main() -> int:
    """Starts the server, asks both societies, and prints answers and throughput; returns the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--profile", default="small-vlm", help="a shipped profile, YAML file or NAME=PROFILE")
    parser.add_argument("--model", help="a folder or hub id, instead of the profile's model")
    parser.add_argument("--url", metavar="URL[#MODEL]", help="a running server, instead of a profile")
    parser.add_argument("--vllm", metavar="PATH", help="vLLM's virtual environment; default: NLSOM_VLLM")
    parser.add_argument("--questions", type=int, metavar="N", help="how many questions; default: all")
    given = parser.parse_args()
    asked = list(load_set("aokvqa", samples.FOLDER).samples(given.questions, seed=0))
    async with AsyncExitStack() as stack:
        if given.url:
            url, served = given.url.partition("#")[0].rstrip("/").removesuffix("/v1"), given.url
        else:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            profile = with_model(given.profile, given.model, folder) if given.model else given.profile
            (server,) = await stack.enter_async_context(serving([profile], vllm=given.vllm, progress=show))
            url, served = server.url, f"profile:{server.name}"  # by name, so that the profile's traits apply
        http = await stack.enter_async_context(httpx.AsyncClient(trust_env=False, timeout=300))

        async def metrics() -> Metrics:
            return Metrics.read((await http.get(f"{url}/metrics")).text)

        before, started = await metrics(), time.monotonic()
        well: list[bool] = []
        for name in SOCIETIES:
            async with nlsom.load(name, models={"vlm": served, "llm": served}) as society:
                well += await asyncio.gather(*(answer(society, sample) for sample in asked))
        seconds = time.monotonic() - started
        done = (await metrics()).since(before)
    print(
        f"{served}: {sum(well)} of {len(well)} mindstorms gave an answer in {seconds:.1f} s\n"
        f"{done.generated_tokens / seconds:.1f} tokens/s written, {done.prompt_tokens / seconds:.1f} read; "
        f"{done.hit_rate or 0:.1%} of prompt tokens from the prefix cache"
    )
    return 0 if all(well) else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
