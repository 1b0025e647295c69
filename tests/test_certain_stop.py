"""Certain stop: the winner is that of the full count, and only turns that were never begun count as saved."""

import asyncio
import json
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nlsom import rules
from nlsom.blueprint import VerdictBy
from nlsom.budget import Cost
from nlsom.event import RoundClosed
from nlsom.message import Said, Usage
from nlsom.model.limits import Limits as Slots
from nlsom.phase import Ask, Inline, Limits, Repeat, Until
from nlsom.task import VqaTask
from nlsom.testing.agents import Failing, Saying, panel
from nlsom.trace import MemoryTrace
from nlsom.turn import Turn

SCRIPT = Path(__file__).parent.parent / "benchmarks" / "certain_stop.py"
CHOICES = ("cat", "dog", "fox")


def vote(who="everyone", *, wait="certain", **more):
    given = {"label": "ballot", "form": "answer", "wait": wait, **more}
    return Ask(ask=who, prompt=Inline(text="Vote."), **given)


def test_a_certain_stop_saves_the_calls_that_were_promised():
    ran = subprocess.run(
        [sys.executable, SCRIPT, "--json", "--runs", "1", "--voters", "129"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    told = json.loads(ran.stdout)
    saved = {(row["options"], row["agreement"], row["at_once"]): row["saved"] for row in told["table"]}
    assert told["floors_reached"]
    assert saved[2, 0.7, 1] >= 0.25
    assert saved[4, 0.7, 1] >= 0.33
    assert saved[2, 1.0, 1] >= 64 / 129
    assert saved[4, 0.9, 64] <= saved[4, 0.9, 1]


@dataclass
class Queued:
    """Answers through a model with limited concurrency, one call per `tick`; counts the calls begun."""

    slots: Slots
    says: dict[str, str]
    begun: list[str] = field(default_factory=list)

    async def speak(self, turn: Turn) -> Said:
        async with self.slots.slot():
            self.begun.append(turn.member.name)
            if self.says[turn.member.name] == "never":
                await asyncio.Event().wait()
            await asyncio.sleep(0)
        return Said.words(self.says[turn.member.name], usage=Usage(calls=1))


def queued(at_once, *says):
    agent = Queued(Slots(at_once), {f"m{at}": said for at, said in enumerate(says)})
    return agent, [agent] * len(says)


async def test_calls_in_flight_are_spent_and_those_that_wait_for_the_model_are_saved():
    agent, seats = queued(2, "never", "cat", "cat", "cat", "dog", "dog")
    async with panel(seats, (vote(wait=3),)) as society:
        verdict = await society.ask("What?", choices=CHOICES)
    assert agent.begun == ["m0", "m1", "m2", "m3"]
    assert (verdict.saved, verdict.usage.calls, verdict.usage_total.calls) == (2, 4, 4)


async def test_a_replay_tells_the_same_account():
    trace = MemoryTrace()
    agent, seats = queued(2, "never", "cat", "cat", "cat", "dog", "dog")
    async with panel(seats, (vote(wait=3),), trace=trace) as society:
        first = await society.ask("What?", choices=CHOICES)
        again = await society.ask("What?", choices=CHOICES)
    assert len(agent.begun) == 4
    assert (again.saved, again.usage.calls, again.usage_total.calls) == (2, 0, first.usage_total.calls)


@pytest.mark.parametrize("limited", ["mindstorm", "phase"])
async def test_calls_that_a_limit_of_seconds_cuts_off_are_spent_and_a_replay_says_so_too(limited):
    trace = MemoryTrace()
    agent, seats = queued(2, "never", "never", "cat")
    phase = vote(wait="all", seconds=0.05 if limited == "phase" else None)
    limits = Limits(seconds=0.05) if limited == "mindstorm" else None
    async with panel(seats, (phase,), limits=limits, trace=trace) as society:
        for now in (2, 0):
            verdict = await society.ask("What?", choices=CHOICES)
            assert [one.cause for one in verdict.abstained] == ["no answer in time"] * 3
            assert (verdict.saved, verdict.usage.calls, verdict.usage_total.calls) == (0, now, 2)
    assert agent.begun == ["m0", "m1"]


async def test_calls_cut_off_stay_spent_when_the_member_is_asked_again():
    trace = MemoryTrace()
    agent, seats = queued(2, "never", "cat")
    async with panel(seats, (vote(wait="all", seconds=0.05),), trace=trace) as society:
        await society.ask("What?", choices=CHOICES)
        society.retry_failed = True
        again = await society.ask("What?", choices=CHOICES)
        agent.says["m0"] = "dog"
        last = await society.ask("What?", choices=CHOICES)
        society.retry_failed = False
        replay = await society.ask("What?", choices=CHOICES)
    assert [(one.usage.calls, one.usage_total.calls) for one in (again, last, replay)] == [
        (1, 3),
        (1, 4),
        (0, 4),
    ]


async def test_what_waits_for_the_model_gives_back_what_it_had_reserved():
    class Priced(Queued):
        def cost(self, turn):
            return Cost(1, 10)

    agent = Priced(Slots(1), {f"m{at}": "cat" for at in range(4)})
    phases = (vote(wait=2, label="first"), vote(wait="all", label="second"))
    async with panel([agent] * 4, phases, limits=Limits(calls=7)) as society:
        verdict = await society.ask("What?", choices=CHOICES)
    # Two answered in the first phase, and of the others one had begun at most.
    assert verdict.cut_short is None
    assert verdict.usage.calls in (6, 7)


@pytest.mark.parametrize("order", ["in_turn", "random", "confidence"])
async def test_members_asked_in_turn_are_not_asked_once_it_is_certain(order):
    agent = Saying("cat")
    async with panel([agent] * 9, (vote(order=order),)) as society:
        task = await society.make_task("What?", choices=CHOICES)
        async with society.mindstorm(task) as storm:
            closed = [event async for event in storm if isinstance(event, RoundClosed)]
            verdict = await storm.verdict()
    assert (len(agent.turns), verdict.saved, verdict.answer) == (5, 4, "cat")
    assert (closed[0].asked, closed[0].replied) == (5, 5)


async def test_in_turn_so_many_replies_are_enough_and_abstentions_are_none():
    agents = [Failing(), Saying("cat"), Saying("dog"), never := Saying("fox")]
    async with panel(agents, (vote(wait=2, order="in_turn"),)) as society:
        verdict = await society.ask("What?", choices=CHOICES)
    assert (verdict.saved, never.turns) == (1, [])
    assert [one.member for one in verdict.abstained] == ["m0"]


async def test_many_voters_are_not_counted_anew_with_each_vote():
    looks = []

    class Counted(rules.Plurality):
        def settled(self, votes, outstanding, alternatives):
            looks.append(len(votes))
            return super().settled(votes, outstanding, alternatives)

    decision = VerdictBy(Counted(), "plurality")
    async with panel([Saying("cat")] * 640, (vote(order="in_turn"),), verdict=decision) as society:
        verdict = await society.ask("What?", choices=CHOICES)
    assert (verdict.answer, verdict.saved) == ("cat", 315)
    assert len(looks) == 65


async def test_a_vote_is_read_once_however_often_it_is_looked_whether_the_rest_still_matter(monkeypatch):
    read, canonical = [], VqaTask.canonical
    monkeypatch.setattr(
        VqaTask, "canonical", lambda self, answer: read.append(answer) or canonical(self, answer)
    )
    agents = [Saying(CHOICES[at % 3]) for at in range(300)]
    async with panel(agents, (vote(order="in_turn"),)) as society:
        await society.ask(VqaTask(question="What?", choices=CHOICES))
    assert len(read) <= 2 * 300, "once for all looks, and once for the verdict"


async def test_long_talks_until_nobody_changes_read_only_the_last_answers(monkeypatch):
    read, canonical = [], VqaTask.canonical
    monkeypatch.setattr(
        VqaTask, "canonical", lambda self, answer: read.append(answer) or canonical(self, answer)
    )
    wavering = Saying(lambda turn: CHOICES[turn.round % 2])
    until = Until(unchanged=True, agreement=1.0, over="ballot")
    talk = Repeat(repeat=50, until=until, phases=(vote(wait="all"),))
    async with panel([wavering, Saying("fox")], (talk,)) as society:
        verdict = await society.ask(VqaTask(question="What?", choices=CHOICES))
    assert verdict.rounds == 50
    assert len(read) <= 50 * 2 * 3 + 2, "each member's last answer for agreement, the last two for change"


async def test_a_quorum_is_waited_for_even_when_it_is_certain():
    agent = Saying("cat")
    async with panel([agent] * 9, (vote(order="in_turn", quorum=8),)) as society:
        verdict = await society.ask("What?", choices=CHOICES)
    assert (len(agent.turns), verdict.saved, verdict.cut_short) == (8, 1, None)


async def test_a_run_taken_up_again_asks_nobody_whom_a_stop_in_turn_had_spared():
    trace = MemoryTrace()
    flaky = Failing(times=1, then="dog")
    agents = [flaky, *[Saying("cat") for _ in range(6)]]
    for retry in (False, True):
        async with panel(agents, (vote(order="in_turn"),), trace=trace) as society:
            society.retry_failed = retry
            verdict = await society.ask("What?", choices=CHOICES)
            assert (verdict.answer, verdict.saved, verdict.tally["cat"]) == ("cat", 2, 4.0)
    assert flaky.asked == 1
    records = [one async for header in trace.mindstorms() async for one in trace.records(header.mindstorm)]
    (closed,) = [json.loads(one.body) for one in records if one.kind == "closed"]
    assert closed == {"reason": "certain", "counted": ["m1", "m2", "m3", "m4"], "asked": 5}


async def test_votes_of_an_earlier_phase_are_counted_by_the_stop_too():
    early = [Saying("dog") for _ in range(4)]
    late = [Saying("cat") for _ in range(5)]
    phases = (vote("early", wait="all"), vote("late", order="in_turn"))
    async with panel([*early, *late], phases, roles=["early"] * 4 + ["late"] * 5) as society:
        verdict = await society.ask("What?", choices=CHOICES)
    assert (verdict.answer, verdict.saved) == ("cat", 0)


async def test_who_has_no_vote_settles_nothing():
    agents = [*[Saying("dog") for _ in range(4)], *[Saying("cat") for _ in range(2)]]
    by = VerdictBy(rules.Plurality(), "plurality", of="voter")
    async with panel(
        agents, (vote(order="in_turn"),), verdict=by, roles=["guest"] * 4 + ["voter"] * 2
    ) as society:
        assert (await society.ask("What?", choices=CHOICES)).answer == "cat"


RULES = {
    "plurality": rules.Plurality(),
    "competence": rules.Competence(),
    "confidence": rules.Confidence(),
    "borda": rules.Borda(),
    "approval": rules.Approval(),
    "copeland": rules.Copeland(),
    "instant_runoff": rules.InstantRunoff(),
}


@pytest.mark.parametrize("name", RULES)
@settings(max_examples=25, deadline=None)
@given(
    says=st.lists(st.sampled_from([*CHOICES, "I do not know"]), min_size=2, max_size=9),
    at_once=st.integers(1, 4),
    in_turn=st.booleans(),
    is_open=st.booleans(),
)
def test_the_winners_are_always_those_of_the_full_count(name, says, at_once, in_turn, is_open):
    async def winners(wait, order):
        _, seats = queued(at_once, *says)
        by = VerdictBy(RULES[name], name)
        async with panel(seats, (vote(wait=wait, order=order),), verdict=by) as society:
            verdict = await society.ask("What?", choices=() if is_open else CHOICES)
        return verdict.answer, set(verdict.tied)

    full = asyncio.run(winners("all", "together"))
    assert asyncio.run(winners("certain", "in_turn" if in_turn else "together")) == full
