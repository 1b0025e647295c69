"""The trace in SQLite: the store of record.

One thread owns the connection. It takes whatever has piled up while it was busy into one transaction, so
many outcomes share one commit; `durable` waits for the commit that holds all that was appended before. That
wait is also the back-pressure: without it, a busy event loop starves the writing thread completely.

`synchronous="NORMAL"` survives the end of the process by whatever means; `"FULL"` also a loss of power.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

from nlsom.errors import TraceError
from nlsom.trace import upkeep
from nlsom.trace.chain import first_link, link
from nlsom.trace.contract import Header, History, Record
from nlsom.trace.inbox import Inbox
from nlsom.trace.schema import COLUMNS, connect, explain, to_record, to_row
from nlsom.trace.stored import read_stored
from nlsom.trace.upkeep import Pruned, Summary

T = TypeVar("T")

_BATCH = 4096


class _Call:
    """Something for the owning thread to do, and the future that waits for it."""

    __slots__ = ("_do", "answer", "loop")

    def __init__(self, do: Callable[[sqlite3.Connection], Any]) -> None:
        self._do = do
        self.loop = asyncio.get_running_loop()
        self.answer: asyncio.Future[Any] = self.loop.create_future()

    def run(self, connection: sqlite3.Connection) -> Any:
        return self._do(connection)


def _settle(calls: Sequence[_Call], values: Sequence[Any]) -> None:
    """Answers calls, with an error where the value is one; wakes each event loop once for all of them."""

    def deliver(some: Sequence[tuple[_Call, Any]]) -> None:
        for call, value in some:
            if call.answer.done():
                continue
            if isinstance(value, TraceError):
                call.answer.set_exception(value)
            else:
                call.answer.set_result(value)

    for loop in {call.loop for call in calls}:
        some = [pair for pair in zip(calls, values, strict=True) if pair[0].loop is loop]
        with suppress(RuntimeError):  # The loop is closed: nobody waits any more.
            loop.call_soon_threadsafe(deliver, some)


@dataclass(frozen=True, slots=True)
class _Left:
    """A mindstorm is over; queued, so that it comes after the mindstorm's records."""

    mindstorm: str


_Item = Record | _Call | _Left | None


