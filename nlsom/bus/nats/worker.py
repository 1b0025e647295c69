"""The worker's side of the bus: hosts agents, takes turns, runs them, and answers.

It remembers its answers for a while. A caller that got none, because NATS was away or slow, asks what became
of its turns: it gets the answer again, or hears that the turn is unknown here and has to be sent again.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from pydantic_core import from_json, to_json

from nlsom.agent import Agent, identity, serialised, valid
from nlsom.bus.nats.link import Chores, Link, Sender
from nlsom.bus.nats.objects import Objects
from nlsom.bus.nats.unpacker import Needed, Unpacker
from nlsom.bus.nats.wire import WIRE, failure, files_of, mismatch, read
from nlsom.errors import NlsomError, UsageError
from nlsom.media import MediaStore
from nlsom.message import Said
from nlsom.recent import Recent
from nlsom.trace.contract import SCHEMA
from nlsom.turn import Turn

_LOG = logging.getLogger("nlsom.bus.nats")
_REMEMBERED = 64 * 2**20
"""Bytes of answers that are remembered."""
_INBOX = 900_000
"""Most bytes of an announcement."""


class Host:
    """The agents that this process hosts, and the turns that they are answering."""

    def __init__(
        self, link: Link, objects: Objects, media: MediaStore, *, id: str, space: str, society: str
    ) -> None:
        self.id, self.subject = id, f"{space}.w.{id}"
        self._link, self._objects, self._media = link, objects, media
        self._space, self._society = space, society
        self._here = f"{space}.here"
        self._agents: dict[str, Agent] = {}
        self._slots: dict[str, asyncio.Semaphore] = {}
        self._running: dict[tuple[str, int], asyncio.Task[None]] = {}
        self._expected: set[tuple[str, int]] = set()
        self._heard: dict[str, float] = {}
        self._done = Recent[tuple[str, int], bytes](_REMEMBERED, lambda row: len(row) + 200)
        self._out: dict[str, list[bytes]] = {}
        self._unpackers: dict[str, Unpacker] = {}
        self._taking: dict[str, asyncio.Lock] = {}
        self._chores = Chores(link)
        self._sender: Sender | None = None
        self._leaving = False

    async def host(self, address: str, agent: Agent, limit: int | None) -> None:
        """Hosts an agent at an address; see `Bus.host`."""
        if address in self._agents:
            raise UsageError(f"an agent is already hosted at {address!r}")
        self._agents[address] = agent
        if limit is not None:
            self._slots[address] = asyncio.Semaphore(limit)
        if self._sender is None:
            self._sender = Sender(self._link, self._flush)
            await self._link.subscribe(self.subject, self._take)
            await self._link.subscribe(f"{self._space}.who", self._who)
        await self._tell(self._here, [address])

    async def leave(self, seconds: float) -> None:
        """Takes no more turns, and waits up to `seconds` for those under way."""
        self._leaving = True
        if self._sender is not None:
            await self._link.send(self._here, to_json({"t": "gone", "worker": self.id}))
        running = [*self._running.values()]
        if running and seconds:
            await asyncio.wait(running, timeout=seconds)

    async def close(self) -> None:
        """Cancels what is under way, and tells callers that this worker is gone."""
        await self._chores.close()  # First, as it may begin turns.
        running = [*self._running.values()]
        self._running.clear()
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        if self._sender is None:
            return
        if not self._link.up:
            self._out.clear()
        await self._sender.close()
        if self._link.up:
            await self._link.send(self._here, to_json({"t": "gone", "worker": self.id, "closed": True}))

    def beat(self, now: float, silence: float) -> None:
        """Cancels the turns of callers that have been silent for `silence` seconds."""
        for caller in {caller for caller, _ in self._running}:
            if now - self._heard.get(caller, now) > silence:
                self._cancel(caller, [number for of, number in self._running if of == caller])
        for caller in [caller for caller, heard in self._heard.items() if now - heard > 60 + 10 * silence]:
            for held in (self._heard, self._unpackers, self._taking):
                held.pop(caller, None)

    def back(self) -> None:
        """NATS is back: no caller could be heard in the meantime."""
        now = asyncio.get_running_loop().time()
        self._heard = dict.fromkeys(self._heard, now)
        self._chores.do(self._say_again())

    async def _tell(self, to: str, addresses: Sequence[str]) -> None:
        """Announces which addresses are hosted here, in messages that are small enough."""
        head = {"t": "here", "worker": self.id, "wire": WIRE, "schema": SCHEMA, "society": self._society}
        identities: dict[str, int] = {}
        hosts: list[tuple[str, int]] = []
        size = 0
        for at, address in enumerate(addresses, 1):
            named = identity(self._agents[address])
            if named not in identities:
                size += len(named) * 2
            hosts.append((address, identities.setdefault(named, len(identities))))
            size += len(address.encode()) * 2 + 12
            if size > min(_INBOX, self._link.most) - 2048 or at == len(addresses):
                more = at < len(addresses)
                told = {**head, "hosts": hosts, "identities": list(identities), "more": more}
                await self._link.send(to, to_json(told))
                identities, hosts, size = {}, [], 0

    async def _say_again(self) -> None:
        try:
            await self._tell(self._here, list(self._agents))
        except NlsomError as error:  # NATS is away again already.
            _LOG.warning("who is hosted here is told when NATS is back: %s", error)

    async def _who(self, message: Any) -> None:
        if message.reply and not self._leaving:
            await self._tell(message.reply, list(self._agents))

    async def _take(self, message: Any) -> None:
        """Handles a message to this worker. Turns become tasks, so that the next message need not wait."""
        try:
            told = read(message.data)
        except ValueError:
            return  # Not a message of nlsom, so nobody waits for an answer.
        caller = told["from"]
        self._heard[caller] = asyncio.get_running_loop().time()
        if told["t"] == "turns":
            lock = self._taking.setdefault(caller, asyncio.Lock())
            if told["pack"] or lock.locked():
                self._expected.update((caller, row[0]) for row in told["turns"])
                self._chores.do(self._take_later(lock, caller, told))
            else:
                self._start(caller, told)
        elif told["t"] == "cancel":
            self._cancel(caller, told["turns"])
        elif told["t"] == "check":
            self._check(caller, told["turns"])

    async def _take_later(self, lock: asyncio.Lock, caller: str, told: Mapping[str, Any]) -> None:
        async with lock:
            blobs = None
            try:
                if told["pack"]:
                    blobs = from_json(await self._objects.get(told["pack"]))
            except NlsomError as error:
                for row in told["turns"]:
                    self._expected.discard((caller, row[0]))
                    self._answer(caller, row[0], "failed", failure(error))
                return
            # Turns that were cancelled in the meantime are no longer expected.
            turns = [row for row in told["turns"] if (caller, row[0]) in self._expected]
            self._expected.difference_update((caller, row[0]) for row in turns)
            self._start(caller, {**told, "turns": turns}, blobs)

    def _start(self, caller: str, told: Mapping[str, Any], blobs: Mapping[str, Any] | None = None) -> None:
        refused = mismatch(self.id, told, self._society)
        unpacker = self._unpackers.setdefault(caller, Unpacker(self._media))
        if refused is None:
            try:
                unpacker.take(told["blobs"] if blobs is None else blobs)
            except Exception as error:  # noqa: BLE001
                # Whatever it is, such as a kind of task that is not installed here: the turns have to be
                # answered, or they would be sent again and again.
                for row in told["turns"]:
                    self._answer(caller, row[0], "failed", failure(error))
                return
        loop = asyncio.get_running_loop()
        for row in told["turns"]:
            number, _, to, at, *_, named, left = row
            agent = self._agents.get(to)
            if (caller, number) in self._running:
                continue  # Sent a second time.
            if (done := self._done.get((caller, number))) is not None:
                self._push(caller, done)
            elif refused is not None:
                self._answer(caller, number, "refused", refused)
            elif agent is None or self._leaving:
                self._answer(caller, number, "absent", None)
            elif named is not None and named != identity(agent):
                what = (
                    f"worker {self.id!r} speaks for {to!r} by {identity(agent)!r}, and this run began with "
                    f"{named!r}; start it again with that one, or begin a new run"
                )
                self._answer(caller, number, "refused", what)
            else:
                try:
                    turn = unpacker.turn(row, told["shared"][at])
                except Needed as needed:
                    self._answer(caller, number, "need", needed.digests)
                    continue
                deadline = None if left is None else loop.time() + left
                task = loop.create_task(self._run(caller, number, to, turn, deadline))
                self._running[caller, number] = task

    async def _run(self, caller: str, number: int, to: str, turn: Turn, deadline: float | None) -> None:
        agent = self._agents[to]
        kind, body = "said", b"null"
        try:
            for ref in files_of(turn):
                if not self._objects.has(ref):
                    await self._objects.fetch(ref, self._media)
            slot = self._slots.get(to)
            if slot is None and deadline is None:
                said = await agent.speak(turn)
            else:
                async with asyncio.timeout_at(deadline), slot or nullcontext():
                    said = await agent.speak(turn)
            if said is not None:
                body = await self._body(said)
                kind = "said" if body[:1] == b"{" else "object"
        except asyncio.CancelledError:
            if (caller, number) not in self._running:
                raise  # `_cancel` or `close` removed it: nobody waits.
            kind, body = "failed", to_json(["CancelledError", "the agent cancelled itself"])
        except (GeneratorExit, KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # noqa: BLE001
            # Whatever an agent raises goes to the caller, where the society's file says what it means.
            kind, body = "failed", to_json(failure(error))
        if self._running.pop((caller, number), None) is not None:
            row = b'[%d,"%b",%b]' % (number, kind.encode(), body)
            self._done.put((caller, number), row)
            self._push(caller, row)

    async def _body(self, said: Said) -> bytes:
        """What was said, as JSON; or the digest of an object that holds it, if a message cannot."""
        _, body = serialised(valid(said))
        if len(body) + 200 < self._link.most:
            return body
        digest = hashlib.sha256(body).hexdigest()
        await self._objects.put(digest, body)
        return to_json(digest)

    def _answer(self, caller: str, number: int, kind: str, body: Any) -> None:
        self._push(caller, b'[%d,"%b",%b]' % (number, kind.encode(), to_json(body)))

    def _push(self, caller: str, row: bytes) -> None:
        assert self._sender is not None
        self._out.setdefault(caller, []).append(row)
        self._sender.ring()

    def _cancel(self, caller: str, numbers: Sequence[int]) -> None:
        for number in numbers:
            self._expected.discard((caller, number))
            if (task := self._running.pop((caller, number), None)) is not None:
                task.cancel()

    def _check(self, caller: str, numbers: Sequence[int]) -> None:
        """Repeats answers, and says which turns are unknown here; this is also a sign of life."""
        unknown: list[int] = []
        for number in numbers:
            if (done := self._done.get((caller, number))) is not None:
                self._push(caller, done)
            elif (caller, number) not in self._running and (caller, number) not in self._expected:
                unknown.append(number)
        told = to_json({"t": "state", "worker": self.id, "unknown": unknown})
        self._chores.do(self._try_send(f"{self._space}.c.{caller}.{self.id}", told))

    async def _flush(self) -> None:
        out, self._out = self._out, {}
        head = b'{"t":"done","worker":%b,"turns":[' % to_json(self.id)
        for caller, rows in out.items():
            subject = f"{self._space}.c.{caller}.{self.id}"
            start, size = 0, 0
            for at, row in enumerate(rows):
                if size and size + len(row) > self._link.most:
                    await self._try_send(subject, head + b",".join(rows[start:at]) + b"]}")
                    start, size = at, 0
                size += len(row) + 1
            await self._try_send(subject, head + b",".join(rows[start:]) + b"]}")

    async def _try_send(self, subject: str, data: bytes) -> None:
        try:
            await self._link.send(subject, data)
        except NlsomError as error:
            # NATS is away and the buffer full. The caller asks about its turns later, and gets them then.
            _LOG.warning("answers wait until they are asked for again: %s", error)
