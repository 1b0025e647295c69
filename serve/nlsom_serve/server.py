"""Running the application: uvicorn, signals, and the way out."""

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
    """Uvicorn, that tells the house as soon as it is asked to end."""

    def __init__(self, config: uvicorn.Config, house: House, *, signals: bool) -> None:
        super().__init__(config)
        self._house = house
        self._signals = (signal.SIGINT, signal.SIGTERM) if signals else ()
        self._loop = asyncio.get_running_loop()
        self.listening = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listens, and says so."""
        await super().startup(sockets)
        self.listening.set()

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Listens for signals while it serves; unlike uvicorn's own, they leave time to close the house."""
        for sig in self._signals:
            self._loop.add_signal_handler(sig, self.handle_exit, sig, None)
        try:
            yield
        finally:
            for sig in self._signals:
                self._loop.remove_signal_handler(sig)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Takes no new mindstorms and lets go of those who only watch; what is asked is answered."""
        self._house.draining.set()
        super().handle_exit(sig, frame)


def is_local(host: str) -> bool:
    """Whether only this machine can reach an address to listen on."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def check_address(host: str, keys: Keys) -> None:
    """Refuses to serve strangers without a key.

    Raises:
        UsageError: The address is not this machine's own, and no key is asked for.
    """
    if keys.open and not is_local(host):
        raise UsageError(
            f"--host {host} can be reached from other machines: give --api-key-file FILE, a key a line"
        )


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens; 0 takes a free port.

    Raises:
        UsageError: The address cannot be listened on.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol named, asyncio sends what it has at once; without, head and body of an answer wait
    # 40 ms for each other (Nagle's algorithm against delayed acknowledgements).
    sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((host, port))
        sock.listen(2048)
    except OSError as error:
        sock.close()
        raise UsageError(
            f"{host}:{port} cannot be listened on: {error.strerror}; give another --port"
        ) from None
    return sock


def make_server(house: House, *, drain_seconds: int, signals: bool) -> Server:
    """A server for a house; run it with `serve(sockets=[...])`. With `signals` a signal ends it."""
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
    """Serves societies until a signal ends it; requests under way are answered first.

    Args:
        societies: What is served.
        sock: Where, listening.
        data: Folder of trace, ledger and pictures.
        settings: What clients may do.
        keys: Who may come in.
        drain_seconds: How long requests under way have once it is asked to end.
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
    log.info("ended")


@asynccontextmanager
async def served(house: House) -> AsyncGenerator[str]:
    """A house served on a free port of the loopback interface while the block is open; yields its URL."""
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
