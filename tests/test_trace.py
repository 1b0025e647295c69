"""Traces fulfil the contract; those in SQLite survive crashes and damage."""

from __future__ import annotations

import json
import sqlite3

import pytest

from nlsom.errors import TraceError
from nlsom.testing.traces import TraceContract, header, record
from nlsom.trace import MemoryTrace, SqliteTrace
from nlsom.trace.contract import lines


class TestMemoryTrace(TraceContract):
    @pytest.fixture
    def trace(self):
        return MemoryTrace()


class TestSqliteTrace(TraceContract):
    @pytest.fixture
    async def trace(self, tmp_path):
        async with SqliteTrace(tmp_path / "run.sqlite") as trace:
            yield trace


async def test_what_was_durable_is_there_for_the_next_process(tmp_path):
    path = tmp_path / "run.sqlite"
    async with SqliteTrace(path) as trace:
        await trace.open(header())
        trace.append(record("a"))
        await trace.durable()
    async with SqliteTrace(path) as trace:
        assert record("a").key in (await trace.open(header())).outcomes


async def test_it_is_read_by_another_while_it_is_written(tmp_path):
    path = tmp_path / "run.sqlite"
    async with SqliteTrace(path) as trace:
        await trace.open(header())
        trace.append(record("a"))
        await trace.durable()
        async with SqliteTrace(path, read_only=True) as reader:
            assert len([one async for one in reader.records("storm")]) == 1
            trace.append(record("b"))
            await trace.durable()
            assert len([one async for one in reader.records("storm")]) == 2


async def test_a_reader_of_no_file_is_told_so(tmp_path):
    with pytest.raises(TraceError, match="there is no such trace"):
        async with SqliteTrace(tmp_path / "none.sqlite", read_only=True):
            pass
    assert not (tmp_path / "none.sqlite").exists()


@pytest.mark.parametrize(
    "content", [b"hello, I am a text file, not a database at all", b"SQLite format 3\x00" + b"x" * 200]
)
async def test_a_file_that_is_no_trace_is_refused_and_left_as_it_is(tmp_path, content):
    path = tmp_path / "run.sqlite"
    path.write_bytes(content)
    with pytest.raises(TraceError, match="run.sqlite"):
        async with SqliteTrace(path) as trace:
            await trace.open(header())
    assert path.read_bytes() == content


async def test_another_programs_database_is_refused(tmp_path):
    path = tmp_path / "other.sqlite"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE things (id INTEGER)")
    other.close()
    with pytest.raises(TraceError, match="another program's database"):
        async with SqliteTrace(path):
            pass


async def test_a_schema_of_another_version_is_named(tmp_path):
    path = tmp_path / "run.sqlite"
    async with SqliteTrace(path) as trace:
        await trace.open(header())
    with sqlite3.connect(path) as later:
        later.execute("PRAGMA user_version = 999")
    later.close()
    with pytest.raises(TraceError, match="schema 999"):
        async with SqliteTrace(path):
            pass


async def test_a_folder_that_is_not_there_is_a_clear_error(tmp_path):
    with pytest.raises(TraceError, match="cannot be opened"):
        async with SqliteTrace(tmp_path / "no" / "such" / "run.sqlite"):
            pass


async def test_a_changed_record_breaks_the_chain_of_its_mindstorm_only(tmp_path):
    path = tmp_path / "run.sqlite"
    async with SqliteTrace(path) as trace:
        for storm in ("one", "two"):
            await trace.open(header(storm))
            for name in "abc":
                trace.append(record(storm + name, mindstorm=storm))
        await trace.durable()
        assert await trace.verify() == []
    with sqlite3.connect(path) as forger:
        forger.execute("UPDATE records SET body = x'7b7d' WHERE seq = 5")
    forger.close()
    async with SqliteTrace(path) as trace:
        assert await trace.verify() == ["two"]


async def test_the_chain_goes_on_after_a_restart(tmp_path):
    path = tmp_path / "run.sqlite"
    for name in "abc":
        async with SqliteTrace(path) as trace:
            await trace.open(header())
            trace.append(record(name))
    async with SqliteTrace(path) as trace:
        assert await trace.verify() == []
        assert len([one async for one in trace.records("storm")]) == 3


async def test_a_write_that_fails_is_told_to_whoever_waits_and_keeps_what_was_durable(tmp_path):
    path = tmp_path / "run.sqlite"
    async with SqliteTrace(path) as trace:
        await trace.open(header())
        trace.append(record("a"))
        await trace.durable()
    broken = SqliteTrace(path)
    await broken.open(header())
    with sqlite3.connect(path) as vandal:
        vandal.execute("DROP TABLE records")
        vandal.commit()
    vandal.close()
    broken.append(record("b"))
    with pytest.raises(TraceError, match="run.sqlite"):
        await broken.durable()
    with pytest.raises(TraceError):
        await broken.durable()
    with pytest.raises(TraceError):
        await broken.close()


async def test_a_mindstorm_is_exported_as_json_lines(tmp_path):
    trace = MemoryTrace()
    await trace.open(header())
    trace.append(record("a"))
    trace.append(record("b", "abstained", body="zu spät".encode()))
    told = [json.loads(line) for line in lines(header(), [one async for one in trace.records("storm")])]
    assert told[0]["society"] == "panel"
    assert told[1]["body"] == {"parts": []}
    assert told[2]["body"] == "zu spät"
