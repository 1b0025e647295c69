"""The layout of a trace's file: its tables and rows, its version, and migrations from older versions."""

from __future__ import annotations

import os
import re
import sqlite3
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from nlsom.errors import TraceError, TraceRefused, reason_of
from nlsom.trace.contract import Kind, Record

VERSION = 2
"""Version of the file's layout (`PRAGMA user_version`); the version of keys is `contract.SCHEMA`."""

COLUMNS = "kind, key, member, phase, label, round, body"

_ROWS = 64
"""Most rows of one INSERT. Smaller numbers are powers of two, so that there are few different statements."""

_TABLES = """
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
"""
_SINCE_2 = """
CREATE TABLE societies (digest TEXT PRIMARY KEY, built TEXT NOT NULL) STRICT;
CREATE INDEX verdicts ON records (mindstorm, seq) WHERE kind = 'verdict';
"""

MIGRATIONS: Mapping[int, str] = {1: _SINCE_2}
"""For each older version, the statements that migrate it to the next."""


def connect(path: Path, *, read_only: bool, synchronous: str, patience: float) -> sqlite3.Connection:
    """Opens a trace's file. Makes it if it is new, and migrates it if it is older.

    Args:
        path: The file.
        read_only: Whether it is opened for reading only; an older file is migrated all the same.
        synchronous: `NORMAL` or `FULL`.
        patience: Seconds to wait for another process that holds the file locked.

    Raises:
        TraceRefused: There is no such file, it is not a trace, or a later version wrote it.
        sqlite3.Error: It cannot be opened.
    """
    if path.exists() and not path.is_file():  # SQLite would wait for ever to read from a pipe.
        raise TraceRefused(f"{path}: is no file; give another one")
    if read_only:
        if not path.exists():
            raise TraceRefused(f"{path}: there is no such trace")
        connection = _open(path, "ro", patience)
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version not in MIGRATIONS:
            try:
                _check(path, version)
            except TraceRefused:
                connection.close()
                raise
            return connection
        connection.close()
        connect(path, read_only=False, synchronous=synchronous, patience=patience).close()
        return _open(path, "ro", patience)
    connection = _open(path, "rwc", patience)
    try:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version != VERSION:
            if version == 0:
                _set_wal(connection, path, patience)
            _bring_up(connection, path)
        connection.execute(f"PRAGMA synchronous = {synchronous}")
    except BaseException:
        connection.close()
        raise
    return connection


def _open(path: Path, mode: str, patience: float) -> sqlite3.Connection:
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    # Even for reading, SQLite makes files beside the trace, unless it is told that nobody writes to it.
    if mode == "ro" and not os.access(path.parent, os.W_OK) and not Path(f"{path}-wal").exists():
        uri += "&immutable=1"
    return sqlite3.connect(uri, uri=True, isolation_level=None, timeout=patience)


def _set_wal(connection: sqlite3.Connection, path: Path, patience: float) -> None:
    """Sets the journal mode of a new file. SQLite does not wait for a lock here, so this does."""
    if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version == 0:
            raise TraceRefused(f"{path}: is another program's database; give another file")
    until = time.monotonic() + patience
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > until:
                raise
            time.sleep(0.01)


def _bring_up(connection: sqlite3.Connection, path: Path) -> None:
    """Makes or migrates the tables in one transaction, unless another process has done so meanwhile."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version == 0:
            if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                raise TraceRefused(f"{path}: is another program's database; give another file")
            _run(connection, _TABLES + _SINCE_2)
        else:
            while version in MIGRATIONS:
                _run(connection, MIGRATIONS[version])
                version += 1
            _check(path, version)
        connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.rollback()
        raise


def _run(connection: sqlite3.Connection, script: str) -> None:
    # Not `executescript`, which would commit first and so release the lock.
    for statement in script.split(";"):
        if statement.strip():
            connection.execute(statement)


def _check(path: Path, version: int) -> None:
    if version != VERSION:
        told = "is no trace of nlsom" if version == 0 else f"has schema {version}, not {VERSION}"
        raise TraceRefused(f"{path}: {told}; use the version of nlsom that wrote it, or give another file")


def explain(path: Path, error: Exception) -> TraceError:
    """An error of SQLite as a `TraceError` that says what it means and what to do."""
    told = reason_of(error)
    if "full" in told or "disk I/O" in told:
        told = (
            f"it cannot be written ({told}); make room and run the same command again, it goes on from here"
        )
    elif "locked" in told or "busy" in told:
        told = "another process holds it locked; end that one, or give another file"
    elif "readonly" in told:
        return TraceRefused(f"{path}: may not be written to, or its folder may not; give another file")
    elif isinstance(error, UnicodeError) or re.search("not a database|malformed|decode to UTF-8", told):
        return TraceRefused(f"{path}: damaged or no SQLite file ({told}); keep a copy and give another file")
    elif "unable to open" in told or isinstance(error, OSError):
        return TraceRefused(f"{path}: cannot be opened; does its folder exist, and may you write there?")
    return TraceError(f"{path}: {told}")


def to_row(record: Record) -> tuple[Any, ...]:
    """A record as a row of `COLUMNS`."""
    key = bytes.fromhex(record.key)
    return record.kind, key, record.member, record.phase, record.label, record.round, record.body


def to_record(mindstorm: str, row: Sequence[Any]) -> Record:
    """A row of `COLUMNS` as a record."""
    kind: Kind = row[0]
    return Record(mindstorm, kind, row[1].hex(), *row[2:7])


def insert(connection: sqlite3.Connection, rows: list[tuple[Any, ...]]) -> None:
    """Inserts rows (number of the mindstorm, `COLUMNS`, chain), and empties the list.

    Does not use `executemany`, which after each row would wait for the interpreter's lock, and a busy event
    loop yields that only every 5 ms.
    """
    at = 0
    while at < len(rows):
        some = rows[at : at + min(_ROWS, 1 << ((len(rows) - at).bit_length() - 1))]
        connection.execute(_insertion(len(some)), [value for row in some for value in row])
        at += len(some)
    rows.clear()


@cache
def _insertion(rows: int) -> str:
    values = ",".join(["(?,?,?,?,?,?,?,?,?)"] * rows)
    return f"INSERT INTO records (mindstorm, {COLUMNS}, chain) VALUES {values}"  # noqa: S608
