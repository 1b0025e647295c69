"""The trace's file survives torn tails, full disks, locks, older versions and two writers at once."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from nlsom.errors import TraceError, TraceRefused
from nlsom.testing.traces import header, record, reopened
from nlsom.trace import SqliteTrace
from nlsom.trace.upkeep import compact

VERSION_1 = """
CREATE TABLE mindstorms (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, header TEXT NOT NULL) STRICT;
CREATE TABLE records (
    seq INTEGER PRIMARY KEY, mindstorm INTEGER NOT NULL, kind TEXT NOT NULL, key BLOB NOT NULL,
    member TEXT NOT NULL, phase TEXT NOT NULL, label TEXT NOT NULL, round INTEGER NOT NULL,
    body BLOB NOT NULL, chain BLOB NOT NULL) STRICT;
CREATE INDEX records_of_mindstorm ON records (mindstorm, seq);
CREATE INDEX replies_by_key ON records (key) WHERE kind = 'replied';
PRAGMA user_version = 1;
"""


async def _filled(path, storms=3, each=20):
    async with SqliteTrace(path) as trace:
        for storm in range(storms):
            await trace.open(header(f"storm {storm}"))
            for number in range(each):
                trace.append(record(f"{storm} {number}", mindstorm=f"storm {storm}"))
            await trace.durable()


async def test_a_torn_tail_is_left_out_and_what_is_before_it_is_whole(tmp_path):
    path = tmp_path / "run.sqlite"
    names = [f"turn {number}" for number in range(60)]
    async with SqliteTrace(path) as trace:
        await trace.open(header())
        for name in names:
            trace.append(record(name))
            await trace.durable()
        for end in (path.name, path.name + "-wal"):
            shutil.copy(tmp_path / end, tmp_path / ("copy-" + end))
    log = (tmp_path / "copy-run.sqlite-wal").read_bytes()
    rng = random.Random(7)
    lengths = set()
    for number in range(25):
        torn = tmp_path / f"torn{number}.sqlite"
        shutil.copy(tmp_path / "copy-run.sqlite", torn)
        cut = rng.randrange(len(log) + 1)
        # A tail may also be there and hold garbage, as after a loss of power.
        tail = rng.randbytes(len(log) - cut) if number % 2 else b""
        (tmp_path / f"torn{number}.sqlite-wal").write_bytes(log[:cut] + tail)
        async with SqliteTrace(torn) as trace:
            assert await trace.verify() == []
            stored = [one.key async for one in trace.records("storm")]
            assert stored == [record(name).key for name in names[: len(stored)]]
            lengths.add(len(stored))
            await trace.open(header())
            trace.append(record("and on it goes"))
            await trace.durable()
            assert await trace.verify() == []
    assert len(lengths) > 5, "the cuts fell on different records"


async def test_an_older_file_is_brought_up_to_date(tmp_path):
    path = tmp_path / "old.sqlite"
    await _filled(path, storms=2)
    new = sqlite3.connect(path)
    rows = {name: new.execute(f"SELECT * FROM {name}").fetchall() for name in ("mindstorms", "records")}
    new.close()
    path.unlink()
    old = sqlite3.connect(path)
    old.executescript(VERSION_1)
    for name, held in rows.items():
        old.executemany(f"INSERT INTO {name} VALUES ({','.join('?' * len(held[0]))})", held)
    old.commit()
    old.close()
    async with SqliteTrace(path, read_only=True) as trace:  # also one that only wants to read
        assert [one.header.mindstorm async for one in trace.summaries()] == ["storm 0", "storm 1"]
        assert await trace.verify() == []
        assert len([one async for one in trace.records("storm 1")]) == 20
    with sqlite3.connect(path) as now:
        assert now.execute("PRAGMA user_version").fetchone() == (2,)
        assert now.execute("SELECT count(*) FROM sqlite_master WHERE name = 'verdicts'").fetchone() == (1,)
    now.close()


async def test_a_file_that_another_process_holds_is_said_to_be_locked(tmp_path):
    path = tmp_path / "run.sqlite"
    await _filled(path)
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    trace = SqliteTrace(path, patience=0.05)
    with pytest.raises(TraceError, match="another process holds it locked"):
        await trace.open(header("storm 9"))
    with pytest.raises(TraceError):
        await trace.close()
    holder.rollback()
    holder.close()
    async with SqliteTrace(path) as again:
        assert len((await again.open(header("storm 1"))).outcomes) == 20


READ_ONLY = """
import asyncio, concurrent.futures.thread, os, sys  # before they cannot be read any more
from nlsom.errors import TraceRefused
from nlsom.trace import SqliteTrace

