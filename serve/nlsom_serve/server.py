"""Runs the application under uvicorn, and shuts it down gracefully on signals."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import signal
import socket
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from types import FrameType

import uvicorn

from nlsom.errors import UsageError
from nlsom.society import Society
from nlsom_serve.app import House, Keys, Settings, create_app, opened_house
from nlsom_serve.app.logs import configure

log = logging.getLogger("nlsom.serve")


class Server(uvicorn.Server):
    """A uvicorn server that sets `house.draining` as soon as it should stop."""

    def __init__(self, config: uvicorn.Config, house: House, *, signals: bool) -> None:
        super().__init__(config)
        self._house = house
        self._signals = (signal.SIGINT, signal.SIGTERM) if signals else ()
        self._loop = asyncio.get_running_loop()
        self.listening = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Starts listening, then sets `listening`."""
        await super().startup(sockets)
        self.listening.set()

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Handles signals while serving. Uvicorn would raise them again, before the house is closed."""
        for sig in self._signals:
            self._loop.add_signal_handler(sig, self.handle_exit, sig, None)
        try:
            yield
        finally:
            for sig in self._signals:
                self._loop.remove_signal_handler(sig)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stops accepting mindstorms and ends event streams; running requests are still answered."""
        self._house.draining.set()
        super().handle_exit(sig, frame)


def is_local(host: str) -> bool:
    """Whether a listening address can only be reached from this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def check_address(host: str, keys: Keys) -> None:
    """Refuses to serve other machines without API keys.

    Raises:
        UsageError: The address is not local, and no key is required.
    """
    if keys.open and not is_local(host):
        raise UsageError(
            f"--host {host} can be reached from other machines: give --api-key-file FILE, one key per line"
        )


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes a free one.

    Raises:
        UsageError: The address is invalid or in use.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sets TCP_NODELAY only if the socket names its protocol. Without it, head and body of a response
    # are sent 40 ms apart (Nagle's algorithm with delayed acknowledgements).
    sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((host, port))
        sock.listen(2048)
    except OSError as error:
        sock.close()
        raise UsageError(f"cannot listen on {host}:{port}: {error.strerror}; give another --port") from None
    return sock


def make_server(house: House, *, drain_seconds: int, signals: bool) -> Server:
    """Makes a server to run with `serve(sockets=[...])`; `signals`: whether SIGINT and SIGTERM stop it."""
    config = uvicorn.Config(
        create_app(house),
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=True,
        lifespan="off",
        timeout_graceful_shutdown=drain_seconds,
        timeout_keep_alive=15,
        h11_max_incomplete_event_size=64 * 1024,
    )
    return Server(config, house, signals=signals)


async def serve(
    societies: Sequence[Society],
    sock: socket.socket,
    *,
    data: Path,
    settings: Settings,
    keys: Keys,
    drain_seconds: int = 30,
) -> None:
    """Serves societies until SIGINT or SIGTERM; running requests are answered first.

    Args:
        societies: The societies, not open.
        sock: A listening socket.
        data: Folder of trace, ledger and pictures.
        settings: Limits for clients.
        keys: The API keys.
        drain_seconds: How long running requests may take after the signal.
    """
    configure()
    async with opened_house(societies, data, settings=settings, keys=keys) as house:
        host, port = sock.getsockname()[:2]
        log.info(
            "serving %s on http://%s:%s",
            ", ".join(house.societies),
            f"[{host}]" if ":" in host else host,
            port,
        )
        await make_server(house, drain_seconds=drain_seconds, signals=True).serve(sockets=[sock])
    log.info("stopped")


@asynccontextmanager
async def served(house: House) -> AsyncGenerator[str]:
    """Serves a house on a free loopback port within the block; yields its URL."""
    sock = listen("127.0.0.1", 0)
    server = make_server(house, drain_seconds=5, signals=False)
    serving = asyncio.create_task(server.serve(sockets=[sock]))
    try:
        await server.listening.wait()
        yield f"http://127.0.0.1:{sock.getsockname()[1]}"
    finally:
        house.draining.set()
        server.should_exit = True
        await serving
