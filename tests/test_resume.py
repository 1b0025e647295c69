"""Resume, replay and reuse: nothing that was answered is asked again, and the verdict is the same."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import textwrap
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pytest

from nlsom.budget import Cost
from nlsom.errors import TraceError
from nlsom.message import Said, Usage
from nlsom.phase import Ask, Inline, Limits, Repeat, Until
from nlsom.testing.agents import Failing, Hanging, Saying, panel
from nlsom.trace import MemoryTrace, SqliteTrace
from nlsom.trace.contract import Record, lines
from nlsom.turn import Turn

CHOICES = ("cat", "dog")


def ask(who="everyone", label="ballot", **more) -> Ask:
    return Ask(ask=who, prompt=Inline(text="Say it, {{ member.name }}."), label=label, **more)


@dataclass
class Counting:
    """Answers by its turn alone; counts, over all runs, how often it was asked under each key."""

    asked: Counter[str]
    fails: frozenset[str] = frozenset()
    slow: frozenset[str] = frozenset()
    always: str = ""
    identity: str = "counting/1"
    names: list[str] = field(default_factory=list)

    async def speak(self, turn: Turn) -> Said | None:
        self.asked[turn.key] += 1
        self.names.append(turn.member.name)
        if turn.member.name in self.slow:
            await asyncio.Event().wait()
        await asyncio.sleep((turn.seed % 3) / 1000)
        if turn.member.name in self.fails:
            raise RuntimeError("broken")
        answer = self.always or CHOICES[(turn.seed + len(turn.heard)) % 2]
        return Said.words(answer, confidence=(turn.seed % 10) / 10, usage=Usage(calls=1, prompt_tokens=7))


@dataclass
class Dear(Counting):
    def cost(self, turn: Turn) -> Cost:
        return Cost(1, 20)


class Killed(TraceError):
    """The process was killed: nothing after this happened."""


class Mortal(MemoryTrace):
    """A trace in memory whose process dies after some number of steps; anything not yet durable is lost."""

    def __init__(self, steps: int) -> None:
        super().__init__()
        self.steps = steps
        self._pending: list[Record] = []

    def revive(self, steps: int) -> None:
        self.steps = steps
        self._pending.clear()

    def _step(self) -> None:
        self.steps -= 1
        if self.steps < 0:
            raise Killed("killed")

    def append(self, record: Record) -> None:
        self._step()
        self._pending.append(record)

    async def durable(self) -> None:
        self._step()
        for record in self._pending:
            super().append(record)
        self._pending.clear()


class Written(Mortal):
    """Like `Mortal`, but everything appended survives, as with a fast writer."""

    def append(self, record: Record) -> None:
        self._step()
        MemoryTrace.append(self, record)


def society(trace, asked, phases, limits=None, members=5, agent=Counting, **what):
    return panel([agent(asked, **what)] * members, phases, trace=trace, limits=limits)


def plain(verdict):
    return verdict.model_dump(exclude={"usage", "usage_total"})


TALK = Repeat(repeat=2, phases=(ask(label="answer", form="answer"), ask(label="turns", order="in_turn")))
PROGRAMS = {
    "talk": {"phases": (TALK, ask(form="answer"))},
    "until": {
        "phases": (
            Repeat(repeat=4, phases=(ask(form="answer"),), until=Until(over="ballot", agreement=0.8)),
            ask(label="ballot", order="random", form="answer"),
        )
    },
    "failing": {"phases": (TALK, ask(form="answer")), "fails": frozenset({"m1"})},
    "quorum": {
        "phases": (ask(label="answer"), ask(form="answer")),
        "fails": frozenset({"m1", "m2"}),
        "limits": Limits(quorum=4),
    },
    "calls": {"phases": (TALK, ask(form="answer")), "agent": Dear, "limits": Limits(calls=13)},
    "tokens": {"phases": (TALK, ask(form="answer")), "agent": Dear, "limits": Limits(tokens=101)},
}


@pytest.mark.parametrize("kind", [Mortal, Written])
@pytest.mark.parametrize("name", PROGRAMS)
async def test_killed_at_any_point_it_ends_the_same_and_asks_for_no_stored_reply_again(kind, name):
    program = PROGRAMS[name]
    whole = MemoryTrace()
    async with society(whole, Counter(), **program) as one:
        expected = await one.ask("What?", choices=CHOICES, seed=3)
    outcomes = [record async for record in whole.records(expected.mindstorm)]
    for steps in range(2 * len(outcomes) + 10):
        trace, asked = kind(steps), Counter()
        stored: set[str] = set()
        async with society(trace, asked, **program) as one:
            try:
                await one.ask("What?", choices=CHOICES, seed=3)
            except Killed:
                stored = {r.key async for r in trace.records(expected.mindstorm) if r.kind == "replied"}
            killed = trace.steps < 0
        before = asked.copy()
        trace.revive(10**9)
        async with society(trace, asked, **program) as one:
            verdict = await one.ask("What?", choices=CHOICES, seed=3)
        assert plain(verdict) == plain(expected), steps
        assert all(asked[key] == before[key] for key in stored), steps
        assert (verdict.usage_total.calls, verdict.usage_total.tokens) == (
            expected.usage_total.calls,
            expected.usage_total.tokens,
        )
        if not killed:
            break
    else:
        raise AssertionError("it was killed at every step")


async def twice(phases, *, limits=None, retry=False, again=None, **what):
    """Runs a program, then once more over the same trace with members that all answer."""
    trace, asked = MemoryTrace(), Counter()
    async with society(trace, asked, phases, limits, **what) as one:
        first = await one.ask("What?", choices=CHOICES)
    made = asked.copy()
    what.pop("fails", None), what.pop("slow", None)
    next_society = society(trace, asked, phases, limits, **{**what, **(again or {})})
    next_society.retry_failed = retry
    async with next_society as one:
        second = await one.ask("What?", choices=CHOICES)
    return first, second, asked - made, trace


@pytest.mark.parametrize(
    "phase",
    [
        ask(form="answer", wait="certain"),
        ask(form="answer", wait=2),
        ask(form="answer", seconds=0.1),
        ask(form="answer", seconds=0.05, order="in_turn"),
    ],
)
async def test_a_phase_that_was_closed_early_stays_as_it_was(phase):
    phases = (phase, ask("m0", label="more", form="answer")) if phase.wait != "certain" else (phase,)
    first, second, asked_again, _ = await twice(phases, slow=frozenset({"m1"}), always="cat")
    assert plain(first) == plain(second)
    assert not asked_again
    assert second.usage.calls == 0


async def test_members_who_failed_before_a_phase_was_closed_are_told_again():
    first, second, _, _ = await twice(
        (ask(form="answer", seconds=0.1),), slow=frozenset({"m1"}), fails=frozenset({"m2"})
    )
    assert [a.member for a in first.abstained] == ["m1", "m2"]
    assert second.abstained == first.abstained


async def test_a_limit_of_seconds_that_was_met_stays_met():
    phases = (ask(label="answer", form="answer"), ask(form="answer"), ask(label="never"))
    first, second, asked_again, _ = await twice(phases, slow=frozenset({"m1"}), limits=Limits(seconds=0.1))
    assert first.cut_short == "seconds"
    assert plain(first) == plain(second)
    assert not asked_again


async def test_enough_stored_replies_close_a_phase_before_anybody_is_asked():
    class Forgetful(MemoryTrace):
        closing = True

        def append(self, record):
            if record.kind in ("cancelled", "closed", "verdict") and not self.closing:
                raise Killed("killed")
            super().append(record)

    trace, asked = Forgetful(), Counter()
    trace.closing = False
    phases = (ask(form="answer", wait=2),)
    async with society(trace, asked, phases, slow=frozenset({"m3", "m4"})) as one:
        with pytest.raises(Killed):
            await one.ask("What?", choices=CHOICES)
    trace.closing = True
    before = asked.copy()
    async with society(trace, asked, phases) as one:
        verdict = await one.ask("What?", choices=CHOICES)
        assert verdict.usage.calls == 0
        assert verdict.saved == 3
        assert asked == before
        again = await one.ask("What?", choices=CHOICES)
    assert plain(again) == plain(verdict)


class TestRetryFailed:
    async def test_failures_stay_unless_they_are_to_be_tried_again(self):
        phases = (ask(form="answer"),)
        first, second, asked_again, _ = await twice(phases, fails=frozenset({"m1"}))
        assert plain(first) == plain(second)
        assert not asked_again

    async def test_members_that_failed_are_asked_again_and_only_they(self):
        phases = (ask(form="answer"),)
        first, second, asked_again, trace = await twice(phases, fails=frozenset({"m1"}), retry=True)
        assert [a.member for a in first.abstained] == ["m1"]
        assert second.abstained == ()
        assert asked_again.total() == 1
        async with society(trace, Counter(), phases) as one:
            third = await one.ask("What?", choices=CHOICES)
        assert plain(third) == plain(second), "without retrying, the reply stands"

    @pytest.mark.parametrize("phase", [ask(form="answer", seconds=0.1), ask(form="answer")])
    async def test_who_was_late_is_asked_again_and_then_counts(self, phase):
        first, second, asked_again, trace = await twice(
            (phase,), limits=Limits(seconds=0.1), slow=frozenset({"m1"}), retry=True
        )
        assert [a.member for a in first.abstained] == ["m1"]
        assert second.abstained == ()
        assert sum(second.tally.values()) == 5
        assert asked_again.total() == 1
        async with society(trace, Counter(), (phase,), Limits(seconds=0.1)) as one:
            assert plain(await one.ask("What?", choices=CHOICES)) == plain(second)

    async def test_a_certain_phase_is_not_opened_again(self):
        phases = (ask(form="answer", wait=2),)
        first, second, asked_again, _ = await twice(phases, slow=frozenset({"m1"}), retry=True)
        assert plain(first) == plain(second)
        assert not asked_again


class TestDamage:
    @pytest.mark.parametrize("kind", ["closed", "replied", "abstained", "cancelled", "verdict"])
    @pytest.mark.parametrize("body", [b"", b"null", b"{}", b"\xff", b'{"reason":5}', b"[" * 100_000])
    async def test_a_record_that_somebody_else_wrote_is_told_of_or_not_needed(self, kind, body):
        trace = MemoryTrace()
        agents = [Saying("cat"), Failing(), Saying("cat"), Hanging()]
        phases = (Ask(ask="everyone", prompt=Inline(text="Vote."), label="ballot", form="answer", wait=2),)
        async with panel(agents, phases, trace=trace) as one:
            storm = (await one.ask("What?", choices=CHOICES)).mindstorm
            stored = trace._records[storm]
            at = next(n for n, record in enumerate(stored) if record.kind == kind)
            stored[at] = stored[at]._replace(body=body)
            (again,) = await asyncio.gather(one.ask("What?", choices=CHOICES), return_exceptions=True)
            if isinstance(again, BaseException):
                assert isinstance(again, TraceError)
                assert "cannot be read" in str(again)
            else:
                assert again.answer == "cat"
            told = [record async for record in trace.records(storm)]
            if body not in (b"", b"null", b"{}", b'{"reason":5}') and kind not in ("abstained", "cancelled"):
                with pytest.raises(TraceError, match="cannot be read"):
                    list(lines(trace._headers[storm], told))


class TestReuse:
    async def test_a_society_without_a_member_replays_the_others_where_they_heard_the_same(self):
        trace, asked = MemoryTrace(), Counter()
        phases = (ask(label="answer", form="answer"), ask(form="answer"))
        async with society(trace, asked, phases) as one:
            await one.ask("What?", choices=CHOICES)
        before = asked.copy()
        async with society(trace, asked, phases, members=4) as one:
            verdict = await one.ask("What?", choices=CHOICES)
        fresh = asked - before
        assert fresh.total() == 4, "the first phase was answered; in the second, less was heard"
        assert verdict.usage.calls == 4
        assert verdict.usage_total.calls == 8
        kinds = Counter([record.kind async for record in trace.records(verdict.mindstorm)])
        assert kinds == {"replied": 8, "verdict": 1}
        stored = Counter(record.kind for record in trace._records[verdict.mindstorm])
        assert stored["reused"] == 4

    async def test_what_was_reused_is_not_asked_for_when_it_is_taken_up_again(self):
        trace, asked = MemoryTrace(), Counter()
        phases = (ask(form="answer"),)
        for members in (5, 4, 4):
            async with society(trace, asked, phases, members=members) as one:
                verdict = await one.ask("What?", choices=CHOICES)
        assert asked.total() == 5
        assert verdict.usage.calls == 0
        assert verdict.usage_total.calls == 4

    async def test_another_seed_is_another_draw(self):
        trace, asked = MemoryTrace(), Counter()
        async with society(trace, asked, (ask(form="answer"),)) as one:
            await one.ask("What?", seed=0)
            await one.ask("What?", seed=1)
        assert asked.total() == 10

    async def test_a_failure_is_not_reused_by_another_mindstorm(self):
        trace, asked = MemoryTrace(), Counter()
        phases = (ask(form="answer"),)
        async with society(trace, asked, phases, fails=frozenset({"m1"})) as one:
            await one.ask("What?")
        async with society(trace, asked, phases, members=2) as one:
            assert (await one.ask("What?")).abstained == ()

    async def test_a_replay_tells_the_trace_nothing(self):
        trace = MemoryTrace()
        async with society(trace, Counter(), (ask(form="answer"),)) as one:
            first = await one.ask("What?")
            length = len(trace._records[first.mindstorm])
            for _ in range(3):
                await one.ask("What?")
        assert len(trace._records[first.mindstorm]) == length


CHILD = """
    import asyncio, sys
    from nlsom.message import Said, Usage
    from nlsom.phase import Ask, Inline, Repeat
    from nlsom.testing.agents import panel
    from nlsom.trace import SqliteTrace

    class Told:
        identity = "told/1"
        async def speak(self, turn):
            print(turn.key, flush=True)
            await asyncio.sleep((turn.seed % 5) / 2000)
            return Said.words(("cat", "dog")[(turn.seed + len(turn.heard)) % 2], usage=Usage(calls=1))

    async def main():
        def ask(label, **more):
            return Ask(ask="everyone", prompt=Inline(text="Say it."), label=label, form="answer", **more)
        phases = (Repeat(repeat=4, phases=(ask("answer"), ask("turns", order="in_turn"))), ask("ballot"))
        async with SqliteTrace(sys.argv[1]) as trace, panel([Told()] * 6, phases, trace=trace) as society:
            verdict = await society.ask("What?", choices=["cat", "dog"])
        print("=", verdict.model_dump_json(exclude={"usage", "usage_total"}), flush=True)

    asyncio.run(main())