async def main(path):
    async with SqliteTrace(path, read_only=True) as trace:
        print(*[one.mindstorm async for one in trace.mindstorms()], await trace.verify())
    try:
        async with SqliteTrace(path):
            pass
    except TraceRefused as error:
        print(error)

if os.geteuid() == 0:
    os.setuid(65534)  # root may write anywhere
asyncio.run(main(sys.argv[1]))
"""


async def test_a_trace_where_nothing_may_be_written_is_read_all_the_same():
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        await _filled(folder / "run.sqlite")
        for path, mode in ((folder / "run.sqlite", 0o444), (folder, 0o555)):
            path.chmod(mode)
        try:
            ran = subprocess.run(
                [sys.executable, "-c", READ_ONLY, folder / "run.sqlite"], capture_output=True, text=True
            )
        finally:
            folder.chmod(0o755)
    first, second = ran.stdout.splitlines()
    assert first == "storm 0 storm 1 storm 2 []"
    assert "may not be written to" in second


async def test_what_is_no_file_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, Path("/dev/zero")):
        for read_only in (True, False):
            with pytest.raises(TraceRefused, match="is no file"):
                async with SqliteTrace(path, read_only=read_only):
                    pass


async def test_damage_that_sqlite_cannot_even_tell_of_leaves_nobody_waiting(tmp_path):
    path = tmp_path / "run.sqlite"
    await _filled(path)
    raw = path.read_bytes()
    path.write_bytes(raw.replace(b"CREATE TABLE records", b"CREATE TAB\xa1E records"))
    trace = SqliteTrace(path)
    with pytest.raises(TraceRefused, match="damaged"):
        await asyncio.wait_for(trace.open(header()), 30)
    with pytest.raises(TraceRefused):
        await trace.close()


async def test_whoever_comes_after_it_was_closed_opens_nothing_again(tmp_path):
    trace = SqliteTrace(tmp_path / "run.sqlite")
    await trace.open(header())
    await trace.close()
    with pytest.raises(TraceError, match="closed"):
        await trace.find(["00" * 32])
    assert not [thread for thread in threading.enumerate() if thread.name == "nlsom-trace"]
    async with trace:
        assert [one.mindstorm async for one in trace.mindstorms()] == [header().mindstorm]


async def test_once_what_was_in_its_way_is_gone_it_goes_on_and_who_may_have_lost_something_ends(tmp_path):
    path = tmp_path / "run.sqlite"
    trace = SqliteTrace(path, patience=0.05)
    await trace.open(header("one"))
    await trace.durable()
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    trace.append(record("lost", mindstorm="one"))
    with pytest.raises(TraceError, match="locked"):
        await trace.durable()
    with pytest.raises(TraceError, match="locked"):
        await trace.open(header("two"))
    holder.rollback()
    holder.close()
    waiting = asyncio.create_task(trace.open(header("one")))
    await asyncio.sleep(0)
    await trace.open(header("two"))
    trace.append(record("kept", mindstorm="two"))
    with pytest.raises(TraceError, match="locked"):
        trace.append(record("after the loss", mindstorm="one"))
    trace.leave("one")
    assert (await waiting).outcomes == {}
    trace.append(record("anew", mindstorm="one"))
    await trace.close()
    async with SqliteTrace(path) as again:
        assert await again.verify() == []
        assert [one.key async for one in again.records("one")] == [record("anew").key]
        assert [one.key async for one in again.records("two")] == [record("kept").key]


FULL = """
import asyncio, resource, signal, sys
from nlsom.errors import TraceError
from nlsom.testing.traces import header, record, reopened
from nlsom.trace import SqliteTrace

async def main(path, limit):
    if limit:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    trace = SqliteTrace(path)
    safe = 0
    try:
        await trace.open(header())
        for number in range(400):
            trace.append(record(str(number), body=b'{"parts":[],"why":"' + b"x" * 900 + b'"}'))
            await trace.durable()
            safe = number + 1
        await trace.close()
        print(safe, "well")
    except TraceError as error:
        try:
            await trace.close()
        except TraceError:
            pass
        print(safe, error)

