"""Upkeep of a trace's file: summaries, finding damage, dropping mindstorms."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Collection, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from nlsom.errors import TraceError
from nlsom.trace.chain import first_link, link
from nlsom.trace.contract import Header
from nlsom.trace.schema import COLUMNS, explain, to_record
from nlsom.trace.stored import read_stored

_DIGEST = re.compile(rb"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")

KEPT = 0
"""The number under which replies of dropped mindstorms stay that others reuse; no mindstorm has it."""


@dataclass(frozen=True, slots=True)
class Summary:
    """A mindstorm at a glance.

    Attributes:
        header: Its header.
        replied: Replies, its own and reused ones.
        abstained: Turns that were not answered.
        verdict: Its last verdict (JSON); None if it has none.
    """

    header: Header
    replied: int
    abstained: int
    verdict: bytes | None


@dataclass(frozen=True, slots=True)
class Pruned:
    """What was dropped.

    Attributes:
        mindstorms: How many mindstorms.
        records: How many of their records.
        kept: How many of their replies stay because other mindstorms reuse them.
    """

    mindstorms: int
    records: int
    kept: int


def summaries(connection: sqlite3.Connection, after: int, limit: int) -> list[tuple[int, Summary]]:
    """Summaries of mindstorms with numbers above `after`, in the order in which they began."""
    rows = connection.execute(
        "SELECT number, header,"
        " (SELECT count(*) FROM records WHERE mindstorm = number AND kind IN ('replied', 'reused')),"
        " (SELECT count(*) FROM records WHERE mindstorm = number AND kind = 'abstained'),"
        " (SELECT body FROM records WHERE mindstorm = number AND kind = 'verdict' ORDER BY seq DESC LIMIT 1)"
        " FROM mindstorms WHERE number > ? ORDER BY number LIMIT ?",
        (after, limit),
    )
    return [(number, Summary(read_stored(Header, header), *rest)) for number, header, *rest in rows]


def verify(connection: sqlite3.Connection) -> list[str]:
    """Checks the hash chains of all mindstorms; returns the ids of damaged ones.

    A mindstorm that reuses a reply is damaged if that reply is gone or damaged.
    """
    damaged: list[str] = []
    headers = connection.execute("SELECT number, id FROM mindstorms ORDER BY number").fetchall()
    loose = {key for key, whole in _kept(connection) if not whole}
    for number, mindstorm in headers:
        chain = first_link(mindstorm)
        rows = connection.execute(
            f"SELECT {COLUMNS}, chain FROM records WHERE mindstorm = ? ORDER BY seq",  # noqa: S608
            (number,),
        )
        for *row, stored in rows:
            record = to_record(mindstorm, row)
            chain = link(chain, record)
            lost = record.kind == "reused" and (row[1] in loose or not _has_reply(connection, row[1]))
            if chain != stored or lost:
                damaged.append(mindstorm)
                break
    return damaged


def prune(connection: sqlite3.Connection, mindstorms: Collection[str]) -> Pruned:
    """Drops whole mindstorms. Replies that other mindstorms reuse stay, under the number `KEPT`.

    Raises:
        TraceError: The trace does not hold one of them. Nothing is dropped then.
    """
    numbers: dict[int, str] = {}
    for mindstorm in mindstorms:
        row = connection.execute("SELECT number FROM mindstorms WHERE id = ?", (mindstorm,)).fetchone()
        if row is None:
            raise TraceError(f"this trace holds no mindstorm {mindstorm!r}")
        numbers[row[0]] = mindstorm
    connection.execute("CREATE TEMP TABLE IF NOT EXISTS dropped (number INTEGER PRIMARY KEY)")
    connection.execute("DELETE FROM dropped")
    connection.executemany("INSERT INTO dropped VALUES (?)", [(number,) for number in numbers])
    wanted = connection.execute(
        f"SELECT seq, {COLUMNS} FROM records AS own WHERE kind = 'replied'"  # noqa: S608
        " AND mindstorm IN (SELECT number FROM dropped)"
        " AND key IN (SELECT key FROM records WHERE kind = 'reused'"
        "   AND mindstorm NOT IN (SELECT number FROM dropped))"
        " AND seq = (SELECT min(seq) FROM records WHERE kind = 'replied' AND key = own.key)"
    ).fetchall()
    for seq, *row in wanted:
        chain = link(first_link(""), to_record("", row))
        connection.execute("UPDATE records SET mindstorm = ?, chain = ? WHERE seq = ?", (KEPT, chain, seq))
    gone = connection.execute("DELETE FROM records WHERE mindstorm IN (SELECT number FROM dropped)").rowcount
    # Replies that were kept only for mindstorms which are dropped now.
    gone += connection.execute(
        "DELETE FROM records WHERE mindstorm = ? AND key NOT IN"
        " (SELECT key FROM records WHERE kind = 'reused')",
        (KEPT,),
    ).rowcount
    connection.execute("DELETE FROM mindstorms WHERE number IN (SELECT number FROM dropped)")
    connection.execute(
        "DELETE FROM societies WHERE digest NOT IN (SELECT header ->> 'digest' FROM mindstorms)"
    )
    return Pruned(len(numbers), gone, len(wanted))


def digests(connection: sqlite3.Connection) -> frozenset[str]:
    """Everything that looks like a SHA-256 in headers and records, which includes all pictures and files."""
    rows = connection.execute(
        "SELECT CAST(header AS BLOB) FROM mindstorms UNION ALL"
        " SELECT body FROM records WHERE instr(body, CAST('\"sha256\"' AS BLOB))"
    )
    return frozenset(found.decode() for (body,) in rows for found in _DIGEST.findall(body))


def compact(path: Path) -> None:
    """Returns the space of dropped records to the disk; needs as much space again while it runs.

    Raises:
        TraceError: The file is locked, or there is not enough space.
    """
    try:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("VACUUM")
    except sqlite3.Error as error:
        raise explain(path, error) from error


def _kept(connection: sqlite3.Connection) -> Iterator[tuple[bytes, bool]]:
    """The replies under the number `KEPT`, and whether each is undamaged."""
    rows = connection.execute(
        f"SELECT {COLUMNS}, chain FROM records WHERE mindstorm = ?",  # noqa: S608
        (KEPT,),
    )
    for *row, stored in rows:
        yield row[1], link(first_link(""), to_record("", row)) == stored


def _has_reply(connection: sqlite3.Connection, key: bytes) -> bool:
    row = connection.execute("SELECT 1 FROM records WHERE kind = 'replied' AND key = ? LIMIT 1", (key,))
    return row.fetchone() is not None
