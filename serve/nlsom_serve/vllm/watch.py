"""What is seen of servers: that they come up, how they are, what they log, that they ended."""

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
"""Bytes of a log's end in which the reason of a failure is looked for."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the start of a server has come.

    Attributes:
        name: The server.
        stage: Such as `loading weights: 50%`, `KV cache: 46,592 tokens`, `serving`.
        seconds: Since it was started.
    """

    name: str
    stage: str
    seconds: float


Report = Callable[[Progress], None]


async def wait_ready(server: Server, report: Report | None = None, *, patience: float) -> None:
    """Waits until a server answers, and reports the stages that its log shows.

    Raises:
        ModelUnavailable: It ended before, or did not answer in time; the message has the log's own reason.
    """
    started = time.monotonic()
    read, last = 0, ""

    def come_to(stage: str) -> None:
        nonlocal last
        if stage != last and report:
            report(Progress(server.name, stage, time.monotonic() - started))
        last = stage

    come_to("starting")
    async with httpx.AsyncClient(trust_env=False, timeout=30.0) as client:
        while True:
            alive = await asyncio.to_thread(_lives, server)
            lines, read = await asyncio.to_thread(_read_from, server.log, read)
            for line in lines:
                if stage := log.stage(line):
                    come_to(stage)
            if not alive:
                raise ModelUnavailable(await asyncio.to_thread(_why_ended, server))
            if await _healthy(client, server) and await asyncio.to_thread(_listens, server):
                come_to("serving")
                return
            if time.monotonic() - started > patience:
                raise ModelUnavailable(
                    f"{server.name} did not answer within {patience:g} s; it has come to: {last}\n"
                    f"  its log: {server.log}"
                )
            await asyncio.sleep(0.25)


async def _healthy(client: httpx.AsyncClient, server: Server) -> bool:
    """Whether a server says that it is well."""
    try:
        return (await client.get(f"{server.url}/health")).status_code == 200
    except httpx.TransportError:
        return False


def _listens(server: Server) -> bool:
    """Whether it is the server that answers, and not a stranger at its port."""
    return ports.listens(server.port, server.pids)


def _why_ended(server: Server) -> str:
    start = max(0, os.path.getsize(server.log) - _TAIL)
    lines, _ = _read_from(server.log, start, whole=False)
    return f"{server.name} ended: {log.reason(lines)}\n  its log: {server.log}"


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
    """Waits until one of some servers has ended, and says which."""
    while True:
        for server in servers:
            if not await asyncio.to_thread(_lives, server):
                return server
        await asyncio.sleep(0.5)


def _lives(server: Server) -> bool:
    reap(server.pid)
    return server.alive


def reap(pid: int) -> None:
    """Takes note that a child has ended, if it has: until then its pid is kept."""
    with contextlib.suppress(ChildProcessError):  # started by another process, or reaped before
        os.waitpid(pid, os.WNOHANG)


async def logs(name: str, *, follow: bool = False) -> AsyncGenerator[str]:
    """Lines of a server's log; with `follow`, on until the server has ended.

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
    """Lines of a log from a byte on, and the byte after them; by default only those that are complete.

    Progress bars end their lines with a carriage return.
    """
    with open(path, "rb") as file:
        file.seek(at)
        data = file.read()
    if whole:
        data = data[: max(data.rfind(b"\n"), data.rfind(b"\r")) + 1]
    return data.decode(errors="replace").splitlines(), at + len(data)