"""
KILLS = int(os.environ.get("NLSOM_SOAK_KILLS", "4"))


def _child(path, after: int | None) -> tuple[list[str], dict | None]:
    """Runs the child, killed after it was asked so many times; returns the keys asked for and the verdict."""
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(CHILD), str(path)], stdout=subprocess.PIPE, text=True
    )
    asked: list[str] = []
    verdict = None
    with child:
        for line in child.stdout:
            if line.startswith("="):
                verdict = json.loads(line[1:])
                continue
            asked.append(line.strip())
            if len(asked) == after:
                child.send_signal(signal.SIGKILL)  # And read on: it goes on asking until the signal arrives.
    assert after is not None or child.returncode == 0
    return asked, verdict


def test_a_killed_process_costs_at_most_the_calls_in_flight(tmp_path):
    asked, expected = _child(tmp_path / "whole.sqlite", None)
    total = len(asked)
    path = tmp_path / "killed.sqlite"
    draw = random.Random(7)
    seen: Counter[str] = Counter()
    for _ in range(KILLS):
        stored = asyncio.run(_stored(path))
        asked, verdict = _child(path, draw.randint(1, max(1, total // KILLS)))
        assert not set(asked) & stored, "a stored reply was asked for again"
        seen.update(asked)
        if verdict is not None:
            break
    asked, verdict = _child(path, None)
    seen.update(asked)
    assert verdict == expected
    assert len(seen) == total, "each turn of the whole run was asked, and no other"
    assert asyncio.run(_damaged(path)) == []


def test_two_processes_that_resume_the_same_mindstorm_ask_for_each_turn_once(tmp_path):
    asked, expected = _child(tmp_path / "whole.sqlite", None)
    path = tmp_path / "shared.sqlite"
    _child(path, 5)
    stored = asyncio.run(_stored(path))
    with ThreadPoolExecutor() as pool:
        told = list(pool.map(_child, [path, path], [None, None]))
    assert [verdict for _, verdict in told] == [expected, expected]
    now = Counter(key for keys, _ in told for key in keys)
    assert set(now.values()) == {1}
    assert set(now) == set(asked) - stored
    assert asyncio.run(_damaged(path)) == []


async def test_two_societies_over_one_trace_ask_for_each_turn_of_the_same_mindstorm_once():
    trace, asked = MemoryTrace(), Counter()
    phases = (TALK, ask(form="answer"))
    async with society(trace, asked, phases) as one, society(trace, asked, phases) as two:
        first, second = await asyncio.gather(*(each.ask("What?", choices=CHOICES) for each in (one, two)))
    assert plain(first) == plain(second)
    assert set(asked.values()) == {1}


async def _stored(path) -> set[str]:
    if not path.exists():
        return set()
    async with SqliteTrace(path) as trace:
        return {
            record.key
            async for header in trace.mindstorms()
            async for record in trace.records(header.mindstorm)
            if record.kind == "replied"
        }


async def _damaged(path) -> list[str]:
    async with SqliteTrace(path) as trace:
        return await trace.verify()
