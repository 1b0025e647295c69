"""State files of running servers, one each, in nlsom's cache folder."""

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
    """The folder of state files and logs."""
    return home() / "servers"


class Server(Frozen):
    """A server that was started on this machine.

    Attributes:
        name: Its name.
        model: The model's name in requests.
        url: Its base URL, without `/v1`.
        pid: Leader of the session of all its processes.
        born: When that process started, to tell it from a later process with the same pid.
        since: When it was started (Unix time, seconds).
        log: Path of its log.
        detached: Whether it keeps running when the process that started it ends.
        config: SHA-256 (hex) of its configuration; see `Launch.digest`.
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
        """The port it listens on."""
        return int(self.url.rpartition(":")[2])

    @property
    def alive(self) -> bool:
        """Whether any of its processes is alive."""
        return bool(self.pids)

    @property
    def pids(self) -> list[int]:
        """Its living processes. The kernel does not reuse a pid while a session with that id exists."""
        now = birth(self.pid)
        return session_of(self.pid) if now is None or now == self.born else []


def birth(pid: int) -> str | None:
    """Boot id and clock tick at which a living process started; None if there is no such process."""
    fields = stat_of(pid)
    if fields is None or fields[0] in "ZX":
        return None
    return f"{Path('/proc/sys/kernel/random/boot_id').read_text().strip()}/{fields[19]}"


def path_of(name: str) -> Path:
    """The path of a server's state file.

    Raises:
        UsageError: The name is invalid.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(f"{name!r} is no valid name of a server: use letters, digits, '.', '_' and '-'")
    return folder() / f"{name}.json"


def write(server: Server) -> None:
    """Writes a state file."""
    write_whole(path_of(server.name), _text(server))


def _text(server: Server) -> str:
    return server.model_dump_json(indent=2)


@asynccontextmanager
async def alone(*, patience: float = 60.0) -> AsyncGenerator[None]:
    """Holds the lock that lets only one process at a time start servers of this folder.

    The kernel releases the lock when its holder ends, in whatever way.

    Args:
        patience: Longest wait for the lock, in seconds.

    Raises:
        ModelUnavailable: Another process, which is named, holds it for too long.
    """
    path = _lock_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + patience
    with path.open("a+") as file:
        while not _locked(file):
            if time.monotonic() > deadline:
                file.seek(0)
                raise ModelUnavailable(
                    f"process {file.read() or '?'} has been starting a server for {patience:g} s: wait for "
                    f"it or end it (it holds the lock {path})"
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
    """Removes a state file unless it has changed, or a server is being started, which may rewrite it."""
    with _lock_file().open("a+") as file, contextlib.suppress(FileNotFoundError):
        if _locked(file) and path.read_text() == text:
            path.unlink()


def servers() -> list[Server]:
    """Servers with a living process, sorted by name; state files of others are removed."""
    found: list[Server] = []
    for path in sorted(folder().glob("*.json")):
        try:
            text = path.read_text()
        except FileNotFoundError:
            continue  # another process removed it between the listing and the reading
        try:
            server = Server.model_validate_json(text)
        except ValidationError:
            _remove(path, text)  # written by another version of nlsom
            continue
        if server.alive:
            found.append(server)
        else:
            _remove(path, text)
    return found
