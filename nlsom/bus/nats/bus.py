"""`NatsBus`: hosts and asks agents over one connection."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Self

from nlsom.agent import Agent
from nlsom.bus.memory import MemoryBus
from nlsom.bus.nats.caller import Caller
from nlsom.bus.nats.link import Link, token
from nlsom.bus.nats.objects import Objects
from nlsom.bus.nats.worker import Host
from nlsom.errors import BusClosed, Unavailable
from nlsom.event import Event
from nlsom.media import MediaStore
from nlsom.message import Said
from nlsom.turn import Turn

_LOG = logging.getLogger("nlsom.bus.nats")
_DAY = 86_400.0


class NatsBus:
    """A bus over NATS: any process on it can host members, and any other can ask them.

    Use it as an async context manager. Events stay in the process of the scheduler that publishes them.

        async with NatsBus("nats://127.0.0.1:4222", society="vqa-monarchy") as bus:
            async with nlsom.load("vqa-monarchy", bus=bus) as society:
                verdict = await society.ask("What animal is this?")
    """

    def __init__(
        self,
        url: str,
        *,
        society: str = "society",
        digest: str = "",
        media: MediaStore | None = None,
        beat: float = 1.0,
        silence: float = 10.0,
        patience: float = 5.0,
    ) -> None:
        """Makes a bus; entering it connects.

        Args:
            url: URL of a NATS server, or several separated by commas; see `nlsom.bus.nats.login.login`.
            society: Name of the society; each society has its own subjects.
            digest: Digest of the society's members (`Society.cast`), which has to be the workers' too.
            media: Where a worker keeps the pictures that turns refer to.
            beat: Seconds between checks of the turns in flight.
            silence: Seconds without a word after which a worker or a caller is given up. NATS itself tells
                at once when a process ends; this is for processes that hang or are cut off.
            patience: Seconds to wait for a connection, and for another worker to replace a lost one.
        """
        self.id = f"{token(socket.gethostname())[:20]}-{os.getpid()}-{secrets.token_hex(3)}"
        self._beat, self._silence = beat, silence
        self._link = Link(url, name=f"nlsom {self.id}", patience=patience)
        self._space = f"nlsom.{token(society)}"
        self._digest, self._patience = digest, patience
        self._media = media or MediaStore()
        self._events = MemoryBus()
        self._parts: tuple[Caller, Host, Objects] | None = None
        self._beating: asyncio.Task[None] | None = None
        self._lost = asyncio.Event()
        self._why = ""
        self._closed = False

    async def __aenter__(self) -> Self:
        await self._link.open()
        objects = Objects(self._link.client, "nlsom", 7 * _DAY)
        caller = Caller(
            self._link,
            objects,
            id=self.id,
            space=self._space,
            society=self._digest,
            patience=self._patience,
        )
        host = Host(self._link, objects, self._media, id=self.id, space=self._space, society=self._digest)
        await caller.open()
        self._parts = caller, host, objects
        self._link.back += [caller.back, host.back]
        self._link.gone += [self._give_up, caller.fail]
        self._beating = self._link.do(self._keep_beating(caller, host))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def host(self, address: str, agent: Agent, *, limit: int | None = None) -> None:
        """Hosts an agent at an address; see `Bus.host`. Other processes may host it too."""
        _, host, _ = self._open()
        await host.host(address, agent, limit)

    async def request(self, turn: Turn, *, to: str, deadline: float | None = None) -> Said | None:
        """Asks the agent at an address; see `Bus.request`.

        Raises:
            WorkerLost: The worker is gone, and no other hosts the member.
            WorkerRefused: The worker's society, agent or version is different.
            Unavailable: A picture cannot be sent there.
        """
        caller, _, _ = self._open()
        return await caller.request(turn, to, deadline)

    async def describe(self, addresses: Sequence[str]) -> list[str]:
        """The identities of the agents at these addresses; see `Bus.describe`.

        Raises:
            WorkerRefused: A worker's society or version is different, or workers host different agents.
        """
        caller, _, _ = self._open()
        return await caller.roster.describe(addresses)

    @property
    def observed(self) -> bool:
        """Whether anybody in this process listens."""
        return self._events.observed

    def publish(self, event: Event) -> None:
        """Passes an event to all listeners in this process; see `Bus.publish`."""
        self._events.publish(event)

    def listen(
        self, mindstorm: str | None = None, *, backlog: int = 4096
    ) -> AbstractAsyncContextManager[AsyncIterator[Event]]:
        """Listens to the events of a mindstorm, or of all; see `Bus.listen`."""
        return self._events.listen(mindstorm, backlog=backlog)

    async def leave(self, seconds: float) -> None:
        """Takes no more turns, and waits up to `seconds` for those under way."""
        _, host, _ = self._open()
        await host.leave(seconds)

    async def gone(self) -> None:
        """Waits until the bus fails: its server is gone, or it had an error of its own.

        Raises:
            BusClosed: Always, at that time.
        """
        await self._lost.wait()
        raise BusClosed(f"{self._why}; see to it, then start this again")

    async def close(self) -> None:
        """Closes the bus; see `Bus.close`."""
        if self._closed:
            return
        self._closed = True
        await self._events.close()
        if self._beating is not None:
            self._beating.cancel()
            await asyncio.gather(self._beating, return_exceptions=True)
        if self._parts is not None:
            caller, host, objects = self._parts
            await caller.close("the bus was closed")
            await host.close()
            await objects.close()
        await self._link.close()

    def _open(self) -> tuple[Caller, Host, Objects]:
        if self._lost.is_set() and not self._closed:
            raise BusClosed(self._why)
        if self._closed or self._parts is None or self._link.client.is_closed:
            raise BusClosed("the bus is closed" if self._parts else "open the bus first: `async with bus:`")
        return self._parts

    def _give_up(self, reason: str) -> None:
        self._why = self._why or reason
        self._lost.set()

    async def _keep_beating(self, caller: Caller, host: Host) -> None:
        loop = asyncio.get_running_loop()
        while True:
            before = loop.time()
            await asyncio.sleep(self._beat)
            now = loop.time()
            if now - before > 2 * self._beat + 0.5:
                # This process was held up itself: what others said in the meantime is still unread.
                caller.back()
                continue
            if self._link.up:
                try:
                    await caller.beat(now, self._silence, self._beat)
                except Unavailable as error:
                    _LOG.warning("turns in flight are asked after later: %s", error)
                host.beat(now, self._silence)
