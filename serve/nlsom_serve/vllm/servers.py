"""What is done with servers: `up`, `serving`, `down`, and before that `prepared` and `plans`."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

from nlsom.errors import ModelUnavailable, UsageError
from nlsom_serve.vllm import guard, state
from nlsom_serve.vllm.launch import NO_VLLM, Launch, find_vllm, prepare, start
from nlsom_serve.vllm.memory import check, memory
from nlsom_serve.vllm.plan import Plan, plan
from nlsom_serve.vllm.profiles import Profile, load
from nlsom_serve.vllm.state import Server
from nlsom_serve.vllm.watch import Report, reap, wait_ready

START_PATIENCE = 3600.0
"""Seconds that a server may take to answer; a large model may be downloaded first."""


def _all(specs: Sequence[str]) -> list[Profile]:
    profiles = [profile for spec in specs for profile in load(spec)]
    twice = {p.name for p in profiles if sum(q.name == p.name for q in profiles) > 1}
    if twice:
        raise UsageError(
            f"named twice: {', '.join(sorted(twice))}; start one profile twice as a=PROFILE b=PROFILE"
        )
    return profiles


async def prepared(specs: Sequence[str], *, vllm: str | None = None) -> tuple[Launch, ...]:
    """What `up` would run for profiles, starting nothing (`--dry-run`): `vllm` where there is none yet.

    Args:
        specs: Names, paths, or `NAME=` and one of these.
        vllm: A virtual environment, a Python or a `vllm` command; else NLSOM_VLLM, else the PATH.

    Raises:
        UsageError: A profile cannot be used, or its port is taken.
        ModelUnavailable: There is no vLLM where it was said to be.
    """
    command = await find_vllm(vllm) or ("vllm",)
    return tuple(launch for launch, _ in await _prepared(await asyncio.to_thread(_all, specs), command))


async def _prepared(
    profiles: Sequence[Profile], command: tuple[str, ...]
) -> list[tuple[Launch, Server | None]]:
    """What would be run for profiles, each with the server of that name that is up already."""
    if not sys.platform.startswith("linux"):
        raise UsageError("servers are started on Linux only; elsewhere start one yourself and give its URL")
    servers = {server.name: server for server in await asyncio.to_thread(state.servers)}
    taken = {server.port for server in servers.values()}
    found: list[tuple[Launch, Server | None]] = []
    for profile in profiles:
        server = servers.get(profile.name)
        found.append((prepare(_without_port(profile) if server else profile, command, taken=taken), server))
    return found


def _check_same(launch: Launch, server: Server | None) -> None:
    """Refuses a server that is up, but was started otherwise."""
    if server is not None and server.config != launch.digest:
        raise UsageError(
            f"{server.name} is up with another configuration: nlsom models down {server.name} first"
        )


def _without_port(profile: Profile) -> Profile:
    """The port of a server that is up already is its own."""
    return profile.model_copy(update={"vllm": {k: v for k, v in profile.vllm.items() if k != "port"}})


async def up(
    specs: Sequence[str],
    *,
    vllm: str | None = None,
    progress: Report | None = None,
    patience: float = START_PATIENCE,
) -> tuple[Server, ...]:
    """Starts servers that outlive this process (`--detach`), and waits until they answer.

    One that is up already stays. They are started one after the other, because a server that starts beside
    another measures free memory that the other is about to take.

    Args:
        specs: Names of profiles, paths of YAML files, or `NAME=` and one of these.
        vllm: Where vLLM is; see `prepared`.
        progress: Called at each stage of each start.
        patience: Longest that one may take to answer, in seconds.

    Raises:
        UsageError: A profile cannot be used, a port is taken, or a server of that name is up otherwise.
        ModelUnavailable: No vLLM, too little memory, or a server ended; those started by this call are down.
    """
    fresh: list[tuple[Server, int | None]] = []
    try:
        return await _start(specs, fresh, detach=True, vllm=vllm, progress=progress, patience=patience)
    except BaseException:
        await asyncio.shield(_end([server for server, _ in fresh]))
        raise


@asynccontextmanager
async def serving(
    specs: Sequence[str],
    *,
    vllm: str | None = None,
    progress: Report | None = None,
    patience: float = START_PATIENCE,
) -> AsyncGenerator[tuple[Server, ...]]:
    """Servers for a block, or, should this process be killed, for as long as it lives.

    Arguments and errors are those of `up`. A server that was up before stays up after.
    """
    fresh: list[tuple[Server, int | None]] = []
    try:
        yield await _start(specs, fresh, detach=False, vllm=vllm, progress=progress, patience=patience)
    finally:
        try:
            await asyncio.shield(_end([server for server, _ in fresh]))
        finally:
            for _, pipe in fresh:
                if pipe is not None:
                    os.close(pipe)


async def _start(
    specs: Sequence[str],
    fresh: list[tuple[Server, int | None]],
    *,
    detach: bool,
    vllm: str | None,
    progress: Report | None,
    patience: float,
) -> tuple[Server, ...]:
    """Starts what is not up; adds it to `fresh` as it starts, so that it can be ended whatever happens."""
    command = await find_vllm(vllm)
    if command is None:
        raise ModelUnavailable(NO_VLLM)
    profiles = await asyncio.to_thread(_all, specs)
    for launch, server in await _prepared(profiles, command):
        _check_same(launch, server)  # what is wrong with the last is told before the first is started
    servers: list[Server] = []
    for profile in profiles:
        # Nobody else may look between the look at names and ports and the state file of what is new.
        async with state.alone():
            ((launch, server),) = await _prepared([profile], command)
            _check_same(launch, server)
            if server is None:
                await check(profile)
                fresh.append(start(launch, detach=detach))
                server = fresh[-1][0]
        await wait_ready(server, progress, patience=patience)
        servers.append(server)
    return tuple(servers)


async def find(name: str) -> Server:
    """The server of a profile, for a society that names it.

    Raises:
        ModelUnavailable: It is not up; says how to start it.
    """
    for server in await asyncio.to_thread(state.servers):
        if server.name == name:
            return server
    raise ModelUnavailable(f"the server {name!r} is not up: nlsom models up {name}")


async def down(names: Sequence[str] = ()) -> tuple[Server, ...]:
    """Stops servers, all processes of each; all servers where none is named.

    Args:
        names: Servers, or sets (`pair` is `pair.eyes` and `pair.words`).

    Returns:
        Those that were stopped: nothing of them lives any more.

    Raises:
        UsageError: No server of that name is up.
        ModelUnavailable: A process could not be killed (it waits on a device or driver).
    """
    running = await asyncio.to_thread(state.servers)
    chosen: list[Server] = []
    for name in names:
        found = [server for server in running if server.name == name or server.name.startswith(f"{name}.")]
        if not found:
            known = ", ".join(server.name for server in running) or "none"
            raise UsageError(f"no server {name!r} is up (up: {known})")
        chosen.extend(server for server in found if server not in chosen)
    chosen = chosen if names else running
    await _end(chosen)
    return tuple(chosen)


async def _end(servers: Sequence[Server]) -> None:
    await asyncio.gather(*(_end_one(server) for server in servers))


async def _end_one(server: Server) -> None:
    """Asks every process of a server to end, and kills what is left after a while."""
    for sig, patience in ((signal.SIGTERM, guard.GRACE), (signal.SIGKILL, 10.0)):
        deadline = time.monotonic() + patience
        guard.send(await asyncio.to_thread(lambda: server.pids), sig)
        while time.monotonic() < deadline:
            reap(server.pid)
            left = await asyncio.to_thread(lambda: server.pids)
            if not left:
                break
            if sig is signal.SIGKILL:
                guard.send(left, sig)  # a process may have been born since the last look
            await asyncio.sleep(0.05)
    if left := await asyncio.to_thread(lambda: server.pids):
        raise ModelUnavailable(
            f"{server.name}: processes {left} do not end, even killed; see `ps` and the driver's log"
        )
    await asyncio.to_thread(state.forget, server)


async def plans(specs: Sequence[str]) -> tuple[Plan, ...]:
    """Estimates the memory of profiles, for the device of this machine or else the one they are made for.

    Raises:
        UsageError: A profile cannot be used, or too little is known to plan.
    """
    made: list[Plan] = []
    for profile in await asyncio.to_thread(_all, specs):
        _, total = await memory(profile)
        made.append(await asyncio.to_thread(plan, profile, total_gib=total))
    return tuple(made)
