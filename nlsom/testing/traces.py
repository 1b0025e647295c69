"""The contract of traces as tests. Subclass `TraceContract`, give it a fixture `trace`, and run pytest."""

from __future__ import annotations

import asyncio
import hashlib

from nlsom.trace.contract import Header, History, Kind, Record, Trace


def header(mindstorm: str = "storm", seed: int = 0) -> Header:
    """A header made up for a test."""
    return Header(
        mindstorm=mindstorm,
        society="panel",
        digest="d" * 64,
        members=(("ann", "expert"),),
        kind="vqa",
        task={"question": "What is it?"},
        seed=seed,
        started=1.0,
    )


def record(
    name: str, kind: Kind = "replied", *, mindstorm: str = "storm", body: bytes = b'{"parts":[]}'
) -> Record:
    """A record made up for a test; its key depends on `name` only."""
    key = "" if kind in ("closed", "verdict") else hashlib.sha256(name.encode()).hexdigest()
    return Record(mindstorm, kind, key, "ann", "answer", "answer", 1, body)


async def reopened(trace: Trace, one: Header | None = None) -> History:
    """Leaves a mindstorm and opens it again; returns what is known of it."""
    one = one or header()
    trace.leave(one.mindstorm)
    return await trace.open(one)


class TraceContract:
    """The contract of `nlsom.trace.Trace`, as tests."""

    async def test_a_new_mindstorm_has_no_history(self, trace: Trace) -> None:
        history = await trace.open(header())
        assert history.outcomes == {}
        assert history.closed == {}

    async def test_outcomes_are_found_again(self, trace: Trace) -> None:
        await trace.open(header())
        for kind in ("replied", "abstained", "cancelled"):
            trace.append(record(kind, kind, body=b'{"parts":[]}'))
        await trace.durable()
        history = await reopened(trace)
        assert {one.kind for one in history.outcomes.values()} == {"replied", "abstained", "cancelled"}
        assert history.outcomes[record("replied").key] == record("replied")

    async def test_the_first_reply_to_a_key_is_its_value(self, trace: Trace) -> None:
        await trace.open(header())
        trace.append(record("a", body=b'{"parts":[],"why":"first"}'))
        trace.append(record("a", body=b'{"parts":[],"why":"second"}'))
        await trace.durable()
        key = record("a").key
        assert (await reopened(trace)).outcomes[key].body == b'{"parts":[],"why":"first"}'
        assert (await trace.find([key]))[key].body == b'{"parts":[],"why":"first"}'

    async def test_a_reply_after_an_abstention_replaces_it(self, trace: Trace) -> None:
        await trace.open(header())
        trace.append(record("a", "abstained", body=b"late"))
        trace.append(record("a"))
        await trace.durable()
        assert (await reopened(trace)).outcomes[record("a").key].kind == "replied"

    async def test_replies_of_other_mindstorms_are_found_by_key(self, trace: Trace) -> None:
        await trace.open(header("one"))
        trace.append(record("a", mindstorm="one"))
        trace.append(record("b", "abstained", mindstorm="one", body=b"late"))
        await trace.durable()
        found = await trace.find([record("a").key, record("b").key, record("c").key])
        assert set(found) == {record("a").key}

    async def test_records_come_in_the_order_they_were_appended(self, trace: Trace) -> None:
        await trace.open(header())
        names = [f"turn {number}" for number in range(300)]
        for name in names:
            trace.append(record(name))
        trace.append(record("", "verdict", body=b"{}"))
        await trace.durable()
        stored = [one async for one in trace.records("storm")]
        assert [one.key for one in stored] == [record(name).key for name in names] + [""]

    async def test_a_reused_reply_stands_in_full(self, trace: Trace) -> None:
        await trace.open(header("one"))
        trace.append(record("a", mindstorm="one", body=b'{"parts":[],"why":"told"}'))
        await trace.open(header("two"))
        trace.append(record("a", "reused", mindstorm="two", body=b""))
        await trace.durable()
        (stored,) = [one async for one in trace.records("two")]
        assert stored.kind == "replied"
        assert stored.body == b'{"parts":[],"why":"told"}'
        assert record("a").key in (await reopened(trace, header("two"))).outcomes

    async def test_mindstorms_are_listed_in_the_order_they_were_begun(self, trace: Trace) -> None:
        for number in range(5):
            await trace.open(header(f"storm {number}", seed=number))
        await reopened(trace, header("storm 0"))
        listed = [one async for one in trace.mindstorms()]
        assert [one.mindstorm for one in listed] == [f"storm {number}" for number in range(5)]
        assert listed[3].seed == 3

    async def test_a_mindstorm_that_was_left_is_taken_up_again(self, trace: Trace) -> None:
        await trace.open(header())
        trace.append(record("a"))
        trace.leave("storm")
        await trace.open(header())
        trace.append(record("b"))
        await trace.durable()
        assert len([one async for one in trace.records("storm")]) == 2

    async def test_a_mindstorm_is_open_once_at_a_time_and_whoever_comes_second_finds_all(
        self, trace: Trace
    ) -> None:
        await trace.open(header())
        second = asyncio.create_task(trace.open(header()))
        await trace.open(header("another"))
        await asyncio.sleep(0.02)
        assert not second.done()
        trace.append(record("a"))
        trace.leave("storm")
        assert record("a").key in (await second).outcomes

    async def test_waiting_for_a_mindstorm_can_be_given_up(self, trace: Trace) -> None:
        await trace.open(header())
        second = asyncio.create_task(trace.open(header()))
        await asyncio.sleep(0.02)
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)
        trace.append(record("a"))
        assert record("a").key in (await reopened(trace)).outcomes

    async def test_any_text_and_bytes_are_kept(self, trace: Trace) -> None:
        await trace.open(header("日本 \U0001f600"))
        odd = Record(
            "日本 \U0001f600", "abstained", "ab" * 32, "Åsa\n", "phase", "label", 7, "naïve ✓".encode()
        )
        trace.append(odd)
        await trace.durable()
        assert [one async for one in trace.records("日本 \U0001f600")] == [odd]
