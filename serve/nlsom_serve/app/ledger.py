"""The ledger: mindstorms of the native API, which continue after a restart.

The trace holds what was said and decided. The ledger adds what the trace lacks: that a mindstorm is still to
be finished, or was cancelled or stopped.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

from nlsom.errors import TraceError

T = TypeVar("T")
State = Literal["open", "decided", "stopped", "cancelled"]

_TABLE = """
CREATE TABLE IF NOT EXISTS mindstorms (
    id TEXT PRIMARY KEY, society TEXT NOT NULL, task TEXT NOT NULL, seed TEXT NOT NULL,
    limits TEXT NOT NULL, state TEXT NOT NULL, reason TEXT NOT NULL
) STRICT
"""


@dataclass(frozen=True, slots=True)
class Entry:
    """A mindstorm in the ledger.

    Attributes:
        id: Its id.
        society: Id of the society.
        task: The task (JSON).
        seed: The run's seed.
        limits: What it may spend (JSON).
        state: `open` until it is over.
        reason: Why it ended without a verdict.
    """

    id: str
    society: str
    task: str
    seed: int
    limits: str
    state: State = "open"
    reason: str = ""


class Ledger:
    """Entries in an SQLite file. An async context manager."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = asyncio.Lock()
        self._connection: sqlite3.Connection | None = None

    async def __aenter__(self) -> Self:
        def connect() -> sqlite3.Connection:
            connection = sqlite3.connect(
                self._path, isolation_level=None, check_same_thread=False, timeout=10
            )
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute(_TABLE)
            return connection

        try:
            self._connection = await asyncio.to_thread(connect)
        except sqlite3.Error as error:
            raise TraceError(f"{self._path}: {error}; give another --data folder") from error
        return self

    async def __aexit__(self, *_: object) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await asyncio.to_thread(connection.close)

    async def put(self, entry: Entry) -> None:
        """Stores an entry, replacing one with the same id."""
        row = (entry.id, entry.society, entry.task, str(entry.seed), entry.limits, entry.state, entry.reason)
        await self._do(
            lambda on: on.execute("INSERT OR REPLACE INTO mindstorms VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        )

    async def close(self, id: str, state: State, reason: str = "") -> None:
        """Records how a mindstorm ended."""
        row = (state, reason, id)
        await self._do(lambda on: on.execute("UPDATE mindstorms SET state = ?, reason = ? WHERE id = ?", row))

    async def get(self, id: str) -> Entry | None:
        """The entry with this id, if any."""
        rows = await self._do(
            lambda on: on.execute("SELECT * FROM mindstorms WHERE id = ?", (id,)).fetchall()
        )
        return _entry(rows[0]) if rows else None

    async def open(self) -> list[Entry]:
        """All entries that are not over, oldest first."""
        rows = await self._do(
            lambda on: on.execute("SELECT * FROM mindstorms WHERE state = 'open' ORDER BY rowid").fetchall()
        )
        return [_entry(row) for row in rows]

    async def _do(self, do: Callable[[sqlite3.Connection], T]) -> T:
        async with self._lock:
            connection = self._connection
            assert connection is not None
            try:
                return await asyncio.to_thread(do, connection)
            except sqlite3.Error as error:
                raise TraceError(f"{self._path}: {error}") from error


def _entry(row: tuple[Any, ...]) -> Entry:
    id, society, task, seed, limits, state, reason = row
    return Entry(id, society, task, int(seed), limits, state, reason)
