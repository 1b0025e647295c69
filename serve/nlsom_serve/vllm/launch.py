"""Starts one `vllm serve`: finds vLLM, checks what can be checked before, and lets it go."""

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
    """What would be run, and where.

    Attributes:
        profile: The server.
        command: The command line.
        config: Text of the file that the command reads (vLLM's own YAML).
        config_path: Where it is written.
        host: Where the server will listen.
        port: On which port.
        url: Where the server will answer.
        env: Environment variables that are set for it.
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
        """SHA-256 (hex) of all that makes the server what it is, but for its port."""
        kept = {key: value for key, value in json.loads(self.config).items() if key != "port"}
        text = json.dumps([kept, self.env, self.command[:-1]], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def shell(self) -> str:
        """The command for a shell, to be read or copied."""
        return shlex.join([*(f"{key}={value}" for key, value in sorted(self.env.items())), *self.command])


NO_VLLM = (
    "vLLM is not installed. It pins its dependencies, so give it a virtual environment of its own: "
    "python -m venv ~/vllm && ~/vllm/bin/pip install vllm, then export NLSOM_VLLM=~/vllm"
)


async def find_vllm(given: str | None = None) -> tuple[str, ...] | None:
    """The command that `vllm` is, before `serve`; None where none is named and none is installed.

    Looked for in `given`, in the environment variable NLSOM_VLLM (each a virtual environment, a Python, or a
    `vllm` command), beside this Python, and on the PATH.

    Raises:
        UsageError: What was named is not a vLLM.
        ModelUnavailable: The Python that was named has none.
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
        # A Python. Asking vLLM itself would import all of it: half a minute on a busy machine.
        look = "import importlib.util, sys; sys.exit(importlib.util.find_spec('vllm') is None)"
        process = await asyncio.create_subprocess_exec(
            command[0], "-c", look, stdin=asyncio.subprocess.DEVNULL
        )
        if await process.wait():
            raise ModelUnavailable(f"no vLLM in {command[0]}: {command[0]} -m pip install vllm")
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
    """Says what would be run for a profile; starts and writes nothing.

    Args:
        profile: The server.
        command: What `find_vllm` found.
        taken: Ports of other servers, also of those that the same call will start; this one's is added.

    Raises:
        UsageError: The model's folder is missing, or it takes a port that is taken.
        ModelUnavailable: No port is free.
    """
    model = profile.model
    if model.startswith("/") and not Path(model).exists():
        raise UsageError(
            f"{profile.name}: no model at {model}: correct `vllm.model` in the profile, or fetch the model"
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
        The server, and for one that is not detached a file descriptor: the server ends when it is closed,
        which the kernel does when this process ends in whatever way.

    Raises:
        UsageError: Its port has been taken since it was prepared.
    """
    kept = ports.reserve(launch.host, launch.port, lingering="port" in launch.profile.vllm)
    server_log = launch.config_path.with_suffix("").with_suffix(".log")
    server_log.parent.mkdir(parents=True, exist_ok=True)
    launch.config_path.write_text(launch.config)
    mode = "detached" if detach else "attached"
    command = [sys.executable, "-I", guard.__file__, mode, str(guard.GRACE), *launch.command]
    env = os.environ | {"VLLM_NO_USAGE_STATS": "1", "PYTHONUNBUFFERED": "1"} | launch.env
    reads, holds = (None, None) if detach else os.pipe()
    written = os.open(server_log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    given = reads if reads is not None else os.open(os.devnull, os.O_RDONLY)
    # The guard holds the port from now on; the server does not get that socket, and binds its own.
    passed = ((given, 0), (written, 1), (written, 2), (kept.fileno(), 3))
    try:
        # Not asyncio's subprocess, whose transport kills what still runs when the loop closes.
        pid = os.posix_spawn(
            command[0],
            command,
            env,
            file_actions=[(os.POSIX_SPAWN_DUP2, *fds) for fds in passed],
            setsid=True,
        )
    finally:
        os.close(given)
        os.close(written)
        kept.close()
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
        os.killpg(pid, signal.SIGKILL)  # Without a state file nobody could find it again to end it.
        os.waitpid(pid, 0)
        if holds is not None:
            os.close(holds)
        raise
    return server, holds