class SqliteTrace:
    """An append-only log in an SQLite file, readable by others while it is written."""

    def __init__(
        self,
        path: str | Path,
        *,
        synchronous: Literal["NORMAL", "FULL"] = "NORMAL",
        read_only: bool = False,
        patience: float = 10.0,
    ) -> None:
        """A trace in a file, which is made when the trace is first used.

        Args:
            path: The file.
            synchronous: `NORMAL` survives the end of the process, `FULL` also a loss of power.
            read_only: Whether it is only read.
            patience: Seconds to wait for another process that holds the file locked.
        """
        self.path = Path(path)
        self._patience = patience
        self._synchronous = synchronous
        self._read_only = read_only
        self._queue = Inbox[_Item]()
        self._thread: threading.Thread | None = None
        self._failed: TraceError | None = None
        self._ends: dict[str, tuple[int, bytes]] = {}
        self._open: Counter[str] = Counter()
        self._version = 0

    @property
    def media(self) -> Path:
        """The folder beside the file where the pictures of its mindstorms are kept."""
        return self.path.with_name(self.path.name + ".media")

    async def __aenter__(self) -> Self:
        try:
            await self._call(lambda _: None)
        except BaseException:
            await self._end()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def open(self, header: Header) -> History:
        """Begins or takes up a mindstorm; see `Trace.open`."""

        def do(connection: sqlite3.Connection) -> History:
            connection.execute(
                "INSERT OR IGNORE INTO mindstorms (id, header) VALUES (?, ?)",
                (header.mindstorm, header.model_dump_json(exclude={"built"})),
            )
            if header.built:
                connection.execute(
                    "INSERT OR IGNORE INTO societies VALUES (?, ?)", (header.digest, header.built)
                )
            (number,) = connection.execute(
                "SELECT number FROM mindstorms WHERE id = ?", (header.mindstorm,)
            ).fetchone()
            history = History()
            for record in self._read(connection, header.mindstorm, number):
                history.add(record)
            return history

        history = await self._call(do)
        self._open[header.mindstorm] += 1
        return history

    async def find(self, keys: Sequence[str]) -> dict[str, Record]:
        """Replies stored under these keys; see `Trace.find`."""

        def do(connection: sqlite3.Connection) -> dict[str, Record]:
            found: dict[str, Record] = {}
            for at in range(0, len(keys), 500):
                some = [bytes.fromhex(key) for key in keys[at : at + 500]]
                rows = connection.execute(
                    f"SELECT {COLUMNS} FROM records WHERE kind = 'replied' AND key IN"  # noqa: S608
                    f" ({','.join('?' * len(some))}) ORDER BY seq",
                    some,
                )
                for row in rows:
                    record = to_record("", row)
                    found.setdefault(record.key, record)
            return found

        return await self._call(do)

    def append(self, record: Record) -> None:
        """Appends a record; see `Trace.append`."""
        if not self._open[record.mindstorm]:
            raise TraceError(f"{self.path}: mindstorm {record.mindstorm!r} was not opened")
        self._queue.put(record)

    async def durable(self) -> None:
        """Waits until what was appended is committed; see `Trace.durable`."""
        await self._call(lambda _: None)

    def leave(self, mindstorm: str) -> None:
        """Forgets what is held in memory for a mindstorm; see `Trace.leave`."""
        if self._open[mindstorm] > 1:
            self._open[mindstorm] -= 1
        elif self._open.pop(mindstorm, 0):
            self._queue.put(_Left(mindstorm))

    async def mindstorms(self) -> AsyncIterator[Header]:
        """The mindstorms; see `Trace.mindstorms`."""
        after = 0
        while True:
            rows = await self._rows(
                "SELECT number, header, built FROM mindstorms LEFT JOIN societies"
                " ON digest = header ->> 'digest' WHERE number > ? ORDER BY number LIMIT 500",
                (after,),
            )
            for number, header, built in rows:
                after = number
                found = read_stored(Header, header)
                yield found.model_copy(update={"built": built}) if built else found
            if len(rows) < 500:
                return

    async def header(self, mindstorm: str) -> Header | None:
        """The header of a mindstorm, without what it is `built` of; None if there is none of that id."""
        rows = await self._rows("SELECT header FROM mindstorms WHERE id = ?", (mindstorm,))
        return read_stored(Header, rows[0][0]) if rows else None

    async def latest(self, count: int, *, before: str | None = None) -> list[Header]:
        """The mindstorms begun last, the last first; only those begun before `before`, if it is given."""
        where, given = "", ()
        if before is not None:
            where, given = "WHERE number < (SELECT number FROM mindstorms WHERE id = ?)", (before,)
        rows = await self._rows(
            f"SELECT header FROM mindstorms {where} ORDER BY number DESC LIMIT ?",  # noqa: S608
            (*given, count),
        )
        return [read_stored(Header, row[0]) for row in rows]

    async def verdict(self, mindstorm: str) -> Record | None:
        """The verdict of a mindstorm, the last if it was taken up again; None if it came to none."""
        rows = await self._rows(
            f"SELECT {COLUMNS} FROM records"  # noqa: S608
            " WHERE mindstorm = (SELECT number FROM mindstorms WHERE id = ?)"
            " AND kind = 'verdict' ORDER BY seq DESC LIMIT 1",
            (mindstorm,),
        )
        return to_record(mindstorm, rows[0]) if rows else None

    async def records(self, mindstorm: str) -> AsyncIterator[Record]:
        """The records of a mindstorm; see `Trace.records`."""

        def do(connection: sqlite3.Connection) -> list[Record]:
            row = connection.execute("SELECT number FROM mindstorms WHERE id = ?", (mindstorm,)).fetchone()
            return list(self._read(connection, mindstorm, row[0])) if row else []

        for record in await self._call(do):
            yield record

    async def summaries(self) -> AsyncIterator[Summary]:
        """The mindstorms at a glance, in the order they were begun."""
        after = 0
        while True:
            some = await self._call(partial(upkeep.summaries, after=after, limit=500))
            for number, summary in some:
                after = number
                yield summary
            if len(some) < 500:
                return

    async def verify(self) -> list[str]:
        """Follows the hash chain of every mindstorm; returns the ids of those that are damaged."""
        return await self._call(upkeep.verify)

    async def prune(self, mindstorms: Collection[str]) -> Pruned:
        """Drops whole mindstorms; replies of theirs that others reuse stay.

        Raises:
            TraceError: The trace does not hold one of them, or cannot be written; nothing is dropped then.
        """

        def do(connection: sqlite3.Connection) -> Pruned:
            self._ends.clear()
            return upkeep.prune(connection, mindstorms)

        return await self._call(do)

    async def close(self) -> None:
        """Commits what is left, ends the thread and closes the file.

        Raises:
            TraceError: Something that was appended could not be written.
        """
        await self._end()
        if self._failed is not None:
            raise self._failed

    async def _end(self) -> None:
        thread, self._thread = self._thread, None
        if thread is not None:
            self._queue.put(None, urgent=True)
            await asyncio.to_thread(thread.join)

    def _read(self, connection: sqlite3.Connection, mindstorm: str, number: int) -> Iterator[Record]:
        rows = connection.execute(
            f"SELECT {COLUMNS} FROM records WHERE mindstorm = ? ORDER BY seq",  # noqa: S608
            (number,),
        )
        for row in rows:
            record = to_record(mindstorm, row)
            if record.kind == "reused":
                (body,) = connection.execute(
                    "SELECT body FROM records WHERE kind = 'replied' AND key = ? ORDER BY seq LIMIT 1",
                    (bytes.fromhex(record.key),),
                ).fetchone()
                record = replace(record, kind="replied", body=body)
            yield record

    async def _rows(self, sql: str, parameters: Sequence[Any]) -> list[Any]:
        return await self._call(lambda connection: connection.execute(sql, parameters).fetchall())

    async def _call(self, do: Callable[[sqlite3.Connection], T]) -> T:
        if self._failed is not None:
            raise self._failed
        if self._thread is None:
            self._thread = threading.Thread(target=self._own, name="nlsom-trace", daemon=True)
            self._thread.start()
        call = _Call(do)
        self._queue.put(call, urgent=True)
        return await call.answer

    def _own(self) -> None:
        """The owning thread: one transaction for all that has piled up."""
        try:
            connection = self._connect()
        except (sqlite3.Error, OSError, TraceError) as error:
            self._refuse(error if isinstance(error, TraceError) else explain(self.path, error))
            return
        with closing(connection):
            while True:
                batch = self._queue.take(_BATCH)
                ended = None in batch
                calls = [item for item in batch if isinstance(item, _Call)]
                try:
                    values = self._commit(connection, batch)
                except Exception as error:  # noqa: BLE001
                    # Whatever it is: if this thread ended without a word, they would wait for ever.
                    self._failed = error if isinstance(error, TraceError) else explain(self.path, error)
                    _settle(calls, [self._failed] * len(calls))
                    if not ended:
                        self._refuse(self._failed)
                    return
                _settle(calls, values)
                if ended:
                    return

    def _commit(self, connection: sqlite3.Connection, batch: Iterable[_Item]) -> list[Any]:
        values: list[Any] = []
        rows: list[tuple[Any, ...]] = []

        def flush() -> None:
            if rows:
                connection.executemany(
                    f"INSERT INTO records (mindstorm, {COLUMNS}, chain) VALUES (?,?,?,?,?,?,?,?,?)",  # noqa: S608
                    rows,
                )
                rows.clear()

        if not self._read_only:
            connection.execute("BEGIN IMMEDIATE")
            (version,) = connection.execute("PRAGMA data_version").fetchone()
            if version != self._version:  # Another process wrote: what ends where is to be looked up again.
                self._version = version
                self._ends.clear()
        try:
            for item in batch:
                if isinstance(item, Record):
                    number, chain = self._ends.get(item.mindstorm) or _end(connection, item.mindstorm)
                    chain = link(chain, item)
                    self._ends[item.mindstorm] = number, chain
                    rows.append((number, *to_row(item), chain))
                elif isinstance(item, _Call):
                    flush()
                    try:
                        values.append(item.run(connection))
                    except TraceError as error:  # Raised before anything was written: hurts nobody else.
                        values.append(error)
                elif isinstance(item, _Left):
                    self._ends.pop(item.mindstorm, None)
            flush()
        except BaseException:
            if connection.in_transaction:
                connection.rollback()
            raise
        if connection.in_transaction:
            connection.execute("COMMIT")
        return values

    def _refuse(self, error: TraceError) -> None:
        """Answers everybody with the error until the trace is closed."""
        self._failed = error
        ended = False
        while not ended:
            batch = self._queue.take(_BATCH)
            ended = None in batch
            calls = [item for item in batch if isinstance(item, _Call)]
            _settle(calls, [error] * len(calls))

    def _connect(self) -> sqlite3.Connection:
        return connect(
            self.path, read_only=self._read_only, synchronous=self._synchronous, patience=self._patience
        )


def _end(connection: sqlite3.Connection, mindstorm: str) -> tuple[int, bytes]:
    """The number of a mindstorm, and the last link of its chain."""
    row = connection.execute("SELECT number FROM mindstorms WHERE id = ?", (mindstorm,)).fetchone()
    if row is None:
        raise TraceError(
            f"mindstorm {mindstorm!r} is not in the trace: it was not opened, or pruned meanwhile"
        )
    last = connection.execute(
        "SELECT chain FROM records WHERE mindstorm = ? ORDER BY seq DESC LIMIT 1", row
    ).fetchone()
    return row[0], last[0] if last else first_link(mindstorm)
