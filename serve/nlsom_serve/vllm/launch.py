"""Starts a `vllm serve` process: finds vLLM, checks the profile, spawns the process under a guard."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import shlex
import shutil
import signal
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from nlsom.errors import ModelUnavailable, UsageError
from nlsom_serve.vllm import guard, ports, state
from nlsom_serve.vllm.profiles import Profile
from nlsom_serve.vllm.state import Server

_PYTHON_MODULE = "vllm.entrypoints.cli.main"


@dataclass(frozen=True, slots=True)
class Launch:
    """A prepared start of a server.

    Attributes:
        profile: The server's profile.
        command: The command line.
        config: Content of the configuration file that the command reads (vLLM's YAML).
        config_path: Path of that file.
        host: Address that the server will listen on.
        port: Port that the server will listen on.
        url: Base URL for clients on this machine, without `/v1`.
        env: Environment variables that are set for the server.
    """

    profile: Profile
    command: tuple[str, ...]
    config: str
    config_path: Path
    host: str
    port: int
    url: str
    env: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def digest(self) -> str:
        """SHA-256 (hex) of configuration, environment and command, without the port."""
        kept = {key: value for key, value in json.loads(self.config).items() if key != "port"}
        text = json.dumps([kept, self.env, self.command[:-1]], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def shell(self) -> str:
        """The command line for a shell."""
        return shlex.join([*(f"{key}={value}" for key, value in sorted(self.env.items())), *self.command])


NO_VLLM = (
    "vLLM is not installed. It pins its dependencies, so give it a virtual environment of its own: "
    "python -m venv ~/vllm && ~/vllm/bin/pip install vllm, then export NLSOM_VLLM=~/vllm"
)


async def find_vllm(given: str | None = None) -> tuple[str, ...] | None:
    """Finds the command that runs vLLM, without `serve`; None if vLLM is not installed.

    Looks at `given`, then the environment variable NLSOM_VLLM (each a virtual environment, a Python, or a
    `vllm` command), then beside this Python, then on the PATH.

    Raises:
        UsageError: What `given` or NLSOM_VLLM names is none of these.
        ModelUnavailable: It is a Python without vLLM.
    """
    named = given or os.environ.get("NLSOM_VLLM")
    if named:
        source = "--vllm" if given else "NLSOM_VLLM"
        command = await asyncio.to_thread(_command_at, named)
        if command is None:
            raise UsageError(
                f"{source}: {named} is neither a virtual environment nor a Python nor a `vllm` command"
            )
    else:
        beside = Path(sys.executable).parent / "vllm"
        found = str(beside) if beside.is_file() else shutil.which("vllm")
        if found is None:
            return None
        command = (found,)
    if len(command) > 1:
        # A Python. `vllm --version` would import all of vLLM, which takes up to half a minute.
        find_spec = "import importlib.util, sys; sys.exit(importlib.util.find_spec('vllm') is None)"
        process = await asyncio.create_subprocess_exec(
            command[0], "-c", find_spec, stdin=asyncio.subprocess.DEVNULL
        )
        if await process.wait():
            raise ModelUnavailable(f"no vLLM in {command[0]}; install it: {command[0]} -m pip install vllm")
    return command


def _command_at(named: str) -> tuple[str, ...] | None:
    path = Path(named).expanduser().absolute()
    if path.is_dir():
        script, python = path / "bin" / "vllm", path / "bin" / "python"
        if script.is_file():
            return (str(script),)
        return (str(python), "-m", _PYTHON_MODULE) if python.is_file() else None
    if not (path.is_file() and os.access(path, os.X_OK)):
        return None
    return (str(path),) if path.name == "vllm" else (str(path), "-m", _PYTHON_MODULE)


def prepare(profile: Profile, command: tuple[str, ...], *, taken: set[int]) -> Launch:
    """Prepares the start of a server; starts and writes nothing.

    Args:
        profile: The server's profile.
        command: From `find_vllm`.
        taken: Ports of other servers, running or about to be started; this server's port is added.

    Raises:
        UsageError: The model's folder is missing, or the profile's port is in use.
        ModelUnavailable: No port is free.
    """
    model = profile.model
    if model.startswith("/") and not Path(model).exists():
        raise UsageError(
            f"{profile.name}: no model at {model}: correct `vllm.model` in the profile, or download the model"
        )
    host = str(profile.vllm["host"])
    asked = profile.vllm.get("port")
    if asked is None:
        port = next((n for n in range(8000, 9000) if n not in taken and ports.is_free(host, n)), None)
        if port is None:
            raise ModelUnavailable(f"{profile.name}: no port from 8000 to 8999 is free on {host}")
    else:
        port = int(profile.number("port", 0))
        if port in taken or not ports.is_free(host, port, lingering=True):
            raise ports.in_use(host, port)
    taken.add(port)
    config = json.dumps(profile.vllm | {"port": port}, indent=2, sort_keys=True)  # JSON is YAML
    path = state.path_of(profile.name).with_suffix(".vllm.yaml")
    near = "127.0.0.1" if host in {"0.0.0.0", "::"} else host  # noqa: S104 (compared, not bound)
    near = f"[{near}]" if ":" in near else near
    full = (*command, "serve", "--config", str(path))
    url = f"http://{near}:{port}"
    return Launch(profile, full, config, path, host, port, url, dict(profile.facts.env))


def start(launch: Launch, *, detach: bool) -> tuple[Server, int | None]:
    """Starts a server in a session of its own.

    Returns:
        The server, and unless detached a file descriptor: the server stops when it is closed, which the
        kernel does when this process ends, in whatever way.

    Raises:
        UsageError: Its port has been taken since it was prepared.
    """
    reserved = ports.reserve(launch.host, launch.port, lingering="port" in launch.profile.vllm)
    server_log = launch.config_path.with_suffix("").with_suffix(".log")
    server_log.parent.mkdir(parents=True, exist_ok=True)
    launch.config_path.write_text(launch.config)
    mode = "detached" if detach else "attached"
    command = [sys.executable, "-I", guard.__file__, mode, str(guard.GRACE), *launch.command]
    env = os.environ | {"VLLM_NO_USAGE_STATS": "1", "PYTHONUNBUFFERED": "1"} | launch.env
    read_end, write_end = (None, None) if detach else os.pipe()
    log_fd = os.open(server_log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    stdin = read_end if read_end is not None else os.open(os.devnull, os.O_RDONLY)
    # The guard keeps the port reserved; the server does not inherit that socket, and binds its own.
    passed = ((stdin, 0), (log_fd, 1), (log_fd, 2), (reserved.fileno(), 3))
    try:
        # Not asyncio's subprocess, whose transport kills running processes when the loop closes.
        pid = os.posix_spawn(
            command[0],
            command,
            env,
            file_actions=[(os.POSIX_SPAWN_DUP2, *fds) for fds in passed],
            setsid=True,
        )
    finally:
        os.close(stdin)
        os.close(log_fd)
        reserved.close()
    server = Server(
        name=launch.profile.name,
        model=launch.profile.served,
        url=launch.url,
        pid=pid,
        born=state.birth(pid) or "",
        since=time.time(),
        log=str(server_log),
        detached=detach,
        config=launch.digest,
        facts=launch.profile.facts,
    )
    try:
        state.write(server)
    except OSError:
        os.killpg(pid, signal.SIGKILL)  # without a state file it could not be found again to be stopped
        os.waitpid(pid, 0)
        if write_end is not None:
            os.close(write_end)
        raise
    return server, write_end
