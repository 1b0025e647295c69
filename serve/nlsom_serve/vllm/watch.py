"""Monitors servers: waits until they are ready or have ended, reads their status and logs."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import httpx

from nlsom.errors import ModelUnavailable, UsageError, meant
from nlsom_serve.vllm import log, ports, state
from nlsom_serve.vllm.metrics import Metrics
from nlsom_serve.vllm.state import Server

_TAIL = 256 * 1024
"""Bytes at a log's end that are searched for the cause of a failure."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a server's start.

    Attributes:
        name: The server's name.
        stage: Such as `loading weights: 50%`, `KV cache: 46,592 tokens`, `serving`.
        seconds: Since the wait began.
    """

    name: str
    stage: str
    seconds: float


Report = Callable[[Progress], None]


async def wait_ready(server: Server, report: Report | None = None, *, patience: float) -> None:
    """Waits until a server is ready, for at most `patience` seconds, and reports the stages in its log.

    Raises:
        ModelUnavailable: It ended, with the cause from its log, or is not ready in time.
    """
    started = time.monotonic()
    read, last = 0, ""

    def reach(stage: str) -> None:
        nonlocal last
        if stage != last and report:
            report(Progress(server.name, stage, time.monotonic() - started))
        last = stage

    reach("starting")
    async with httpx.AsyncClient(trust_env=False, timeout=30.0) as client:
        while True:
            alive = await asyncio.to_thread(_lives, server)
            lines, read = await asyncio.to_thread(_read_from, server.log, read)
            for line in lines:
                if stage := log.stage(line):
                    reach(stage)
            if not alive:
                raise ModelUnavailable(await asyncio.to_thread(_why_ended, server))
            if await _healthy(client, server) and await asyncio.to_thread(_listens, server):
                reach("serving")
                return
            if time.monotonic() - started > patience:
                raise ModelUnavailable(
                    f"{server.name} was not ready within {patience:g} s; its last stage: {last}\n"
                    f"  its log: {server.log}"
                )
            await asyncio.sleep(0.25)


async def _healthy(client: httpx.AsyncClient, server: Server) -> bool:
    """Whether a server reports that it is healthy."""
    try:
        return (await client.get(f"{server.url}/health")).status_code == 200
    except httpx.TransportError:
        return False


def _listens(server: Server) -> bool:
    """Whether the server itself listens on its port, and not another process."""
    return ports.listens(server.port, server.pids)


def _why_ended(server: Server) -> str:
    start = max(0, os.path.getsize(server.log) - _TAIL)
    lines, _ = _read_from(server.log, start, whole=False)
    return f"{server.name} ended: {log.reason(lines)}\n  its log: {server.log}"


@dataclass(frozen=True, slots=True)
class Status:
    """The state of a server.

    Attributes:
        server: The server.
        state: `silent` if it does not answer (yet); `failing` if it answers but is not healthy.
        uptime: Seconds since its start.
        metrics: Its counters; None while it does not answer.
        prompt_rate: Prompt tokens per second, over the interval between the two readings.
        generation_rate: Generated tokens per second, likewise.
    """

    server: Server
    state: Literal["serving", "silent", "failing"]
    uptime: float
    metrics: Metrics | None = None
    prompt_rate: float | None = None
    generation_rate: float | None = None


async def status(*, interval: float = 1.0) -> tuple[Status, ...]:
    """The states of the servers on this machine; removes state files of those that have ended.

    Args:
        interval: Seconds between the two readings of the metrics.
    """
    servers = await asyncio.to_thread(state.servers)
    # A CPU server computes and answers on the same cores, and can take many seconds to respond.
    async with httpx.AsyncClient(trust_env=False, timeout=30.0) as client:
        return tuple(await asyncio.gather(*(_status_of(client, server, interval) for server in servers)))


async def _status_of(client: httpx.AsyncClient, server: Server, interval: float) -> Status:
    uptime = time.time() - server.since
    try:
        earlier = Metrics.read((await client.get(f"{server.url}/metrics")).text)
        began = time.monotonic()
        well = await _healthy(client, server)
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
    """Waits until one of the servers has ended, and returns it."""
    while True:
        for server in servers:
            if not await asyncio.to_thread(_lives, server):
                return server
        await asyncio.sleep(0.5)


def _lives(server: Server) -> bool:
    reap(server.pid)
    return server.alive


def reap(pid: int) -> None:
    """Reaps a child process if it has ended; until then a zombie keeps its pid."""
    with contextlib.suppress(ChildProcessError):  # started by another process, or reaped before
        os.waitpid(pid, os.WNOHANG)


async def logs(name: str, *, follow: bool = False) -> AsyncGenerator[str]:
    """Yields the lines of a server's log; with `follow`, also new ones until the server has ended.

    Raises:
        UsageError: There is no log of that name.
    """
    path = state.path_of(name).with_suffix(".log")
    if not path.is_file():
        known = [file.stem for file in state.folder().glob("*.log")]
        raise UsageError(f"no log of {name!r}; {meant(name, known)}")
    at = 0
    while True:
        alive = follow and any(s.name == name for s in await asyncio.to_thread(state.servers))
        lines, at = await asyncio.to_thread(_read_from, str(path), at, whole=alive)
        for line in lines:
            yield line
        if not alive:
            return
        await asyncio.sleep(0.5)


def _read_from(path: str, at: int, *, whole: bool = True) -> tuple[list[str], int]:
    """Reads a log from byte `at`; returns its lines and where to continue.

    Args:
        path: The log.
        at: Offset in bytes.
        whole: Whether to leave out an incomplete last line. Progress bars end lines with a carriage return.
    """
    with open(path, "rb") as file:
        file.seek(at)
        data = file.read()
    if whole:
        data = data[: max(data.rfind(b"\n"), data.rfind(b"\r")) + 1]
    return data.decode(errors="replace").splitlines(), at + len(data)
