"""A real vision-language model on a GPU looks at the shipped photographs, in two societies.

    python serve/gpu_smoke.py [--profile small-vlm] [--pictures FOLDER]

Not yet run on a GPU: no machine with one could be had when it was written. On CPU its steps run with
`--profile cpu-test`, whose model answers at random.
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import time
from pathlib import Path

import httpx

from nlsom_serve.vllm import Metrics, Server, serving
from nlsom_societies import samples

SOCIETIES = ("vqa-monarchy", "vqa-democracy")
QUESTIONS = ("What is in the picture?", "How many people are there?")


def ask(server: Server, society: str, question: str, picture: Path) -> str:
    """The answer of `nlsom ask`, or what it says is wrong."""
    command = [
        *(str(Path(sys.executable).parent / "nlsom"), "ask", society, question, "--quiet"),
        *("--image", str(picture)),
        *("--model", f"vlm={server.url}/v1#{server.model}", "--model", f"llm={server.url}/v1#{server.model}"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)  # noqa: S603 (our own CLI)
    return (done.stdout if done.returncode == 0 else f"exit {done.returncode}: {done.stderr}").strip()


async def main() -> None:
    """Starts the server, asks both societies about each picture, and prints answers and figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--profile", default="small-vlm")
    parser.add_argument("--pictures", type=Path, default=Path(samples.__file__).parent / "images")
    asked = parser.parse_args()
    pictures = sorted(path for path in asked.pictures.rglob("*") if path.suffix in {".jpg", ".jpeg", ".png"})
    if not pictures:
        sys.exit(f"no pictures in {asked.pictures}")

    async with (
        serving([asked.profile], progress=lambda p: print(f"{p.seconds:6.1f} s  {p.stage}")) as (server,),
        httpx.AsyncClient(trust_env=False) as http,
    ):
        started = time.monotonic()
        for society in SOCIETIES:
            for picture in pictures:
                for question in QUESTIONS:
                    answer = await asyncio.to_thread(ask, server, society, question, picture)
                    print(f"{society}  {picture.name}  {question}  →  {answer}", flush=True)
        seconds = time.monotonic() - started
        done = Metrics.read((await http.get(f"{server.url}/metrics")).text)
    print(
        f"{done.generated_tokens / seconds:.1f} tokens/s written, {done.prompt_tokens / seconds:.1f} read, "
        f"{done.hit_rate or 0:.1%} of prompt tokens from the prefix cache"
    )


if __name__ == "__main__":
    asyncio.run(main())
