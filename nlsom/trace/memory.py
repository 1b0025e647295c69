"""A trace in memory: for tests and for replays within a process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from nlsom.errors import TraceError
from nlsom.trace.claims import Claims
from nlsom.trace.contract import Header, History, Record


class MemoryTrace:
    """Keeps records as bytes, for as long as it lives."""

    def __init__(self) -> None:
        self._headers: dict[str, Header] = {}
        self._records: dict[str, list[Record]] = {}
        self._replies: dict[str, Record] = {}
        self._claims = Claims(None)

    async def open(self, header: Header) -> History:
        """Begins or resumes a mindstorm; see `Trace.open`."""
        await self._claims.take(header.mindstorm)
        self._headers.setdefault(header.mindstorm, header)
        self._records.setdefault(header.mindstorm, [])
        history = History()
        async for record in self.records(header.mindstorm):
            history.add(record)
        return history

    async def find(self, keys: Sequence[str]) -> dict[str, Record]:
        """Replies stored under these keys; see `Trace.find`."""
        return {key: self._replies[key] for key in keys if key in self._replies}

    def append(self, record: Record) -> None:
        """Appends a record; see `Trace.append`."""
        if record.mindstorm not in self._claims:
            raise TraceError(f"mindstorm {record.mindstorm!r} was not opened")
        self._records[record.mindstorm].append(record)
        if record.kind == "replied":
            self._replies.setdefault(record.key, record)

    async def durable(self) -> None:
        """Returns at once: nothing here outlives the process."""

    def leave(self, mindstorm: str) -> None:
        """Ends the work on a mindstorm; see `Trace.leave`."""
        self._claims.let_go(mindstorm)

    async def mindstorms(self) -> AsyncIterator[Header]:
        """The mindstorms; see `Trace.mindstorms`."""
        for header in list(self._headers.values()):
            yield header

    async def records(self, mindstorm: str) -> AsyncIterator[Record]:
        """The records of a mindstorm; see `Trace.records`."""
        for record in list(self._records.get(mindstorm, ())):
            if record.kind == "reused":
                stored = self._replies[record.key]
                yield record._replace(kind="replied", body=stored.body)
            else:
                yield record

    async def close(self) -> None:
        """Does nothing: there is no store to close."""
