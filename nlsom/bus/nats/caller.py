"""The caller's side of the bus: finds workers, sends turns, and makes sure that each gets an outcome.

A turn goes to the worker with the fewest of this caller's turns in flight. Turns in flight are checked every
second. A worker that does not know a turn gets it again; the turns of a worker that is gone, or silent for
too long, go to another. The first outcome of a turn counts.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
from collections.abc import Iterable, Sequence
from typing import Any

from pydantic_core import to_json

from nlsom.bus.nats.link import Chores, Link, Sender
from nlsom.bus.nats.objects import Objects
from nlsom.bus.nats.packer import Row
from nlsom.bus.nats.roster import Asked, Roster, Worker
from nlsom.bus.nats.wire import files_of, raised, read
from nlsom.errors import BusClosed, DeadlineExceeded, NlsomError, WorkerLost, WorkerRefused
from nlsom.message import Said
from nlsom.turn import Turn

_INLINE = 128 * 1024
"""Bytes of blobs up to which they travel within a message; more become an object."""
_NEEDS = 5
"""How often a worker may ask again for blobs of one turn."""


class Caller:
    """The turns that this process has sent to workers."""

    def __init__(
        self, link: Link, objects: Objects, *, id: str, space: str, society: str, patience: float
    ) -> None:
        self.id, self._inbox = id, f"{space}.c.{id}"
        self._link, self._objects = link, objects
        self._space, self._patience = space, patience
        self._numbers = itertools.count(1)
        self._asked: dict[int, Asked] = {}
        self.roster = Roster(link, id=id, space=space, society=society)
        self._chores = Chores(link)
        self._sender: Sender | None = None

    async def open(self) -> None:
        """Subscribes to outcomes, and to workers that come and go."""
        self._sender = Sender(self._link, self._flush)
        await self._link.subscribe(f"{self._inbox}.*", self._take)
        await self._link.subscribe(f"{self._space}.here", self._take)

    async def request(self, turn: Turn, to: str, deadline: float | None) -> Said | None:
        """Asks the agent at an address; see `Bus.request`."""
        loop = asyncio.get_running_loop()
        asked = Asked(next(self._numbers), turn, to, deadline, loop.create_future())
        self._asked[asked.number] = asked
        try:
            for ref in files_of(turn):
                if not self._objects.has(ref):
                    await self._objects.put(ref.sha256, await turn.media.read(ref))
            self._give(asked, self.roster.choose(asked) or await self._find(asked))
            if deadline is None:
                return await asked.answer
            try:
                async with asyncio.timeout_at(deadline):
                    return await asked.answer
            except TimeoutError:
                raise DeadlineExceeded(f"{to!r} did not answer in time") from None
        finally:
            self._asked.pop(asked.number, None)
            worker = asked.worker
            if worker is not None and worker.flying.pop(asked.number, None) is not None:
                worker.cancels.append(asked.number)
                self._ring()
            asked.answer.cancel()

    async def beat(self, now: float, silence: float, beat: float) -> None:
        """Asks about turns sent over `beat` seconds ago; gives up workers silent for `silence` seconds."""
        for worker in list(self.roster.workers.values()):
            if not worker.flying:
                worker.heard = now
            elif now - worker.heard > silence:
                self._lost(worker)
            else:
                old = [number for number, asked in worker.flying.items() if now - asked.sent > beat]
                told = to_json({"t": "check", "from": self.id, "turns": old})
                await self._link.send(self._to(worker), told, f"{self._inbox}.{worker.id}")

    def back(self) -> None:
        """NATS is back: no worker could be heard in the meantime."""
        now = asyncio.get_running_loop().time()
        for worker in self.roster.workers.values():
            worker.heard = now

    async def close(self, reason: str) -> None:
        """Fails all waiting requests with `BusClosed`, and tells workers to cancel their turns."""
        self.fail(reason)
        await self._chores.close()
        await self.roster.close()
        for worker in self.roster.workers.values():
            worker.out.clear()
            worker.cancels += worker.flying
            worker.flying.clear()
        if self._sender is not None:
            if not self._link.up:
                self.roster.workers.clear()
            await self._sender.close()

    def fail(self, reason: str) -> None:
        """Fails all waiting requests with `BusClosed`."""
        for asked in list(self._asked.values()):
            if not asked.answer.done():
                asked.answer.set_exception(BusClosed(f"{reason} while {asked.to!r} was asked"))
                asked.answer.exception()  # Marks it as seen: there may be nobody who waits.

    def _to(self, worker: Worker) -> str:
        return f"{self._space}.w.{worker.id}"

    def _ring(self) -> None:
        assert self._sender is not None
        self._sender.ring()

    # Where turns go

    async def _find(self, asked: Asked) -> Worker:
        await self.roster.look({asked.to})
        worker = self.roster.choose(asked)
        if worker is None:
            raise self.roster.unknown(asked.to)
        return worker

    def _give(self, asked: Asked, worker: Worker) -> None:
        if not worker.flying:
            worker.heard = asyncio.get_running_loop().time()
        asked.worker = worker
        asked.sent = asyncio.get_running_loop().time()
        worker.flying[asked.number] = asked
        worker.out.append(asked)
        self._ring()

    async def _again(self, asked: Asked) -> None:
        """Finds another worker for a turn; waits a while, since one may come back or replace a lost one."""
        until = asyncio.get_running_loop().time() + self._patience
        while asked.number in self._asked and not asked.answer.done():
            worker = self.roster.choose(asked)
            if worker is not None:
                self._give(asked, worker)
                return
            if asked.refusals and self.roster.hosting(asked.to):
                self._settle(asked, error=WorkerRefused("; ".join(asked.refusals.values())))
                return
            if self._link.up and asyncio.get_running_loop().time() > until:
                what = f"the worker that answered for {asked.to!r} is gone, and no other hosts it"
                self._settle(asked, error=WorkerLost(what))
                return
            if self._link.up:
                try:
                    await self.roster.look({asked.to})
                except NlsomError as error:
                    self._settle(asked, error=error)
                    return
            await asyncio.sleep(0.05)

    def _lost(self, worker: Worker) -> None:
        """Gives a worker up: its turns go elsewhere."""
        self.roster.forget(worker)
        flying, worker.flying = worker.flying, {}
        worker.out.clear()
        if flying:
            # In case it is only cut off: it should not go on with turns that nobody waits for.
            told = to_json({"t": "cancel", "from": self.id, "turns": list(flying)})
            self._chores.do(self._try_send(worker, told, ()))
        for asked in flying.values():
            asked.worker = None
            self._chores.do(self._again(asked))

    # What comes back

    async def _take(self, message: Any) -> None:
        where = message.subject.rpartition(".")[2]
        if message.headers and message.headers.get("Status") == "503":  # NATS: no subscriber there.
            if where == "who":
                self.roster.nobody()
            elif (worker := self.roster.workers.get(where)) is not None:
                self._lost(worker)
            return
        try:
            told = read(message.data)
        except ValueError:
            return  # Not a message of nlsom. If it was meant to be an outcome, the next check finds out.
        if told["t"] == "here":
            self.roster.meet(told)
            return
        worker = self.roster.workers.get(told["worker"])
        if worker is not None:
            worker.heard = asyncio.get_running_loop().time()
        if told["t"] == "done":
            for number, kind, body in told["turns"]:
                self._outcome(worker, number, kind, body)
        elif told["t"] == "gone" and worker is not None:
            if told.get("closed"):
                self._lost(worker)
            else:
                self.roster.retire(worker)
        elif told["t"] == "state" and worker is not None:
            for number in told["unknown"]:
                if (asked := worker.flying.pop(number, None)) is not None:
                    self._chores.do(self._again(asked))

    def _outcome(self, worker: Worker | None, number: int, kind: str, body: Any) -> None:
        asked = self._asked.get(number)
        if asked is None or asked.answer.done():
            return  # Another worker answered first, or nobody waits any more.
        if kind == "said":
            try:
                self._settle(asked, said=None if body is None else Said.model_validate(body))
            except ValueError as error:
                self._settle(asked, error=raised("ValueError", f"what was said is no answer: {error}"))
        elif kind == "failed":
            self._settle(asked, error=raised(*body))
        elif worker is None or worker.flying.pop(number, None) is None:
            return
        elif kind == "object":  # No longer in flight, so it is not checked on while it is fetched.
            self._chores.do(self._fetch(asked, body))
        elif kind == "need":
            asked.needs += 1
            if asked.needs > _NEEDS:
                what = f"worker {worker.id!r} cannot hold all that {asked.to!r} hears at once"
                self._settle(asked, error=raised("ValueError", what))
                return
            worker.packer.forget(body)
            self._give(asked, worker)
        else:  # refused, absent
            asked.refusals[worker.id] = body or f"worker {worker.id!r} does not host {asked.to!r} any more"
            self._chores.do(self._again(asked))

    async def _fetch(self, asked: Asked, digest: str) -> None:
        try:
            self._settle(asked, said=Said.model_validate_json(await self._objects.get(digest)))
        except NlsomError as error:
            self._settle(asked, error=error)

    def _settle(self, asked: Asked, said: Said | None = None, error: Exception | None = None) -> None:
        if asked.worker is not None:
            asked.worker.flying.pop(asked.number, None)
        if asked.answer.done():
            return
        if error is None:
            asked.answer.set_result(said)
        else:
            asked.answer.set_exception(error)

    # Sending

    async def _flush(self) -> None:
        for worker in list(self.roster.workers.values()):
            if worker.cancels:
                numbers, worker.cancels = worker.cancels, []
                told = to_json({"t": "cancel", "from": self.id, "turns": numbers})
                await self._try_send(worker, told, ())
            if worker.out:
                out, worker.out = worker.out, []
                await self._send(worker, [asked for asked in out if asked.number in worker.flying])

    async def _send(self, worker: Worker, out: Sequence[Asked]) -> None:
        now = asyncio.get_running_loop().time()
        packed, refused = worker.packer.pack([self._row(asked, now) for asked in out])
        for row, why in refused:
            self._settle(self._asked[row.number], error=raised("UsageError", why))
        for one in packed:
            pack = None
            if sum(map(len, one.blobs.values())) > _INLINE:
                blobs = one.blobs_json()
                pack = hashlib.sha256(blobs).hexdigest()
                try:
                    await self._objects.put(pack, blobs)
                except NlsomError as error:
                    worker.packer.forget(list(one.blobs))
                    self._fail(one.numbers, error)
                    continue
            await self._try_send(worker, worker.packer.encode(one, pack), one.numbers)

    async def _try_send(self, worker: Worker, data: bytes, numbers: Iterable[int]) -> None:
        try:
            await self._link.send(self._to(worker), data, f"{self._inbox}.{worker.id}")
        except NlsomError as error:
            self._fail(numbers, error)

    def _fail(self, numbers: Iterable[int], error: NlsomError) -> None:
        for number in numbers:
            if (asked := self._asked.get(number)) is not None:
                self._settle(asked, error=error)

    def _row(self, asked: Asked, now: float) -> Row:
        left = None if asked.deadline is None else max(0.0, asked.deadline - now)
        return Row(asked.number, asked.turn, asked.to, self.roster.identities.get(asked.to), left)
