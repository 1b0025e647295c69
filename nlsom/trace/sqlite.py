"""The trace in SQLite: the store of record.

One thread owns the connection. It takes whatever has piled up while it was busy into one transaction, so
many outcomes share one commit; `durable` waits for the commit that holds all that was appended before. That
wait is also the back-pressure: without it, a busy event loop starves the writing thread completely.

`synchronous="NORMAL"` survives the end of the process by whatever means; `"FULL"` also a loss of power.
"""

from __future__ import annotations

import asyncio
import hashlib
import queue
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

from nlsom.errors import TraceError
from nlsom.trace.contract import SCHEMA, Header, History, Kind, Record

T = TypeVar("T")

_TABLES = f"""
CREATE TABLE mindstorms (
    number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, header TEXT NOT NULL
) STRICT;
CREATE TABLE records (
    seq INTEGER PRIMARY KEY, mindstorm INTEGER NOT NULL, kind TEXT NOT NULL, key BLOB NOT NULL,
    member TEXT NOT NULL, phase TEXT NOT NULL, label TEXT NOT NULL, round INTEGER NOT NULL,
    body BLOB NOT NULL, chain BLOB NOT NULL
) STRICT;
CREATE INDEX records_of_mindstorm ON records (mindstorm, seq);
CREATE INDEX replies_by_key ON records (key) WHERE kind = 'replied';
PRAGMA user_version = {SCHEMA};
"""
_COLUMNS = "kind, key, member, phase, label, round, body"
_BATCH = 4096


def link(before: bytes, record: Record) -> bytes:
    """The next link of a mindstorm's hash chain: SHA-256 over the link before and the record."""
    parts = (record.kind, record.key, record.member, record.phase, record.label, str(record.round))
    told = "\x1f".join(parts).encode()
    return hashlib.sha256(before + told + b"\x1f" + record.body).digest()


