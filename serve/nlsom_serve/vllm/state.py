"""What is known of the servers that were started: one small file each, in nlsom's cache folder."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import re
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TextIO

from pydantic import ValidationError

from nlsom.errors import ModelUnavailable, UsageError
from nlsom.home import home
from nlsom.message import Frozen
from nlsom_agents.local.files import write_whole
from nlsom_serve.vllm.guard import session_of, stat_of
from nlsom_serve.vllm.profiles import Facts

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def folder() -> Path:
    """Where state files and logs of servers are."""
    return home() / "servers"


class Server(Frozen):
    """A server that was started.

    Attributes:
        name: What it is called here.
        model: The model's name in requests.
        url: Its base URL, without `/v1`.
        pid: Leader of the session that all its processes are in.
        born: When that process started, so that a later process of the same pid is not taken for it.
        since: When it was started (Unix time, seconds).
        log: Path of its log.
        detached: Whether it is kept when the process that started it ends.
        config: SHA-256 (hex) of what it was started with.
        facts: The profile's section `nlsom`: pictures per prompt, traits.
    """

    name: str
    model: str
    url: str
    pid: int
    born: str
    since: float
    log: str
    detached: bool
    config: str
    facts: Facts

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.url.rpartition(":")[2])

    @property
    def alive(self) -> bool:
        """Whether any of its processes lives."""
        return bool(self.pids)

    @property
    def pids(self) -> list[int]:
        """Its living processes. A pid is not given away again while a session of that number lives."""
        now = birth(self.pid)
        return session_of(self.pid) if now is None or now == self.born else []


def birth(pid: int) -> str | None:
    """Boot and clock tick at which a living process started; None where there is none."""
    fields = stat_of(pid)
    if fields is None or fields[0] in "ZX":
        return None
    return f"{Path('/proc/sys/kernel/random/boot_id').read_text().strip()}/{fields[19]}"


def path_of(name: str) -> Path:
    """The state file of a server.

    Raises:
        UsageError: No server can have that name.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(f"{name!r} cannot be the name of a server: use letters, digits, '.', '_' and '-'")
    return folder() / f"{name}.json"


def write(server: Server) -> None:
    """Writes a state file."""
    write_whole(path_of(server.name), _text(server))


def _text(server: Server) -> str:
    return server.model_dump_json(indent=2)


@asynccontextmanager
async def alone(*, patience: float = 60.0) -> AsyncGenerator[None]:
    """A block that only one process on this machine is in at a time, as far as servers of this folder go.

    The kernel gives the lock back when its holder ends, however it ends.

    Args:
        patience: Longest wait for whoever is in it, in seconds.

    Raises:
        ModelUnavailable: It is not left in time; says by which process.
    """
    path = _lock_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + patience
    with path.open("a+") as file:
        while not _locked(file):
            if time.monotonic() > deadline:
                file.seek(0)
                raise ModelUnavailable(
                    f"process {file.read() or '?'} has been starting a server for {patience:g} s and lets "
                    f"nobody else: end it, or wait (it holds {path})"
                )
            await asyncio.sleep(0.05)
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


def _lock_file() -> Path:
    return folder() / "start.lock"


def _locked(file: TextIO) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def forget(server: Server) -> None:
    """Removes the state file of a server that has ended; the log stays."""
    _remove(path_of(server.name), _text(server))


def _remove(path: Path, text: str) -> None:
    """Removes a state file if it still says so, and nobody is starting a server: that may write it anew."""
    with _lock_file().open("a+") as file, contextlib.suppress(FileNotFoundError):
        if _locked(file) and path.read_text() == text:
            path.unlink()


def servers() -> list[Server]:
    """Servers that have a living process, by name; files that speak of none are removed."""
    found: list[Server] = []
    for path in sorted(folder().glob("*.json")):
        try:
            text = path.read_text()
        except FileNotFoundError:
            continue  # another process removed it between the listing and the reading
        try:
            server = Server.model_validate_json(text)
        except ValidationError:
            _remove(path, text)  # written by another version of nlsom; nothing in it can be relied on
            continue
        if server.alive:
            found.append(server)
        else:
            _remove(path, text)
    return found
