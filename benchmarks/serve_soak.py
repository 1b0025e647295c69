"""Soak tests of the server: clients that disconnect, many concurrent clients, and generated requests.

    python benchmarks/serve_soak.py [--leave 200] [--crowd 500] [--examples 250]

- `leave`: clients disconnect at random moments; measures how long the models' server keeps working.
- `crowd`: many concurrent clients; each must get 200 or 429.
- `examples`: thousands of requests that schemathesis generates from the OpenAPI document; no response may be
  a 5xx, or have a status or body that the document does not specify.

Exits with 1 if one of them fails.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import httpx

from nlsom.config import load
from nlsom.testing.behaviours import ok
from nlsom.testing.faulty import FaultyServer

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from serving import CHAT, Process, chat, png, serving

CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,"
    "unsupported_method"
)

KNOWN = """
[dictionaries]
ids = {{ values = ["{id}"] }}
names = {{ values = ["trio"] }}
models = {{ values = ["society/trio"] }}
[parameters]
"path.id" = {{ dictionary = "ids", probability = 0.6 }}
"path.name" = {{ dictionary = "names", probability = 0.6 }}
"path.model" = {{ dictionary = "models", probability = 0.6 }}
"body.model" = {{ dictionary = "models", probability = 0.8 }}
"body.society" = {{ dictionary = "names", probability = 0.8 }}
"""
"""Existing ids for generated requests, so that not all end with 404."""


def soak(url: str, folder: Path, *, examples: int, phases: str, seed: int | None = None) -> tuple[int, str]:
    """Runs schemathesis against a server; returns its exit status and output."""
    (folder / "schemathesis.toml").write_text(KNOWN.format(id=_mindstorm(url)))
    command = [sys.executable, "-m", "schemathesis.cli", "run", f"{url}/openapi.json", "--no-color"]
    command += ["--checks", CHECKS, "--phases", phases, "-n", str(examples), "--continue-on-failure"]
    command += ["--suppress-health-check", "all", "--request-timeout", "30"]
    command += ["--seed", str(seed)] if seed is not None else []
    done = subprocess.run(command, text=True, capture_output=True, cwd=folder, check=False)  # noqa: S603
    return done.returncode, done.stdout + done.stderr


def _mindstorm(url: str) -> str:
    new = {"society": "trio", "question": "Well?", "images": [png()], "choices": ["cat", "dog"], "wait": True}
    return httpx.post(f"{url}/v1/mindstorms", json=new, timeout=60).json()["id"]


async def leave(folder: Path, times: int) -> bool:
    """Disconnects `times` clients while a society of three uses a model server in two rounds."""
    draw = random.Random(6)  # noqa: S311
    took: list[float] = []
    working = 0
    async with FaultyServer(then=ok("yes", after=0.15)) as models:
        asks = [{"ask": "a", "prompt": {"text": "Say."}, "as": name} for name in ("first", "ballot")]
        society = load(
            {
                "name": "trio",
                "models": {"llm": {"url": models.url, "model": "faulty"}},
                "members": {"a": {"agent": "chat", "model": "llm", "count": 3}},
                "mindstorm": asks,
            }
        )
        async with serving(folder, society) as (client, house):
            assert (await client.post(CHAT, json=chat("Warm?"))).status_code == 200
            for number in range(times):
                _, writer = await asyncio.open_connection("127.0.0.1", client.base_url.port)
                body = json.dumps(chat(f"{number}?", stream=number % 2 == 0)).encode()
                head = f"POST {CHAT} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                writer.write(head.encode() + f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
                await asyncio.sleep(draw.uniform(0, 0.45))
                working += models.in_flight > 0
                writer.transport.abort()
                began = time.perf_counter()
                while models.in_flight or _running() or house.places.running or house.places.waiting:
                    await asyncio.sleep(0.002)
                took.append(time.perf_counter() - began)
    print(
        f"{times} clients left, {working} while models worked; nothing was left of them after "
        f"{statistics.median(took) * 1e3:.0f} ms (median), {max(took) * 1e3:.0f} ms (longest)"
    )
    return max(took) < 1


def _running() -> list[asyncio.Task[object]]:
    return [task for task in asyncio.all_tasks() if task.get_name().startswith(("run ", "mindstorm "))]


async def crowd(url: str, clients: int) -> bool:
    """Sends requests from many clients concurrently; returns whether each got 200 or 429."""
    limits = httpx.Limits(max_connections=clients)
    async with httpx.AsyncClient(base_url=url, timeout=120, limits=limits) as client:
        got = await asyncio.gather(*(client.post(CHAT, json=chat(f"{n}?")) for n in range(clients)))
    statuses = Counter(response.status_code for response in got)
    print(f"{clients} clients at once: {dict(statuses)}")
    return set(statuses) <= {200, 429} and all("retry-after" in one.headers for one in got if one.is_error)


def main() -> None:
    """Starts a server and soaks it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--leave", type=int, default=200, help="clients that disconnect")
    parser.add_argument("--crowd", type=int, default=500, help="concurrent clients")
    parser.add_argument("--examples", type=int, default=450, help="fuzzing cases per operation")
    given = parser.parse_args()
    well = True
    if given.leave:
        with tempfile.TemporaryDirectory() as folder:
            well &= asyncio.run(leave(Path(folder), given.leave))
    with tempfile.TemporaryDirectory() as folder, Process(Path(folder), "--max-seconds", "5") as server:
        if given.crowd:
            well &= asyncio.run(crowd(server.url, given.crowd))
        if given.examples:
            status, report = soak(
                server.url, Path(folder), examples=given.examples, phases="coverage,fuzzing"
            )
            print(report[report.find("= SUMMARY") :])
            well &= status == 0
        well &= server.process.poll() is None
    sys.exit(not well)


if __name__ == "__main__":
    main()
