"""A trace in an SQLite file.

`durable` waits for the commit of all that was appended before. That wait is also the back-pressure: without
it, a busy event loop might starve the writing thread.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, Self

from nlsom.errors import TraceError, TraceRefused
from nlsom.trace import upkeep
from nlsom.trace.claims import Claims
from nlsom.trace.contract import Header, History, Record
from nlsom.trace.schema import COLUMNS, connect, explain, to_record
from nlsom.trace.stored import read_stored
from nlsom.trace.upkeep import Pruned, Summary
from nlsom.trace.writer import Writer


class SqliteTrace:
    """An append-only log in an SQLite file, which others can read while it is written."""

    def __init__(
        self,
        path: str | Path,
        *,
        synchronous: Literal["NORMAL", "FULL"] = "NORMAL",
        read_only: bool = False,
        patience: float = 10.0,
    ) -> None:
        """Makes a trace; its file is made when the trace is first used.

        Args:
            path: The file.
            synchronous: With `NORMAL`, durable records survive the end of the process in any way; with
                `FULL`, also a loss of power.
            read_only: Whether to open it for reading only.
            patience: Seconds to wait for another process that holds the file locked.
        """
        self.path = Path(path)
        self._writer = Writer(
            partial(connect, self.path, read_only=read_only, synchronous=synchronous, patience=patience),
            partial(explain, self.path),
        )
        self._claims = Claims(Path(f"{self.path}.lock"))
        self._lost: dict[str, TraceError] = {}

    @property
    def media(self) -> Path:
        """The folder beside the file for the pictures of its mindstorms."""
        return Path(f"{self.path}.media")

    async def __aenter__(self) -> Self:
        self._writer.closed = False
        try:
            await self._writer.call(_nothing)
        except BaseException:
            await self._writer.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def open(self, header: Header) -> History:
        """Begins or resumes a mindstorm; see `Trace.open`."""

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

        if self._writer.failed is not None:
            # The cause, such as a full disk, may be gone. Mindstorms under way may lack records, so they end.
            self._lost.update(dict.fromkeys(self._claims.held, self._writer.failed))
            self._writer.begin_again()
        try:
            await self._claims.take(header.mindstorm)
        except OSError as error:
            raise explain(self.path, error) from error
        try:
            # Need not be committed yet: records of this mindstorm are committed with this or after it.
            return await self._writer.call(do, writes=True, safe=False)
        except BaseException:
            self._claims.let_go(header.mindstorm)
            raise

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

        return await self._writer.call(do, safe=False)

    def append(self, record: Record) -> None:
        """Appends a record; see `Trace.append`."""
        if record.mindstorm not in self._claims:
            raise TraceError(f"{self.path}: mindstorm {record.mindstorm!r} was not opened")
        if record.mindstorm in self._lost:
            raise self._lost[record.mindstorm]
        self._writer.append(record)

    async def durable(self) -> None:
        """Waits until what was appended is committed; see `Trace.durable`."""
        await self._writer.call(_nothing)

    def leave(self, mindstorm: str) -> None:
        """Ends the work on a mindstorm; see `Trace.leave`."""
        if mindstorm in self._claims:
            # Released only once its records are committed, so that another process can read them.
            left = self._writer.leave(mindstorm)
            left.add_done_callback(partial(self._let_go, mindstorm))

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
        """The header of a mindstorm, without `built`; None if the trace does not hold it."""
        rows = await self._rows("SELECT header FROM mindstorms WHERE id = ?", (mindstorm,))
        return read_stored(Header, rows[0][0]) if rows else None

    async def latest(self, count: int, *, before: str | None = None) -> list[Header]:
        """The latest `count` mindstorms, latest first; if `before` is given, those that began before it."""
        where, given = "", ()
        if before is not None:
            where, given = "WHERE number < (SELECT number FROM mindstorms WHERE id = ?)", (before,)
        rows = await self._rows(
            f"SELECT header FROM mindstorms {where} ORDER BY number DESC LIMIT ?",  # noqa: S608
            (*given, count),
        )
        return [read_stored(Header, row[0]) for row in rows]

    async def verdict(self, mindstorm: str) -> Record | None:
        """The last verdict of a mindstorm; None if it has none."""
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

        for record in await self._writer.call(do, safe=False):
            yield record

    async def summaries(self) -> AsyncIterator[Summary]:
        """Summaries of all mindstorms, in the order in which they began."""
        after = 0
        while True:
            some = await self._writer.call(partial(upkeep.summaries, after=after, limit=500), safe=False)
            for number, summary in some:
                after = number
                yield summary
            if len(some) < 500:
                return

    async def verify(self) -> list[str]:
        """Checks the hash chains of all mindstorms; returns the ids of damaged ones."""
        return await self._writer.call(upkeep.verify, safe=False)

    async def prune(self, mindstorms: Collection[str]) -> Pruned:
        """Drops whole mindstorms, except for replies that others reuse.

        Raises:
            TraceError: One of them is under way or not in the trace, or the trace cannot be written. Nothing
                is dropped then.
        """

        def do(connection: sqlite3.Connection) -> Pruned:
            self._writer.forget()
            return upkeep.prune(connection, mindstorms)

        taken: list[str] = []
        try:
            for one in mindstorms:
                if not await self._claims.take(one, wait=False):
                    raise TraceError(f"{self.path}: mindstorm {one!r} is at work; prune it when it has ended")
                taken.append(one)
            return await self._writer.call(do, writes=True)
        finally:
            for one in taken:
                self._claims.let_go(one)

    async def digests(self) -> frozenset[str]:
        """SHA-256 (hex) of all pictures and files that its mindstorms refer to, and perhaps of others."""
        return await self._writer.call(upkeep.digests, safe=False)

    async def close(self) -> None:
        """Commits what is left, ends the thread and closes the file.

        Raises:
            TraceError: Some records could not be written.
        """
        await self._writer.close()
        self._claims.close()
        if self._writer.failed is not None:
            raise self._writer.failed

    def _let_go(self, mindstorm: str, left: asyncio.Future[None]) -> None:
        self._lost.pop(mindstorm, None)
        self._claims.let_go(mindstorm)
        if not left.cancelled():
            left.exception()  # Marks it as seen; `durable` raises it.

    def _read(self, connection: sqlite3.Connection, mindstorm: str, number: int) -> Iterator[Record]:
        rows = connection.execute(
            f"SELECT {COLUMNS} FROM records WHERE mindstorm = ? ORDER BY seq",  # noqa: S608
            (number,),
        )
        for row in rows:
            record = to_record(mindstorm, row)
            if record.kind == "reused":
                found = connection.execute(
                    "SELECT body FROM records WHERE kind = 'replied' AND key = ? ORDER BY seq LIMIT 1",
                    (bytes.fromhex(record.key),),
                ).fetchone()
                if found is None:
                    raise TraceRefused(
                        f"{self.path}: a reply that mindstorm {mindstorm!r} reuses is gone; see "
                        "`nlsom traces verify`, and prune what is damaged"
                    )
                record = record._replace(kind="replied", body=found[0])
            yield record

    async def _rows(self, sql: str, parameters: Sequence[Any]) -> list[Any]:
        return await self._writer.call(
            lambda connection: connection.execute(sql, parameters).fetchall(), safe=False
        )


def _nothing(_: sqlite3.Connection) -> None:
    """A call that only waits for what was appended before."""