asyncio.run(main(sys.argv[1], int(sys.argv[2])))
"""


def _run(path, limit):
    told = subprocess.run(
        [sys.executable, "-c", FULL, path, str(limit)], capture_output=True, text=True, timeout=60, check=True
    ).stdout
    safe, _, what = told.partition(" ")
    return int(safe), what.strip()


async def test_a_full_disk_is_a_clear_error_and_the_run_goes_on_where_it_was(tmp_path):
    path = tmp_path / "run.sqlite"
    safe, what = await asyncio.to_thread(_run, path, 200_000)
    assert 0 < safe < 400
    assert "make room and run the same command again" in what
    async with SqliteTrace(path) as trace:
        assert await trace.verify() == []
        assert len((await trace.open(header())).outcomes) >= safe, "what was durable is still there"
    assert await asyncio.to_thread(_run, path, 0) == (400, "well")
    async with SqliteTrace(path) as trace:
        assert await trace.verify() == []
        assert len((await trace.open(header())).outcomes) == 400


CREATE = """
import asyncio, sys
from nlsom.testing.traces import header, record, reopened
from nlsom.trace import SqliteTrace

async def main(path, name):
    async with SqliteTrace(path) as trace:
        await trace.open(header(name))
        for number in range(30):
            trace.append(record(f"{name} {number}", mindstorm=name))
            await trace.durable()
        known = await trace.open(header("both"))
        assert len(known.outcomes) % 10 == 0, "one after the other"
        for number in range(10):
            trace.append(record(f"{name} {number} both", mindstorm="both"))
            await asyncio.sleep(0.002)
        trace.leave("both")

