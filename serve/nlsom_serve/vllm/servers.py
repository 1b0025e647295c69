"""Starts and stops servers (`up`, `serving`, `down`), and previews that (`prepared`, `plans`)."""

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
"""Seconds that a server may take to become ready; a large model may have to be downloaded first."""


def _load_all(specs: Sequence[str]) -> list[Profile]:
    profiles = [profile for spec in specs for profile in load(spec)]
    twice = {p.name for p in profiles if sum(q.name == p.name for q in profiles) > 1}
    if twice:
        raise UsageError(
            f"named twice: {', '.join(sorted(twice))}; start one profile twice as a=PROFILE b=PROFILE"
        )
    return profiles


async def prepared(specs: Sequence[str], *, vllm: str | None = None) -> tuple[Launch, ...]:
    """What `up` would run (`--dry-run`). If vLLM is not installed, the command is just `vllm`.

    Args:
        specs: Names of profiles or paths of YAML files, with an optional prefix `NAME=`.
        vllm: A virtual environment, a Python or a `vllm` command; else NLSOM_VLLM, else the PATH.

    Raises:
        UsageError: A profile is faulty, or its port is in use.
        ModelUnavailable: The Python that was named has no vLLM.
    """
    command = await find_vllm(vllm) or ("vllm",)
    return tuple(launch for launch, _ in await _prepared(await asyncio.to_thread(_load_all, specs), command))


async def _prepared(
    profiles: Sequence[Profile], command: tuple[str, ...]
) -> list[tuple[Launch, Server | None]]:
    """Prepares the start of each profile; also returns the server of that name that is running already."""
    if not sys.platform.startswith("linux"):
        raise UsageError("nlsom starts servers only on Linux; elsewhere start one yourself and give its URL")
    servers = {server.name: server for server in await asyncio.to_thread(state.servers)}
    taken = {server.port for server in servers.values()}
    found: list[tuple[Launch, Server | None]] = []
    for profile in profiles:
        server = servers.get(profile.name)
        found.append((prepare(_without_port(profile) if server else profile, command, taken=taken), server))
    return found


def _check_same(launch: Launch, server: Server | None) -> None:
    """Refuses a running server with another configuration."""
    if server is not None and server.config != launch.digest:
        raise UsageError(
            f"{server.name} is running with another configuration: nlsom models down {server.name} first"
        )


def _without_port(profile: Profile) -> Profile:
    """The profile of a running server without its port, which is in use by the server itself."""
    return profile.model_copy(update={"vllm": {k: v for k, v in profile.vllm.items() if k != "port"}})


async def up(
    specs: Sequence[str],
    *,
    vllm: str | None = None,
    progress: Report | None = None,
    patience: float = START_PATIENCE,
) -> tuple[Server, ...]:
    """Starts servers that outlive this process (`--detach`), and waits until they are ready.

    Servers that are running already are kept. Others are started one after the other, because each measures
    the free memory at its start.

    Args:
        specs: Names of profiles or paths of YAML files, with an optional prefix `NAME=`.
        vllm: Where vLLM is; see `prepared`.
        progress: Called at each stage of each start.
        patience: Seconds that each server may take to become ready.

    Raises:
        UsageError: A profile is faulty, a port is in use, or a server of that name runs with another
            configuration.
        ModelUnavailable: No vLLM, too little memory, or a server ended; what this call started is stopped.
    """
    fresh: list[tuple[Server, int | None]] = []
    try:
        return await _start(specs, fresh, detach=True, vllm=vllm, progress=progress, patience=patience)
    except BaseException:
        await asyncio.shield(_stop([server for server, _ in fresh]))
        raise


@asynccontextmanager
async def serving(
    specs: Sequence[str],
    *,
    vllm: str | None = None,
    progress: Report | None = None,
    patience: float = START_PATIENCE,
) -> AsyncGenerator[tuple[Server, ...]]:
    """Starts servers that are stopped at the end of the block, even if this process is killed.

    Arguments and errors are those of `up`. Servers that were running before are kept.
    """
    fresh: list[tuple[Server, int | None]] = []
    try:
        yield await _start(specs, fresh, detach=False, vllm=vllm, progress=progress, patience=patience)
    finally:
        try:
            await asyncio.shield(_stop([server for server, _ in fresh]))
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
    """Starts servers that are not running, and adds each to `fresh` at once, for the caller to stop it."""
    command = await find_vllm(vllm)
    if command is None:
        raise ModelUnavailable(NO_VLLM)
    profiles = await asyncio.to_thread(_load_all, specs)
    for launch, server in await _prepared(profiles, command):
        _check_same(launch, server)  # all faults come up before the first server is started
    servers: list[Server] = []
    for profile in profiles:
        # Locked from the check of names and ports until the new server's state file is written.
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
    """The running server of a profile.

    Raises:
        ModelUnavailable: It is not running; says how to start it.
    """
    for server in await asyncio.to_thread(state.servers):
        if server.name == name:
            return server
    raise ModelUnavailable(f"the server {name!r} is not running: nlsom models up {name}")


async def down(names: Sequence[str] = ()) -> tuple[Server, ...]:
    """Stops servers with all their processes.

    Args:
        names: Servers, or sets (`pair` is `pair.eyes` and `pair.words`); all servers if empty.

    Returns:
        The stopped servers, none of whose processes is alive.

    Raises:
        UsageError: No server of that name is running.
        ModelUnavailable: A process could not be killed (it waits for a device or driver).
    """
    running = await asyncio.to_thread(state.servers)
    chosen: list[Server] = []
    for name in names:
        found = [server for server in running if server.name == name or server.name.startswith(f"{name}.")]
        if not found:
            known = ", ".join(server.name for server in running) or "none"
            raise UsageError(f"no server {name!r} is running (running: {known})")
        chosen.extend(server for server in found if server not in chosen)
    chosen = chosen if names else running
    await _stop(chosen)
    return tuple(chosen)


async def _stop(servers: Sequence[Server]) -> None:
    await asyncio.gather(*(_stop_one(server) for server in servers))


async def _stop_one(server: Server) -> None:
    """Terminates all processes of a server, and kills those that remain after `guard.GRACE` seconds."""
    for sig, patience in ((signal.SIGTERM, guard.GRACE), (signal.SIGKILL, 10.0)):
        deadline = time.monotonic() + patience
        guard.send(await asyncio.to_thread(lambda: server.pids), sig)
        while time.monotonic() < deadline:
            reap(server.pid)
            left = await asyncio.to_thread(lambda: server.pids)
            if not left:
                break
            if sig is signal.SIGKILL:
                guard.send(left, sig)  # including processes forked meanwhile
            await asyncio.sleep(0.05)
    if left := await asyncio.to_thread(lambda: server.pids):
        raise ModelUnavailable(
            f"{server.name}: processes {left} survive SIGKILL; see `ps` and the driver's log"
        )
    await asyncio.to_thread(state.forget, server)


async def plans(specs: Sequence[str]) -> tuple[Plan, ...]:
    """Estimates the memory of profiles, for this machine's device or else the one they are made for.

    Raises:
        UsageError: A profile is faulty, or the model's or device's size is unknown.
    """
    made: list[Plan] = []
    for profile in await asyncio.to_thread(_load_all, specs):
        _, total = await memory(profile)
        made.append(await asyncio.to_thread(plan, profile, total_gib=total))
    return tuple(made)
