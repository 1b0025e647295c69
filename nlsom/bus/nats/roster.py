"""The workers that a caller knows: which members they host, and which worker gets a turn."""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nlsom.bus.nats.link import Link
from nlsom.bus.nats.packer import Packer
from nlsom.bus.nats.wire import WIRE, mismatch
from nlsom.errors import NlsomError, UnknownAddress, WorkerRefused
from nlsom.message import Said
from nlsom.trace.contract import SCHEMA
from nlsom.turn import Turn

_QUIET = 0.5
"""Seconds without an answer after which no further worker is expected to announce itself."""


@dataclass(slots=True, eq=False)
class Asked:
    """A turn that was asked.

    Attributes:
        number: The caller's number for it.
        turn: The turn.
        to: The address.
        deadline: On the event loop's clock; None without one.
        answer: What the caller waits for.
        worker: The worker that has it; None while one is looked for.
        sent: When it was sent, on the event loop's clock.
        needs: How often a worker asked for blobs that it lacked.
        refusals: Why workers refused it, by worker.
    """

    number: int
    turn: Turn
    to: str
    deadline: float | None
    answer: asyncio.Future[Said | None]
    worker: Worker | None = None
    sent: float = 0.0
    needs: int = 0
    refusals: dict[str, str] = field(default_factory=dict[str, str])


@dataclass(slots=True, eq=False)
class Worker:
    """A worker, as this caller knows it.

    Attributes:
        id: Its id.
        packer: Packs turns for it.
        heard: When it was last heard, on the event loop's clock.
        hosts: Identities of the agents that it hosts, by address.
        flying: Turns in flight there, by number.
        out: Turns to be sent.
        cancels: Numbers of turns to be cancelled there.
    """

    id: str
    packer: Packer
    heard: float
    hosts: dict[str, str] = field(default_factory=dict[str, str])
    flying: dict[int, Asked] = field(default_factory=dict[int, Asked])
    out: list[Asked] = field(default_factory=list[Asked])
    cancels: list[int] = field(default_factory=list[int])


class Roster:
    """The workers of a society, as one caller sees them.

    Attributes:
        workers: By their id.
        identities: Identities of agents that have been looked up, by address.
    """

    def __init__(self, link: Link, *, id: str, space: str, society: str) -> None:
        self.workers: dict[str, Worker] = {}
        self.identities: dict[str, str] = {}
        self._link, self._space, self._society, self._caller = link, space, society, id
        self._hosts: dict[str, list[Worker]] = defaultdict(list)
        self._complaints: dict[str, str] = {}
        self._looking: asyncio.Task[None] | None = None
        self._news = asyncio.Event()
        self._nobody = False

    def hosting(self, address: str) -> Sequence[Worker]:
        """The workers that host an address."""
        return self._hosts.get(address, ())

    def choose(self, asked: Asked) -> Worker | None:
        """The worker for a turn: one with the fewest of this caller's turns in flight, chosen at random.

        None if no worker hosts the address, or all that do have refused the turn.
        """
        workers = self._hosts.get(asked.to)
        if not workers:
            return None
        if len(workers) == 1 and not asked.refusals:
            return workers[0]
        willing = [worker for worker in workers if worker.id not in asked.refusals]
        least = min((len(worker.flying) for worker in willing), default=0)
        return random.choice([one for one in willing if len(one.flying) == least]) if willing else None  # noqa: S311

    async def describe(self, addresses: Sequence[str]) -> list[str]:
        """The identities of the agents at addresses; see `Bus.describe`."""
        if any(not self._hosts.get(address) for address in addresses):
            await self.look(set(addresses))
        for address in addresses:
            workers = self._hosts.get(address)
            if not workers:
                raise self.unknown(address)
            named = {worker.hosts[address]: worker.id for worker in workers}
            if len(named) > 1:
                told = ", ".join(f"{worker!r} by {identity!r}" for identity, worker in named.items())
                raise WorkerRefused(f"workers speak for {address!r} differently ({told}); stop one of them")
            self.identities[address] = next(iter(named))
        return [self.identities[address] for address in addresses]

    async def look(self, wanted: Collection[str]) -> None:
        """Asks workers to announce themselves, until all wanted addresses are found or no more answer."""
        while self._looking is not None:
            await asyncio.shield(self._looking)
            if all(self._hosts.get(address) for address in wanted):
                return
        self._looking = asyncio.create_task(self._look_once(wanted))
        await asyncio.shield(self._looking)

    async def close(self) -> None:
        """Cancels what is under way."""
        if (looking := self._looking) is not None:
            looking.cancel()
            await asyncio.gather(looking, return_exceptions=True)

    async def _look_once(self, wanted: Collection[str]) -> None:
        try:
            await self._ask_who(wanted)
        finally:
            self._looking = None  # Here, not in whoever asked first, which may have been cancelled.

    async def _ask_who(self, wanted: Collection[str]) -> None:
        self._nobody = False
        self._complaints.clear()
        inbox = f"{self._space}.c.{self._caller}.who"
        await self._link.send(f"{self._space}.who", b"{}", inbox)
        while not self._nobody and not all(self._hosts.get(address) for address in wanted):
            self._news.clear()
            try:
                async with asyncio.timeout(_QUIET):
                    await self._news.wait()
            except TimeoutError:
                return

    def nobody(self) -> None:
        """Notes that there is no worker at all, as NATS says."""
        self._nobody = True
        self._news.set()

    def meet(self, told: Mapping[str, Any]) -> None:
        """Takes in a worker's announcement of what it hosts."""
        id = str(told["worker"])
        if (complaint := mismatch(id, told, self._society)) is not None:
            self._complaints[id] = complaint
            self._news.set()
            return
        worker = self.workers.get(id)
        if worker is None:
            head = {"t": "turns", "wire": WIRE, "schema": SCHEMA}
            head |= {"society": self._society, "from": self._caller}
            now = asyncio.get_running_loop().time()
            worker = self.workers[id] = Worker(id, Packer(head, self._link.most - 1024), now)
        for address, at in told["hosts"]:
            if address not in worker.hosts:
                self._hosts[address].append(worker)
            worker.hosts[address] = told["identities"][at]
        self._news.set()

    def retire(self, worker: Worker) -> None:
        """Gives a worker no more turns; it still answers those that it has."""
        for address in worker.hosts:
            self._hosts[address] = [other for other in self._hosts[address] if other is not worker]
        worker.hosts.clear()

    def forget(self, worker: Worker) -> None:
        """Forgets a worker that is gone."""
        self.retire(worker)
        self.workers.pop(worker.id, None)

    def unknown(self, address: str) -> NlsomError:
        """The error for an address that no worker hosts."""
        if self._complaints:
            return WorkerRefused(f"nobody answers for {address!r}: " + "; ".join(self._complaints.values()))
        return UnknownAddress(address, sorted(name for name, workers in self._hosts.items() if workers))