sys.stdin.readline()
asyncio.run(main(*sys.argv[1:]))
"""


async def test_processes_that_make_the_same_file_at_once_all_write_it_and_the_chain_holds(tmp_path):
    path = tmp_path / "run.sqlite"
    makers = [
        await asyncio.create_subprocess_exec(
            sys.executable, "-c", CREATE, path, str(number), stdin=-1, stderr=-1
        )
        for number in range(4)
    ]
    ended = await asyncio.gather(*(maker.communicate(b"\n") for maker in makers))
    assert [maker.returncode for maker in makers] == [0] * 4, ended
    async with SqliteTrace(path) as trace:
        assert len([one async for one in trace.records("both")]) == 40
        for name in "0123":
            assert len([one async for one in trace.records(name)]) == 30
        assert await trace.verify() == []


async def test_pruning_keeps_the_replies_that_others_reuse(tmp_path):
    path = tmp_path / "run.sqlite"
    async with SqliteTrace(path) as trace:
        for storm in ("one", "two", "three"):
            await trace.open(header(storm))
        for name in "abc":
            trace.append(record(name, mindstorm="one"))
        trace.append(record("a", "reused", mindstorm="two", body=b""))
        trace.append(record("d", mindstorm="two"))
        trace.append(record("d", "reused", mindstorm="three", body=b""))
        with pytest.raises(TraceError, match="'one' is at work"):
            await trace.prune(["one", "two"])
        for storm in ("one", "two", "three"):
            trace.leave(storm)
        await trace.durable()
        pruned = await trace.prune(["one"])
        assert (pruned.mindstorms, pruned.records, pruned.kept) == (1, 2, 1)
        assert [one.mindstorm async for one in trace.mindstorms()] == ["two", "three"]
        stored = [one async for one in trace.records("two")]
        assert [one.key for one in stored] == [record("a").key, record("d").key]
        assert stored[0].body == record("a").body
        assert set(await trace.find([record(name).key for name in "abcd"])) == {
            record("a").key,
            record("d").key,
        }
        assert await trace.verify() == []
        await trace.prune(["two", "three"])
        assert await trace.find([record(name).key for name in "abcd"]) == {}, "nobody needs them any more"
        with pytest.raises(TraceError, match="no mindstorm 'nine'"):
            await trace.prune(["nine"])
        await trace.open(header("four"))  # and the trace is still of use
        trace.append(record("a", mindstorm="four"))
        await trace.durable()
    before = path.stat().st_size
    compact(path)
    assert path.stat().st_size <= before
    with sqlite3.connect(path) as file:
        assert file.execute("SELECT count(*) FROM records").fetchone() == (1,)
    file.close()


async def test_a_reply_that_is_dropped_while_another_mindstorm_takes_it_over_is_kept_there(tmp_path):
    path = tmp_path / "run.sqlite"
    async with SqliteTrace(path) as trace, SqliteTrace(path) as other:
        await trace.open(header("one"))
        trace.append(record("a", mindstorm="one"))
        trace.append(record("b", mindstorm="one"))
        trace.leave("one")
        await trace.durable()
        await trace.open(header("two"))
        found = await trace.find([record(name).key for name in "ab"])
        assert (await other.prune(["one"])).kept == 0
        for reply in found.values():
            trace.append(reply._replace(mindstorm="two", kind="reused"))
        trace.append(record("b", "reused", mindstorm="two"))  # whoever asks twice: it is there by now
        await trace.durable()
        stored = [one async for one in trace.records("two")]
        assert [one.body for one in stored] == [record("a").body] * 3
        assert await trace.verify() == []
        assert set((await reopened(trace, header("two"))).outcomes) == set(found)


async def test_a_kept_reply_that_was_changed_is_damage(tmp_path):
    path = tmp_path / "run.sqlite"
    async with SqliteTrace(path) as trace:
        await trace.open(header("one"))
        await trace.open(header("two"))
        trace.append(record("a", mindstorm="one"))
        trace.append(record("a", "reused", mindstorm="two", body=b""))
        trace.leave("one")
        await trace.durable()
        await trace.prune(["one"])
    with sqlite3.connect(path) as forger:
        forger.execute("UPDATE records SET body = x'7b7d' WHERE kind = 'replied'")
    forger.close()
    async with SqliteTrace(path) as trace:
        assert await trace.verify() == ["two"]


async def test_a_reply_that_is_reused_and_gone_is_told_and_hurts_no_other_mindstorm(tmp_path):
    path = tmp_path / "run.sqlite"
    async with SqliteTrace(path) as trace:
        for storm in ("one", "two"):
            await trace.open(header(storm))
        trace.append(record("a", mindstorm="one"))
        trace.append(record("a", "reused", mindstorm="two", body=b""))
        trace.append(record("b", mindstorm="one"))
    with sqlite3.connect(path) as vandal:
        vandal.execute(
            "DELETE FROM records WHERE kind = 'replied' AND key = ?", (bytes.fromhex(record("a").key),)
        )
    vandal.close()
    async with SqliteTrace(path) as trace:
        with pytest.raises(TraceError, match="'two' reuses is gone; see `nlsom traces verify`"):
            await trace.open(header("two"))
        assert [one.key async for one in trace.records("one")] == [record("b").key]


async def test_a_mindstorm_that_another_process_is_at_work_on_is_not_pruned(tmp_path):
    path = tmp_path / "run.sqlite"
    async with SqliteTrace(path) as trace, SqliteTrace(path) as other:
        await trace.open(header())
        with pytest.raises(TraceError, match="'storm' is at work"):
            await other.prune(["storm"])
        trace.append(record("a"))
        trace.leave("storm")
        await trace.durable()
        assert (await other.prune(["storm"])).records == 1


async def test_what_is_written_after_its_mindstorm_was_taken_out_by_hand_is_refused(tmp_path):
    path = tmp_path / "run.sqlite"
    trace = SqliteTrace(path)
    await trace.open(header())
    await trace.durable()
    with sqlite3.connect(path) as vandal:
        vandal.execute("DELETE FROM mindstorms")
    vandal.close()
    trace.append(record("a"))
    with pytest.raises(TraceError, match="pruned meanwhile"):
        await trace.durable()
    with pytest.raises(TraceError, match="pruned meanwhile"):
        trace.append(record("b"))
    with pytest.raises(TraceError):
        await trace.close()


def test_a_trace_that_was_never_closed_holds_nobody_up_in_the_next_event_loop(tmp_path):
    trace = SqliteTrace(tmp_path / "run.sqlite")

    async def hold(*, close):
        await asyncio.wait_for(trace.open(header()), 10)
        trace.append(record("k"))
        trace.leave(header().mindstorm)
        if close:
            await trace.close()

    for close in (False, False, True):
        asyncio.run(hold(close=close))
