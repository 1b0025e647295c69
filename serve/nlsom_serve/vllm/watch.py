"""What is seen of servers that are up: how they are, what they log, that they ended."""

from __future__ import annotations

import asyncio
import difflib
import time
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import httpx

from nlsom.errors import UsageError
from nlsom_serve.vllm import state
from nlsom_serve.vllm.launch import healthy, reap
from nlsom_serve.vllm.metrics import Metrics
from nlsom_serve.vllm.state import Server


@dataclass(frozen=True, slots=True)
class Status:
    """How a server is.

    Attributes:
        server: The server.
        state: `silent` where it does not answer (yet); `failing` where it answers and is not well.
        uptime: Seconds since its start.
        metrics: Its counts; None while it does not answer.
        prompt_rate: Tokens read a second, over the interval that was watched.
        generation_rate: Tokens written a second, likewise.
    """

    server: Server
    state: Literal["serving", "silent", "failing"]
    uptime: float
    metrics: Metrics | None = None
    prompt_rate: float | None = None
    generation_rate: float | None = None


async def status(*, interval: float = 1.0) -> tuple[Status, ...]:
    """How the servers are that were started on this machine; forgets those that have ended.

    Args:
        interval: Seconds between the two readings that rates are made from.
    """
    servers = await asyncio.to_thread(state.servers)
    # A server that computes on the same few cores as it answers from can take many seconds over a line.
    async with httpx.AsyncClient(trust_env=False, timeout=30.0) as client:
        return tuple(await asyncio.gather(*(_status_of(client, server, interval) for server in servers)))


async def _status_of(client: httpx.AsyncClient, server: Server, interval: float) -> Status:
    uptime = time.time() - server.since
    try:
        earlier = Metrics.read((await client.get(f"{server.url}/metrics")).text)
        began = time.monotonic()
        well = await healthy(client, server)
        await asyncio.sleep(interval)
        later = Metrics.read((await client.get(f"{server.url}/metrics")).text)
    except httpx.TransportError:
        return Status(server, "silent", uptime)
    seconds = time.monotonic() - began
    done = later.since(earlier)
    return Status(
        server,
        "serving" if well else "failing",
        uptime,
        later,
        done.prompt_tokens / seconds,
        done.generated_tokens / seconds,
    )


async def first_end(servers: Sequence[Server]) -> Server:
    """Waits until one of some servers has ended, and says which."""
    while True:
        for server in servers:
            if not await asyncio.to_thread(_lives, server):
                return server
        await asyncio.sleep(0.5)


def _lives(server: Server) -> bool:
    reap(server.pid)
    return server.alive


async def logs(name: str, *, follow: bool = False) -> AsyncGenerator[str]:
    """Lines of a server's log; with `follow`, on until the server has ended.

    Raises:
        UsageError: There is no log of that name.
    """
    path = state.path_of(name).with_suffix(".log")
    if not path.is_file():
        known = [file.stem for file in state.folder().glob("*.log")]
        near = difflib.get_close_matches(name, known, n=1)
        raise UsageError(f"no log of {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""))
    at = 0
    while True:
        alive = follow and any(s.name == name for s in await asyncio.to_thread(state.servers))
        data = await asyncio.to_thread(_bytes_from, path, at)
        whole = len(data) if not alive else data.rfind(b"\n") + 1
        at += whole
        for line in data[:whole].decode(errors="replace").splitlines():
            yield line
        if not alive:
            return
        await asyncio.sleep(0.5)


def _bytes_from(path: Path, at: int) -> bytes:
    with path.open("rb") as file:
        file.seek(at)
        return file.read()
