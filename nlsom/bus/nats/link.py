"""The connection to NATS; background work on it; and sending what has gathered in one go."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from nlsom.bus.nats.login import login
from nlsom.errors import ExtraMissing, Unavailable, reason_of
from nlsom.member import wire_id

_LOG = logging.getLogger("nlsom.bus.nats")


class Link:
    """A connection of nats-py, configured so that it never drops messages silently.

    Attributes:
        client: The client; set by `open`.
        back: Called after each reconnection.
        gone: Called with the reason when the bus fails: the connection is lost for good, or background work
            has raised an error.
    """

    def __init__(self, url: str, *, name: str, patience: float) -> None:
        self.client: Any = None
        self.back: list[Callable[[], None]] = []
        self.gone: list[Callable[[str], None]] = []
        self._url, self._name, self._patience = url, name, patience
        self._closing = False

    async def open(self) -> None:
        """Connects.

        Raises:
            Unavailable: There is no server, or it refuses the connection.
            ExtraMissing: nats-py is not installed.
            UsageError: The URL is wrong.
        """
        try:
            import nats
            from nats.errors import Error
        except ImportError as error:
            raise ExtraMissing("the NATS bus", "nats") from error
        options = login(self._url)
        try:
            async with asyncio.timeout(self._patience):
                self.client = await nats.connect(  # pyright: ignore[reportUnknownMemberType]
                    **options,
                    name=self._name,
                    error_cb=self._error,
                    disconnected_cb=self._disconnected,
                    reconnected_cb=self._reconnected,
                    closed_cb=self._closed,
                    allow_reconnect=True,
                    connect_timeout=max(1, int(self._patience)),
                    reconnect_time_wait=0.2,  # pyright: ignore[reportArgumentType]
                    max_reconnect_attempts=max(5, int(self._patience * 10)),
                    pending_size=256 * 2**20,
                    flusher_queue_size=65_536,
                    skip_subject_validation=True,
                )
        except (Error, OSError, TimeoutError) as error:
            raise Unavailable(
                f"no NATS server at {_shown(self._url)} lets us in: {reason_of(error)}"
            ) from error

    @property
    def up(self) -> bool:
        """Whether the connection is up at the moment."""
        return bool(self.client.is_connected)

    @property
    def most(self) -> int:
        """Bytes of the largest message to send: what the server allows, less some room for the envelope."""
        return int(self.client.max_payload) - 4096

    async def subscribe(self, subject: str, take: Callable[[Any], Awaitable[None]]) -> None:
        """Subscribes to a subject. No message is dropped on this side, however many wait."""
        await self.client.subscribe(subject, cb=take, pending_msgs_limit=0, pending_bytes_limit=0)
        # Now the server knows it too; otherwise a caller that asks at once would hear that nobody listens.
        await self.client.flush()

    async def send(self, subject: str, data: bytes, reply: str = "") -> None:
        """Sends a message; while the server is away, messages wait in a buffer.

        Raises:
            Unavailable: The connection is lost for good, or the buffer is full.
        """
        from nats.errors import Error

        try:
            await self.client.publish(subject, data, reply=reply)
        except Error as error:
            raise Unavailable(f"NATS takes no message: {reason_of(error)}") from error

    def do(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Starts background work. If it raises an error, the bus fails.

        Returns:
            The task, which the caller has to keep and to cancel.
        """
        task = asyncio.create_task(work)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            _LOG.error("the bus is given up", exc_info=error)
            self._give_up(f"the bus failed ({type(error).__name__}: {error})")

    def _give_up(self, reason: str) -> None:
        for tell in self.gone:
            tell(reason)

    async def close(self) -> None:
        """Sends what waits, and disconnects."""
        self._closing = True
        if self.client is not None:
            await self.client.close()

    async def _error(self, error: Exception) -> None:
        # Even the server's "slow consumer", after which it disconnects us: lost turns are sent again.
        level = logging.WARNING if self.client is not None and self.client.is_connected else logging.DEBUG
        _LOG.log(level, "NATS: %s", reason_of(error))

    async def _disconnected(self) -> None:
        if not self._closing:
            _LOG.warning("NATS is away; turns wait until it is back")

    async def _reconnected(self) -> None:
        _LOG.warning("NATS is back")
        for tell in self.back:
            tell()

    async def _closed(self) -> None:
        self._give_up("the NATS server is gone")


class Chores:
    """Background work of one side of the bus: kept until it is done, cancelled when the bus is closed."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._tasks: set[asyncio.Task[None]] = set()

    def do(self, work: Coroutine[Any, Any, None]) -> None:
        """Starts background work; see `Link.do`."""
        task = self._link.do(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Cancels all work, and waits for it to end."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class Sender:
    """Calls `send` once for everything that was prepared during one pass of the event loop."""

    def __init__(self, link: Link, send: Callable[[], Awaitable[None]]) -> None:
        self._send = send
        self._wake = asyncio.Event()
        self._task = link.do(self._run())

    def ring(self) -> None:
        """Says that there is something to send."""
        self._wake.set()

    async def close(self) -> None:
        """Sends what is left, and ends."""
        failed = self._task.done()
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        if not failed:
            await self._send()

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            await self._send()


def token(text: str) -> str:
    """A text as one token of a subject."""
    return wire_id(text).replace(".", "_")


def _shown(url: str) -> str:
    """A URL without its secrets."""
    return ",".join(
        f"{scheme}://{rest.rpartition('@')[2]}"
        for scheme, _, rest in (one.strip().partition("://") for one in url.split(","))
    )
