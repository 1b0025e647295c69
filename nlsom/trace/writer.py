"""The thread that owns the connection to a trace's file.

Whatever has gathered while it was busy goes into one transaction. So many records share one commit, and yet
no record has to wait for others.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from queue import SimpleQueue
from typing import Any, TypeVar

from nlsom.errors import TraceError
from nlsom.trace.chain import first_link, link
from nlsom.trace.contract import PAUSE, Record
from nlsom.trace.schema import insert, to_row

T = TypeVar("T")

_BATCH = 4096  # items of one transaction, about
_ASKED = 500  # keys of one query


class _Call:
    """Something for the thread to do, with a future for what it returns."""

    __slots__ = ("answer", "do", "loop", "safe", "writes")

    def __init__(self, do: Callable[[sqlite3.Connection], Any], *, writes: bool, safe: bool) -> None:
        self.do, self.writes, self.safe = do, writes, safe
        self.loop = asyncio.get_running_loop()
        self.answer: asyncio.Future[Any] = self.loop.create_future()


_Answer = tuple[_Call, Any]


def _settle(answers: Sequence[_Answer]) -> None:
    """Sets the results of calls, or errors; wakes each event loop only once for all of them."""

    def deliver(some: Sequence[_Answer]) -> None:
        for call, value in some:
            if call.answer.done():
                continue
            if isinstance(value, TraceError):
                call.answer.set_exception(value)
            else:
                call.answer.set_result(value)

    for loop in {call.loop for call, _ in answers}:
        with suppress(RuntimeError):  # The loop is closed, so nobody waits.
            loop.call_soon_threadsafe(deliver, [one for one in answers if one[0].loop is loop])


_Item = Record | _Call | None


class Writer:
    """Appends records and runs other work on the file, in the order in which it is given them.

    Attributes:
        failed: Why nothing more can be written; None while all is well.
        closed: Whether it has been closed.
    """

    def __init__(
        self, connect: Callable[[], sqlite3.Connection], explain: Callable[[Exception], TraceError]
    ) -> None:
        """Makes a writer; its thread starts with the first call.

        Args:
            connect: Opens the file.
            explain: Turns an error of SQLite into a `TraceError`.
        """
        self._connect, self._explain = connect, explain
        self._queue: SimpleQueue[list[_Item]] = SimpleQueue()
        self._ready: list[_Item] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.Handle | None = None
        self._called = False
        self._thread: threading.Thread | None = None
        self._ends: dict[str, tuple[int, bytes]] = {}
        self._version = 0
        self.failed: TraceError | None = None
        self.closed = False

    def append(self, record: Record) -> None:
        """Appends a record to a mindstorm that the file holds.

        Raises:
            TraceError: An earlier record could not be written.
        """
        if self.failed is not None:
            raise self.failed
        self._tell(record)

    def leave(self, mindstorm: str) -> asyncio.Future[None]:
        """Forgets the end of a mindstorm's chain; the future is done once its records are committed."""

        def do(_: sqlite3.Connection) -> None:
            self._ends.pop(mindstorm, None)

        call = _Call(do, writes=False, safe=True)
        self._tell(call)
        return call.answer

    def forget(self) -> None:
        """Forgets the ends of all chains. To be called only from the thread, inside a `call`."""
        self._ends.clear()

    async def call(
        self, do: Callable[[sqlite3.Connection], T], *, writes: bool = False, safe: bool = True
    ) -> T:
        """Runs something on the thread, after everything that came before, and returns its result.

        Args:
            do: What to run. It may raise a `TraceError` only before it writes anything.
            writes: Whether it changes the file.
            safe: Whether to wait until this, and all that came before, is committed.

        Raises:
            TraceError: Raised by `do`; or the file cannot be opened, read or written, or was closed.
        """
        if self.failed is not None:
            raise self.failed
        if self.closed:  # A late call would open the file again, and nobody would close it.
            raise TraceError("the trace is closed")
        self._start()
        call = _Call(do, writes=writes, safe=safe)
        self._tell(call)
        return await call.answer

    def begin_again(self) -> None:
        """Opens the file again after a failure that may have passed; records in between are lost."""
        if self.closed:
            return
        self._queue.put([*self._ready, None])  # The failed thread refuses these, and ends.
        self._queue, self._ready, self._thread = SimpleQueue(), [], None
        self._ends, self._version, self.failed = {}, 0, None
        self._start()

    async def close(self) -> None:
        """Commits what is left, ends the thread and closes the file."""
        self.closed = True
        thread, self._thread = self._thread, None
        if thread is not None:
            self._tell(None)
            self._hand_over()
            await asyncio.to_thread(thread.join)

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._own, args=(self._queue,), name="nlsom-trace", daemon=True
            )
            self._thread.start()

    def _tell(self, item: _Item) -> None:
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop, self._timer, self._called = loop, None, False
        self._ready.append(item)
        if not isinstance(item, Record) and not self._called:
            self._called = True
            loop.call_soon(self._hand_over)
        elif self._timer is None:
            self._timer = loop.call_later(PAUSE, self._hand_over)

    def _hand_over(self) -> None:
        """Gives the thread everything that has gathered. Runs at once if somebody waits, else after a pause.

        A thread woken for each item, in the middle of the loop's work, would compete with the loop for the
        interpreter's lock.
        """
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._called = None, False
        if self._ready:
            items, self._ready = self._ready, []
            self._queue.put(items)

    def _own(self, queue: SimpleQueue[list[_Item]]) -> None:
        try:
            connection = self._connect()
        except Exception as error:  # noqa: BLE001
            # Whatever it is, callers have to hear of it, or they would wait for ever.
            self.failed = self._explained(error)
            self._refuse(queue, self.failed)
            return
        with closing(connection):
            ended = False
            while not ended:
                batch = self._take(queue)
                ended = None in batch
                try:
                    self._commit(connection, batch)
                except Exception as error:  # noqa: BLE001 (as above)
                    self.failed = self._explained(error)
                    _settle([(item, self.failed) for item in batch if isinstance(item, _Call)])
                    if not ended:
                        self._refuse(queue, self.failed)
                    return

    def _take(self, queue: SimpleQueue[list[_Item]]) -> list[_Item]:
        """Waits for items, and takes all that have gathered."""
        batch = queue.get()
        while len(batch) < _BATCH and not queue.empty():
            batch += queue.get()
        return batch

    def _commit(self, connection: sqlite3.Connection, batch: Sequence[_Item]) -> None:
        at_once: list[_Answer] = []
        once_safe: list[_Answer] = []
        rows: list[tuple[Any, ...]] = []
        self._begin(
            connection,
            any(isinstance(item, Record) or (isinstance(item, _Call) and item.writes) for item in batch),
        )
        try:
            gone = _gone(connection, batch)
            for item in batch:
                if isinstance(item, Record):
                    if item.kind == "reused":
                        item = item._replace(kind="replied") if item.key in gone else item._replace(body=b"")
                    number, chain = self._ends.get(item.mindstorm) or _end(connection, item.mindstorm)
                    chain = link(chain, item)
                    self._ends[item.mindstorm] = number, chain
                    rows.append((number, *to_row(item), chain))
                elif isinstance(item, _Call):
                    insert(connection, rows)
                    try:
                        value = item.do(connection)
                    except TraceError as error:
                        value = error  # Raised before anything was written, so it concerns only this call.
                    (once_safe if item.safe else at_once).append((item, value))
            insert(connection, rows)
            if at_once:
                _settle(at_once)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.rollback()
            raise
        _settle(once_safe)

    def _begin(self, connection: sqlite3.Connection, writes: bool) -> None:
        if not writes:
            connection.execute("BEGIN")
            return
        connection.execute("BEGIN IMMEDIATE")
        (version,) = connection.execute("PRAGMA data_version").fetchone()
        if version != self._version:  # Another process wrote: the ends of chains have to be looked up again.
            self._version = version
            self._ends.clear()

    def _explained(self, error: Exception) -> TraceError:
        return error if isinstance(error, TraceError) else self._explain(error)

    def _refuse(self, queue: SimpleQueue[list[_Item]], error: TraceError) -> None:
        """Fails all calls with the error until the writer is closed."""
        ended = False
        while not ended:
            batch = self._take(queue)
            ended = None in batch
            _settle([(item, error) for item in batch if isinstance(item, _Call)])


def _gone(connection: sqlite3.Connection, batch: Sequence[_Item]) -> set[str]:
    """Keys of replies reused in this batch that have been dropped since they were found."""
    records = [item for item in batch if isinstance(item, Record)]
    keys = {record.key for record in records if record.kind == "reused"}
    if not keys:
        return keys
    keys.difference_update(record.key for record in records if record.kind == "replied")
    wanted = [bytes.fromhex(key) for key in keys]
    for at in range(0, len(wanted), _ASKED):
        some = wanted[at : at + _ASKED]
        rows = connection.execute(
            f"SELECT key FROM records WHERE kind = 'replied' AND key IN ({','.join('?' * len(some))})",  # noqa: S608
            some,
        )
        keys.difference_update(key.hex() for (key,) in rows)
    return keys


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