class _Call:
    """Something for the owning thread to do, and the future that waits for it."""

    __slots__ = ("_do", "_loop", "answer")

    def __init__(self, do: Callable[[sqlite3.Connection], Any]) -> None:
        self._do = do
        self._loop = asyncio.get_running_loop()
        self.answer: asyncio.Future[Any] = self._loop.create_future()

    def run(self, connection: sqlite3.Connection) -> Any:
        return self._do(connection)

    def settle(self, value: Any, error: Exception | None = None) -> None:
        def deliver() -> None:
            if not self.answer.done():
                if error is None:
                    self.answer.set_result(value)
                else:
                    self.answer.set_exception(error)

        with suppress(RuntimeError):  # The loop is closed: nobody waits any more.
            self._loop.call_soon_threadsafe(deliver)


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
    ) -> None:
        self.path = Path(path)
        self._synchronous = synchronous
        self._read_only = read_only
        self._queue: queue.SimpleQueue[_Item] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._failed: TraceError | None = None
        self._numbers: dict[str, int] = {}
        self._chains: dict[str, bytes] = {}

    async def __aenter__(self) -> Self:
        await self._call(lambda _: None)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def open(self, header: Header) -> History:
        """Begins or takes up a mindstorm; see `Trace.open`."""

        def do(connection: sqlite3.Connection) -> History:
            connection.execute(
                "INSERT OR IGNORE INTO mindstorms (id, header) VALUES (?, ?)",
                (header.mindstorm, header.model_dump_json()),
            )
            (number,) = connection.execute(
                "SELECT number FROM mindstorms WHERE id = ?", (header.mindstorm,)
            ).fetchone()
            history = History()
            for record in self._read(connection, header.mindstorm, number, reused=False):
                history.add(record)
            last = connection.execute(
                "SELECT chain FROM records WHERE mindstorm = ? ORDER BY seq DESC LIMIT 1", (number,)
            ).fetchone()
            self._chains[header.mindstorm] = last[0] if last else first_link(header.mindstorm)
            self._numbers[header.mindstorm] = number
            return history

        return await self._call(do)

    async def find(self, keys: Sequence[str]) -> dict[str, Record]:
        """Replies stored under these keys; see `Trace.find`."""

        def do(connection: sqlite3.Connection) -> dict[str, Record]:
            found: dict[str, Record] = {}
            for at in range(0, len(keys), 500):
                some = [bytes.fromhex(key) for key in keys[at : at + 500]]
                rows = connection.execute(
                    f"SELECT {_COLUMNS} FROM records WHERE kind = 'replied' AND key IN"  # noqa: S608
                    f" ({','.join('?' * len(some))}) ORDER BY seq",
                    some,
                )
                for row in rows:
                    record = _record("", row)
                    found.setdefault(record.key, record)
            return found

        return await self._call(do)

    def append(self, record: Record) -> None:
        """Appends a record; see `Trace.append`."""
        self._queue.put(record)

    async def durable(self) -> None:
        """Waits until what was appended is committed; see `Trace.durable`."""
        await self._call(lambda _: None)

    def leave(self, mindstorm: str) -> None:
        """Forgets what is held in memory for a mindstorm; see `Trace.leave`."""
        self._queue.put(_Left(mindstorm))

    async def mindstorms(self) -> AsyncIterator[Header]:
        """The mindstorms; see `Trace.mindstorms`."""
        after = 0
        while True:
            rows = await self._rows(
                "SELECT number, header FROM mindstorms WHERE number > ? ORDER BY number LIMIT 500", (after,)
            )
            for number, header in rows:
                after = number
                yield Header.model_validate_json(header)
            if len(rows) < 500:
                return

    async def header(self, mindstorm: str) -> Header | None:
        """The header of a mindstorm; see `Trace.header`."""
        rows = await self._rows("SELECT header FROM mindstorms WHERE id = ?", (mindstorm,))
        return Header.model_validate_json(rows[0][0]) if rows else None

    async def latest(self, count: int, *, before: str | None = None) -> list[Header]:
        """The mindstorms begun last; see `Trace.latest`."""
        where, given = "", ()
        if before is not None:
            where, given = "WHERE number < (SELECT number FROM mindstorms WHERE id = ?)", (before,)
        rows = await self._rows(
            f"SELECT header FROM mindstorms {where} ORDER BY number DESC LIMIT ?",  # noqa: S608
            (*given, count),
        )
        return [Header.model_validate_json(row[0]) for row in rows]

    async def verdict(self, mindstorm: str) -> Record | None:
        """The verdict of a mindstorm; see `Trace.verdict`."""
        rows = await self._rows(
            f"SELECT {_COLUMNS} FROM records WHERE mindstorm = (SELECT number FROM mindstorms WHERE id = ?)"  # noqa: S608
            " AND kind = 'verdict' ORDER BY seq DESC LIMIT 1",
            (mindstorm,),
        )
        return _record(mindstorm, rows[0]) if rows else None

    async def records(self, mindstorm: str) -> AsyncIterator[Record]:
        """The records of a mindstorm; see `Trace.records`."""

        def do(connection: sqlite3.Connection) -> list[Record]:
            row = connection.execute("SELECT number FROM mindstorms WHERE id = ?", (mindstorm,)).fetchone()
            return list(self._read(connection, mindstorm, row[0], reused=True)) if row else []

        for record in await self._call(do):
            yield record

    async def verify(self) -> list[str]:
        """Follows the hash chain of every mindstorm; returns the ids of those that are damaged."""

        def do(connection: sqlite3.Connection) -> list[str]:
            damaged: list[str] = []
            for number, mindstorm in connection.execute("SELECT number, id FROM mindstorms ORDER BY number"):
                chain = first_link(mindstorm)
                for *row, stored in connection.execute(
                    f"SELECT {_COLUMNS}, chain FROM records WHERE mindstorm = ? ORDER BY seq",  # noqa: S608
                    (number,),
                ):
                    chain = link(chain, _record(mindstorm, row))
                    if chain != stored:
                        damaged.append(mindstorm)
                        break
            return damaged

        return await self._call(do)

    async def close(self) -> None:
        """Commits what is left, ends the thread and closes the file."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._queue.put(None)
            await asyncio.to_thread(thread.join)
        if self._failed is not None:
            raise self._failed

    def _read(
        self, connection: sqlite3.Connection, mindstorm: str, number: int, *, reused: bool
    ) -> Iterator[Record]:
        rows = connection.execute(
            f"SELECT {_COLUMNS} FROM records WHERE mindstorm = ? ORDER BY seq",  # noqa: S608
            (number,),
        )
        for row in rows:
            record = _record(mindstorm, row)
            if reused and record.kind == "reused":
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
        self._queue.put(call)
        return await call.answer

    def _own(self) -> None:
        """The owning thread: one transaction for all that has piled up."""
        try:
            connection = self._connect()
        except (sqlite3.Error, OSError, TraceError) as error:
            self._refuse(error if isinstance(error, TraceError) else self._explain(error))
            return
        with closing(connection):
            while True:
                batch = self._batch()
                ended = batch[-1] is None
                calls = [item for item in batch if isinstance(item, _Call)]
                try:
                    values = self._commit(connection, batch)
                except (sqlite3.Error, OSError) as error:
                    self._failed = self._explain(error)
                    for call in calls:
                        call.settle(None, self._failed)
                    if not ended:
                        self._refuse(self._failed)
                    return
                for call, value in zip(calls, values, strict=True):
                    call.settle(value)
                if ended:
                    return

    def _batch(self) -> list[_Item]:
        batch = [self._queue.get()]
        while batch[-1] is not None and len(batch) < _BATCH:
            try:
                batch.append(self._queue.get_nowait())
            except queue.Empty:
                break
        return batch

    def _commit(self, connection: sqlite3.Connection, batch: Iterable[_Item]) -> list[Any]:
        values: list[Any] = []
        rows: list[tuple[Any, ...]] = []

        def flush() -> None:
            if rows:
                connection.executemany(
                    f"INSERT INTO records (mindstorm, {_COLUMNS}, chain) VALUES (?,?,?,?,?,?,?,?,?)",  # noqa: S608
                    rows,
                )
                rows.clear()

        if not self._read_only:
            connection.execute("BEGIN IMMEDIATE")
        try:
            for item in batch:
                if isinstance(item, Record):
                    chain = self._chains[item.mindstorm] = link(self._chains[item.mindstorm], item)
                    rows.append((self._numbers[item.mindstorm], *_row(item), chain))
                elif isinstance(item, _Call):
                    flush()
                    values.append(item.run(connection))
                elif isinstance(item, _Left):
                    self._numbers.pop(item.mindstorm, None)
                    self._chains.pop(item.mindstorm, None)
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
        while (item := self._queue.get()) is not None:
            if isinstance(item, _Call):
                item.settle(None, error)

    def _connect(self) -> sqlite3.Connection:
        if self._read_only and not self.path.is_file():
            raise TraceError(f"{self.path}: there is no such trace")
        uri = f"{self.path.absolute().as_uri()}?mode={'ro' if self._read_only else 'rwc'}"
        connection = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=10)
        try:
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            if version == 0 and not self._read_only:
                connection.execute("PRAGMA journal_mode = WAL")
                self._create(connection)
            elif version != SCHEMA:
                told = "is no trace of nlsom" if version == 0 else f"has schema {version}, not {SCHEMA}"
                raise TraceError(f"{self.path}: {told}; give another file")
            connection.execute(f"PRAGMA synchronous = {self._synchronous}")
        except BaseException:
            connection.close()
            raise
        return connection

    def _create(self, connection: sqlite3.Connection) -> None:
        if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            raise TraceError(f"{self.path}: is another program's database; give another file")
        connection.executescript(f"BEGIN IMMEDIATE;{_TABLES}COMMIT;")

    def _explain(self, error: Exception) -> TraceError:
        told = str(error)
        if "full" in told:
            told = "the disk is full; make room and run the same command again, it goes on where it was"
        elif "locked" in told or "busy" in told:
            told = "another process holds it locked; end that one, or give another file"
        elif "not a database" in told or "malformed" in told:
            told = f"damaged or no SQLite file ({told}); keep a copy and give another file"
        elif "unable to open" in told:
            told = "cannot be opened; does its folder exist, and may you write there?"
        return TraceError(f"{self.path}: {told}")


def first_link(mindstorm: str) -> bytes:
    """The link that a mindstorm's chain begins with."""
    return hashlib.sha256(mindstorm.encode()).digest()


def _row(record: Record) -> tuple[Any, ...]:
    key = bytes.fromhex(record.key)
    return record.kind, key, record.member, record.phase, record.label, record.round, record.body


def _record(mindstorm: str, row: Sequence[Any]) -> Record:
    kind: Kind = row[0]
    return Record(mindstorm, kind, row[1].hex(), *row[2:7])
