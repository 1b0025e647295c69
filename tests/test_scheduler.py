"""The scheduler: supersteps, waiting, limits, failures, events; the same transcript whatever the timing."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nlsom.blueprint import VerdictBy
from nlsom.budget import Budget, Cost, spending
from nlsom.bus import MemoryBus
from nlsom.errors import BusClosed, MemberFailed, NlsomError, NoVerdict, TraceError
from nlsom.event import Abstained, Asked, Decided, RoundClosed, Spoke, Started, Stopped
from nlsom.form import TextForm
from nlsom.message import Choice, Data, Message, Said, Text, Usage
from nlsom.mindstorm import Mindstorm
from nlsom.phase import Ask, Hears, Inline, Limits, Repeat, Until
from nlsom.rules import Decree, Plurality
from nlsom.task import VqaTask
from nlsom.testing.agents import Failing, Hanging, Saying, panel
from nlsom.testing.bus import until
from nlsom.trace import MemoryTrace, SqliteTrace
from nlsom.turn import Turn
from nlsom.verdict import Count, Verdict

SAY = Inline(text="Say it.")
CHOICES = ("cat", "dog")


def ask(who: str = "everyone", label: str = "ballot", **more) -> Ask:
    return Ask(ask=who, prompt=SAY, label=label, **more)


async def storm(society, question="What is it?", *, choices=(), seed=0):
    """Holds a mindstorm; returns verdict and messages, in the order they were said, and all events."""
    async with society:
        task = await society.make_task(question, choices=choices)
        async with society.mindstorm(task, seed=seed) as running:
            events = [event async for event in running]
            return await running.verdict(), events


def spoken(events) -> list[Message]:
    return [event.message for event in events if isinstance(event, Spoke)]


@dataclass
class Recording:
    """Says what it hears, after a delay; keeps what it heard."""

    name: str
    delays: list[float]
    heard: list[tuple[str, ...]] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)
    identity: str = "recording/1"

    async def speak(self, turn: Turn) -> Said:
        await asyncio.sleep(self.delays[len(self.turns) % len(self.delays)])
        self.turns.append(turn)
        self.heard.append(tuple(message.digest for message in turn.heard))
        return Said.words(f"{self.name} {turn.round} {len(turn.heard)}", answer=CHOICES[turn.seed % 2])


TALK = (
    ask(label="answer"),
    Repeat(repeat=2, phases=(ask(label="talk"), ask(label="turns", order="in_turn"))),
    ask(label="draw", order="random"),
    ask(form="answer"),
)


class TestTiming:
    @given(st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=4), min_size=4, max_size=4))
    @settings(max_examples=15, deadline=None)
    def test_the_transcript_is_the_same_whatever_the_timing(self, delays):
        async def run(delays):
            agents = [Recording(f"r{n}", [one / 1000 for one in own]) for n, own in enumerate(delays)]
            async with panel(agents, TALK) as society:
                verdict = await society.ask("What?", choices=CHOICES, seed=7)
            keys = [[turn.key for turn in agent.turns] for agent in agents]
            return keys, [agent.heard for agent in agents], _plain(verdict)

        quick = asyncio.run(run([[0]] * 4))
        assert asyncio.run(run(delays)) == quick

    async def test_messages_are_appended_in_declaration_order(self):
        agents = [Saying("a", seconds=0.02), Saying("b", seconds=0.01), Saying("c")]
        last = Saying("d")
        _, events = await storm(panel([*agents, last], (ask(label="first"), ask("m3"))))
        arrived = [m.sender for m in spoken(events) if m.label == "first"]
        assert arrived[0] != "m0", "events tell the order of arrival"
        assert [m.sender for m in last.turns[-1].heard] == ["m0", "m1", "m2", "m3"]

    async def test_all_asked_together_hear_the_same_object(self):
        agents = [Saying("a") for _ in range(4)]
        await storm(panel(agents, (ask(label="first"), ask())))
        assert len({id(agent.turns[1].heard) for agent in agents}) == 1


def _plain(verdict):
    return verdict.model_dump(exclude={"usage", "usage_total", "mindstorm"})


class TestOrders:
    async def test_in_turn_each_hears_who_spoke_before(self):
        agents = [Saying(str(n)) for n in range(3)]
        await storm(panel(agents, (ask(order="in_turn"),)))
        assert [len(agent.turns[0].heard) for agent in agents] == [0, 1, 2]

    async def test_a_random_order_comes_from_the_seed(self):
        async def order(seed):
            said: list[str] = []
            agents = [Saying(lambda turn: said.append(turn.member.name) or "x") for _ in range(6)]
            await storm(panel(agents, (ask(order="random"),)), seed=seed)
            return said

        assert await order(1) == await order(1)
        assert len({tuple(await order(seed)) for seed in range(8)}) > 1

    async def test_a_random_order_without_a_member_is_the_same_order_for_the_others(self):
        async def order(names):
            said: list[str] = []
            agents = [Saying(lambda turn: said.append(turn.member.name) or "x") for _ in range(6)]
            society = panel(agents, (ask(order="random"),))
            society.seats = [seat for seat in society.seats if seat.member.name in names]
            society.__post_init__()
            await storm(society, seed=3)
            return said

        everyone = await order({f"m{n}" for n in range(6)})
        without = await order({f"m{n}" for n in range(6)} - {"m2"})
        assert without == [name for name in everyone if name != "m2"]

    async def test_the_surest_of_the_last_round_speaks_first(self):
        sure = {"m0": 0.2, "m1": 0.9, "m2": None}
        said: list[str] = []

        def say(turn):
            if turn.phase == "turns":
                said.append(turn.member.name)
            return Said.words("x", confidence=sure[turn.member.name])

        await storm(panel([Saying(say) for _ in range(3)], (ask(), ask(label="turns", order="confidence"))))
        assert said == ["m1", "m0", "m2"]


class TestWaiting:
    async def test_enough_replies_close_the_phase_and_cancel_the_rest(self):
        slow = Hanging()
        verdict, events = await storm(panel([Saying("yes"), slow, Saying("yes")], (ask(wait=2),)))
        assert verdict.answer == "yes"
        assert (verdict.saved, slow.cancelled) == (0, 1)  # it was in flight
        assert verdict.abstained == ()
        assert [e.replied for e in events if isinstance(e, RoundClosed)] == [2]

    async def test_a_certain_phase_ends_when_the_rest_cannot_change_the_winner(self):
        slow = [Hanging(), Hanging()]
        agents = [Saying("cat"), Saying("cat"), slow[0], Saying("cat"), slow[1]]
        verdict, _ = await storm(panel(agents, (ask(form="answer", wait="certain"),)), choices=CHOICES)
        assert verdict.answer == "cat"
        assert verdict.saved == 2 - slow[0].asked - slow[1].asked
        assert slow[0].cancelled == 1
        assert slow[1].cancelled == slow[1].asked

    async def test_a_certain_phase_waits_while_the_rest_can_still_tie(self):
        late = Saying("dog", seconds=0.02)
        agents = [Saying("cat"), late]
        verdict, _ = await storm(panel(agents, (ask(form="answer", wait="certain"),)), choices=CHOICES)
        assert set(verdict.tied) == {"cat", "dog"}

    async def test_abstentions_count_for_a_certain_stop(self):
        slow = Hanging()
        agents = [Saying("cat"), Saying("cat"), Failing(), slow]
        verdict, _ = await storm(panel(agents, (ask(form="answer", wait="certain"),)), choices=CHOICES)
        assert verdict.answer == "cat"
        assert slow.cancelled == slow.asked
        assert verdict.saved == 1 - slow.asked

    async def test_whoever_is_late_in_a_phase_abstains(self):
        slow = Hanging()
        verdict, _ = await storm(panel([Saying("yes"), slow], (ask(seconds=0.05),)))
        assert verdict.answer == "yes"
        assert verdict.cut_short is None
        assert [(a.member, a.cause) for a in verdict.abstained] == [("m1", "no answer in time")]
        assert slow.cancelled == 1

    async def test_an_answer_after_everybody_elses_is_no_reason_to_wait_for_the_clock(self):
        verdict, _ = await storm(panel([Saying("yes"), Saying("yes")], (ask(seconds=3600),)))
        assert verdict.tally == {"yes": 2.0}


class TestLimits:
    async def test_seconds_cut_short_and_what_was_said_last_counts(self):
        def talk(turn):
            return Said.words("cat", answer="cat") if turn.phase == "answer" else None

        class Slow(Saying):
            async def speak(self, turn):
                if turn.phase == "ballot":
                    await asyncio.Event().wait()
                return await super().speak(turn)

        phases = (ask(label="answer"), ask(form="answer"), ask(label="never"))
        # Long enough for a busy machine to come to the phase in which nobody answers.
        society = panel([Slow(talk), Slow(talk)], phases, limits=Limits(seconds=1))
        society.verdict = VerdictBy(Plurality(), "plurality", over="ballot")
        society.__post_init__()
        verdict, events = await storm(society)
        assert verdict.answer == "cat"
        assert verdict.cut_short == "seconds"
        assert {a.cause for a in verdict.abstained} == {"no answer in time"}
        assert not [e for e in events if isinstance(e, Asked) and e.phase == "never"]

    async def test_when_the_time_is_over_before_a_phase_nobody_is_asked_in_it(self):
        class Blocking(Saying):
            async def speak(self, turn):
                import time

                time.sleep(0.06)
                return await super().speak(turn)

        agent = Blocking("yes")
        society = panel([agent], (ask(label="first"), ask()), limits=Limits(seconds=0.05))
        verdict, _ = await storm(society)
        assert verdict.cut_short == "seconds"
        assert [turn.phase for turn in agent.turns] == ["first"]

    async def test_calls_are_reserved_in_declaration_order_and_a_refusal_is_recorded(self):
        agents = [Priced("yes", cost_=Cost(calls=1), usage=Usage(calls=1)) for _ in range(5)]
        trace = MemoryTrace()
        society = panel(agents, limits=Limits(calls=3), trace=trace)
        verdict, _ = await storm(society)
        assert verdict.answer == "yes"
        assert verdict.cut_short == "calls"
        assert [(a.member, a.cause) for a in verdict.abstained] == [
            ("m3", "over the budget of calls"),
            ("m4", "over the budget of calls"),
        ]
        assert [len(agent.turns) for agent in agents] == [1, 1, 1, 0, 0]
        kinds = [record.kind async for record in trace.records(verdict.mindstorm)]
        assert kinds == ["abstained", "abstained", "replied", "replied", "replied", "verdict"]

    async def test_what_was_reserved_but_not_needed_is_given_back(self):
        agents = [
            Priced("yes", cost_=Cost(1, 100), usage=Usage(calls=1, prompt_tokens=10, completion_tokens=2))
        ]
        society = panel(agents, (Repeat(repeat=20, phases=(ask(),)),), limits=Limits(tokens=150))
        verdict, _ = await storm(society)
        assert verdict.cut_short == "tokens"
        assert len(agents[0].turns) == 5, "5 turns of 12 leave 90, which is less than the 100 of a sixth"

    async def test_what_an_agent_without_a_price_used_counts_for_those_who_have_one(self):
        free = Saying("yes", usage=Usage(calls=3))
        priced = Priced("yes", cost_=Cost(calls=1), usage=Usage(calls=1))
        society = panel([free, priced], (ask(order="in_turn"),), limits=Limits(calls=3))
        verdict, _ = await storm(society)
        assert verdict.cut_short == "calls"
        assert (len(free.turns), len(priced.turns)) == (1, 0)

    async def test_an_agent_whose_price_fails_is_a_member_that_fails(self):
        class Odd(Priced):
            def cost(self, turn):
                raise KeyError("price")

        trace = MemoryTrace()
        for _ in range(2):  # taken up again, it has no price still
            agents = [Odd("no"), Priced("no", cost_=None), Saying("yes")]
            verdict, _ = await storm(panel(agents, limits=Limits(calls=9), trace=trace))
            assert verdict.answer == "yes"
            assert [one.cause for one in verdict.abstained] == [
                "KeyError: 'price'",
                "TypeError: the agent's cost is NoneType, not Cost",
            ]

    async def test_too_few_replies_end_the_mindstorm_with_what_was_said(self):
        agents = [Saying("yes"), Failing(), Failing()]
        society = panel(agents, (ask(label="answer"), ask()), limits=Limits(quorum=2))
        verdict, _ = await storm(society)
        assert verdict.cut_short == "quorum: 1 of 2 replied in phase 'answer', round 1"
        assert verdict.answer == "yes"

    async def test_a_phase_that_asks_fewer_than_the_quorum_wants_all_of_them(self):
        verdict, _ = await storm(panel([Saying("yes")], limits=Limits(quorum=5)))
        assert verdict.cut_short is None

    async def test_a_phase_has_its_own_quorum(self):
        agents = [Saying("yes"), Failing()]
        verdict, _ = await storm(panel(agents, (ask(quorum=0), ask(label="x", quorum=2))))
        assert verdict.cut_short is not None
        assert "'x'" in verdict.cut_short


@dataclass
class Priced(Saying):
    cost_: Cost = field(default_factory=Cost)

    def cost(self, turn: Turn) -> Cost:
        return self.cost_


class TestNestedBudgets:
    async def test_a_nested_society_draws_on_what_is_left_and_nothing_is_taken_twice(self):
        inner = Priced("yes", cost_=Cost(calls=1), usage=Usage(calls=1))
        after = Priced("yes", cost_=Cost(calls=1), usage=Usage(calls=1))
        nested = panel([inner], (Repeat(repeat=2, phases=(ask(),)),))

        class Nested:
            async def speak(self, turn):
                verdict = await nested.ask("And?")
                return Said.words(str(verdict.answer), usage=verdict.usage)

        async with nested:
            outer = panel(
                [Nested(), after], (Repeat(repeat=3, phases=(ask(order="in_turn"),)),), limits=Limits(calls=7)
            )
            verdict, _ = await storm(outer)
        # A round takes 2 + 1 calls; in the third the one that is left goes to the nested society.
        assert (len(inner.turns), len(after.turns)) == (5, 2)
        assert verdict.cut_short == "calls"
        assert verdict.usage.calls == 7

    async def test_what_a_turn_spends_is_seen_by_nobody_else(self):
        async with panel([Saying("yes")], limits=Limits(calls=3)) as society:
            await society.ask("What?")
        assert spending.get() is None

    def test_settling_leaves_exactly_what_was_used(self):
        top = Budget(calls=10, tokens=100)
        meter = Budget(parent=top)
        meter.take(Cost(2, 50))
        meter.settle(Cost(1, 5))
        assert (top.calls, top.tokens) == (9, 95)
        assert top.refuses(Cost(9, 96)) == "tokens"
        assert top.refuses(Cost(10, 1)) == "calls"
        assert top.refuses(Cost(9, 95)) is None
        assert Budget(parent=top).refuses(Cost(10, 0)) == "calls"
        assert Budget(parent=Budget()).unlimited
        assert not Budget(parent=top).unlimited


class TestFailures:
    async def test_a_member_that_fails_abstains_and_the_verdict_says_why(self):
        verdict, events = await storm(panel([Saying("yes"), Failing(ValueError("no such file"))]))
        assert verdict.answer == "yes"
        (abstention,) = verdict.abstained
        assert (abstention.member, abstention.phase, abstention.round) == ("m1", "ballot", 1)
        assert abstention.cause == "ValueError: no such file"
        assert [e.abstention for e in events if isinstance(e, Abstained)] == [abstention]

    async def test_an_error_without_words_is_told_by_its_kind(self):
        verdict, _ = await storm(panel([Failing(RuntimeError())]))
        assert verdict.abstained[0].cause == "RuntimeError"

    async def test_a_failure_that_is_to_be_raised_names_member_phase_and_round(self):
        slow = Hanging()
        phase = Repeat(repeat=2, phases=(ask(label="x", on_error="raise"),))
        agents = [slow, Failing(ValueError("odd"))]
        society = panel(agents, (phase,))
        async with society:
            with pytest.raises(MemberFailed) as caught:
                await society.ask("What?")
            failed = caught.value
            assert (failed.member, failed.phase, failed.round) == ("m1", "x", 1)
            assert str(failed) == "member 'm1' failed in phase 'x', round 1: ValueError: odd"
            assert slow.cancelled == 1

    async def test_a_society_that_failed_can_be_asked_again(self):
        agent = Failing(times=1, then="yes")
        async with panel([agent], limits=Limits(on_error="raise")) as society:
            with pytest.raises(MemberFailed):
                await society.ask("What?")
            assert (await society.ask("What?")).answer == "yes"

    async def test_an_error_that_cannot_even_say_what_it_is_is_an_abstention(self):
        class Mute(Exception):
            def __str__(self):
                raise ValueError

        class Broken:
            async def speak(self, turn):
                raise Mute

        verdict, _ = await storm(panel([Broken(), Saying("yes")]))
        assert verdict.answer == "yes"
        assert verdict.abstained[0].cause == "Mute"

    @pytest.mark.parametrize("policy", ["abstain", "raise"])
    async def test_an_agent_that_cancels_itself_has_failed(self, policy):
        class Quitting:
            async def speak(self, turn):
                raise asyncio.CancelledError

        society = panel([Quitting(), Saying("yes")], limits=Limits(on_error=policy))
        if policy == "raise":
            with pytest.raises(MemberFailed, match="cancelled itself"):
                await storm(society)
        else:
            verdict, _ = await storm(society)
            assert verdict.answer == "yes"
            assert verdict.abstained[0].cause == "the agent cancelled itself"

    @pytest.mark.parametrize("garbage", ["yes", 7, {"answer": "yes"}, Said, b"", Text(text="yes")])
    async def test_what_is_no_saying_is_an_abstention(self, garbage):
        class Odd:
            async def speak(self, turn):
                return garbage

        verdict, _ = await storm(panel([Odd(), Saying("yes")]))
        assert verdict.answer == "yes"
        assert verdict.tally == {"yes": 1.0}
        assert verdict.abstained[0].cause.startswith("TypeError: the agent returned ")

    async def test_a_saying_that_cannot_be_kept_is_an_abstention(self):
        bad = Said.model_construct(parts=(object(),), answer=None, ballot=None, why=None)
        verdict, _ = await storm(panel([Saying(lambda turn: bad), Saying("yes")]))
        assert verdict.answer == "yes"
        assert [a.member for a in verdict.abstained] == ["m0"]

    async def test_nothing_to_say_is_an_abstention(self):
        verdict, _ = await storm(panel([Saying(lambda turn: None), Saying("yes")]))
        assert verdict.abstained[0].cause == "nothing to say"

    async def test_what_cannot_be_read_in_the_form_is_heard_but_is_no_vote(self):
        agents = [Saying("I cannot tell."), Saying("cat")]
        society = panel(agents, (ask(form="answer"), ask("m1", label="more")))
        verdict, _ = await storm(society, choices=CHOICES)
        assert verdict.answer == "cat"
        assert verdict.abstained[0].cause == "no option is named"
        assert [m.text for m in agents[1].turns[1].heard] == ["I cannot tell.", "cat"]

    async def test_an_agents_own_ballot_for_something_not_offered_is_not_counted(self):
        odd = Said.words("zebra", ballot=Choice(choice="zebra"))
        verdict, _ = await storm(panel([Saying(odd), Saying("cat")], (ask(form="answer"),)), choices=CHOICES)
        assert verdict.tally == {"cat": 1.0, "dog": 0.0}
        assert [a.member for a in verdict.abstained] == ["m0"]

    async def test_no_text_of_an_error_becomes_an_answer(self):
        verdict, _ = await storm(panel([Failing(ValueError("cat"))], (ask(form="answer"),)), choices=CHOICES)
        assert verdict.answer is None

    @pytest.mark.parametrize("text", ["half \ud83d", "pair \ud83d\ude00", "nul \x00", "\udfff"])
    async def test_odd_characters_break_nothing(self, text):
        trace = MemoryTrace()
        agents = [Saying(text), Saying(lambda turn: Said(parts=(Data(value={"x": text}),), answer=text))]
        society = panel([*agents, Failing(ValueError(text))], (ask(label="answer"), ask()), trace=trace)
        verdict, events = await storm(society, question=text, choices=[text])
        assert len(verdict.abstained) >= 2
        for event in events:
            event.model_dump_json().encode()
        assert len(agents[0].turns[1].heard) == 2
        verdict.model_dump_json().encode()

    async def test_the_cause_of_an_abstention_is_no_book(self):
        verdict, _ = await storm(panel([Failing(RuntimeError("<html>" * 100_000)), Saying("yes")]))
        assert len(verdict.abstained[0].cause) < 2100
        assert verdict.abstained[0].cause.endswith("(600,000 characters)")

    async def test_a_trace_that_cannot_be_written_stops_the_mindstorm_with_its_error(self):
        class Full(MemoryTrace):
            def append(self, record):
                raise TraceError("the disk is full")

        slow = Hanging()
        society = panel([Saying("yes"), slow], trace=Full())
        async with society:
            with pytest.raises(TraceError, match="disk is full"):
                await society.ask("What?")
        assert slow.cancelled == slow.asked

    async def test_a_rule_that_fails_is_told_by_the_last_event(self):
        def broken(votes, alternatives):
            raise ZeroDivisionError("no votes")

        society = panel([Saying("yes")], verdict=VerdictBy(broken, "broken"))
        async with society:
            task = await society.make_task("What?")
            async with society.mindstorm(task) as running:
                events = [event async for event in running]
                with pytest.raises(NlsomError, match="no votes") as told:
                    await running.verdict()
        assert isinstance(told.value.__cause__, ZeroDivisionError)  # with the place in the rule's own code
        reason = "the rule 'broken' failed: ZeroDivisionError: no votes"
        assert events[-1] == Stopped(mindstorm=running.id, reason=reason)

    @pytest.mark.parametrize(
        ("made", "told"),
        [
            (None, "returned NoneType, not Count"),
            (Verdict(answer="yes", rule="odd"), "returned Verdict, not Count"),
            (Count((), {}, uncounted={"nobody": "blank"}), "could not count 'nobody', who did not vote"),
        ],
    )
    async def test_a_rule_that_returns_no_count_of_the_votes_is_named(self, made, told):
        async with panel([Saying("yes")], verdict=VerdictBy(lambda *_: made, "odd")) as society:
            with pytest.raises(NlsomError, match=f"the rule 'odd' {told}"):
                await society.ask("What?")

    async def test_an_error_that_cannot_say_what_it_is_still_is_the_end(self):
        class Mute(Exception):
            def __str__(self):
                raise RuntimeError

        def broken(votes, alternatives):
            raise Mute

        society = panel([Saying("yes")], verdict=VerdictBy(broken, "broken"))
        async with society, society.mindstorm(VqaTask(question="What?")) as running:
            events = [event async for event in running]
            with pytest.raises(NlsomError, match="Mute"):
                await running.verdict()
        assert events[-1] == Stopped(mindstorm=running.id, reason="the rule 'broken' failed: Mute")


class TestUsage:
    async def test_usage_is_the_sum_of_what_was_said(self):
        usage = Usage(calls=1, prompt_tokens=10, cached_tokens=4, completion_tokens=2)
        agents = [
            Saying("yes", usage=usage),
            Saying("yes", usage=Usage(calls=2, prompt_tokens=1)),
            Saying("yes"),
        ]
        verdict, events = await storm(panel(agents, (ask(label="x"), ask())))
        spent = verdict.usage
        assert (spent.calls, spent.prompt_tokens, spent.cached_tokens, spent.completion_tokens) == (
            6,
            22,
            8,
            4,
        )
        assert verdict.usage_total == verdict.usage
        assert [e.usage.calls for e in events if isinstance(e, RoundClosed)] == [3, 6]
        assert spent.tokens == 26

    async def test_an_engine_that_says_nothing_of_its_cache_has_no_cached_tokens(self):
        verdict, _ = await storm(panel([Saying("yes", usage=Usage(calls=1))]))
        assert verdict.usage.cached_tokens is None


def rounds(n: int, over: str = "answer", **until_) -> Repeat:
    return Repeat(repeat=n, phases=(ask(label=over, form="answer"),), until=Until(over=over, **until_))


class TestUntil:
    async def test_rounds_end_when_enough_agree(self):
        def say(turn):
            return "cat" if turn.round >= 2 or turn.member.name != "m2" else "dog"

        agents = [Saying(say) for _ in range(3)]
        society = panel(agents, (rounds(5, agreement=0.9),))
        verdict, _ = await storm(society, choices=CHOICES)
        assert verdict.rounds == 2
        assert verdict.answer == "cat"

    async def test_rounds_end_when_nobody_changes_the_answer(self):
        agents = [Saying(lambda turn: "cat" if turn.round < 3 else "dog") for _ in range(2)]
        verdict, _ = await storm(panel(agents, (rounds(9, unchanged=True),)), choices=CHOICES)
        assert verdict.rounds == 2

    async def test_rounds_go_on_while_one_member_changes(self):
        agents = [Saying(lambda turn: CHOICES[turn.round % 2]), Saying("cat")]
        verdict, _ = await storm(panel(agents, (rounds(4, unchanged=True),)), choices=CHOICES)
        assert verdict.rounds == 4

    async def test_rounds_end_when_a_member_is_sure(self):
        agents = [Saying(lambda turn: Said.words("cat", confidence=turn.round / 10)), Saying("dog")]
        verdict, _ = await storm(panel(agents, (rounds(9, confident=0.3, of="m0"),)), choices=CHOICES)
        assert verdict.rounds == 3

    async def test_a_silent_member_is_not_sure(self):
        agents = [Saying(lambda turn: None), Saying("dog")]
        verdict, _ = await storm(panel(agents, (rounds(2, confident=0.3, of="m0"),)), choices=CHOICES)
        assert verdict.rounds == 2

    async def test_nobody_answering_is_no_agreement(self):
        verdict, _ = await storm(
            panel([Saying("hm"), Saying("hm")], (rounds(2, agreement=0.1),)), choices=CHOICES
        )
        assert verdict.rounds == 2

    async def test_no_rounds_at_all_are_allowed(self):
        agent = Saying("yes")
        verdict, _ = await storm(panel([agent], (Repeat(repeat=0, phases=(ask(label="x"),)), ask())))
        assert (verdict.rounds, len(agent.turns)) == (1, 1)


class TestSeats:
    async def test_a_phase_whose_seats_are_empty_is_left_out(self):
        society = panel([Saying("yes")])
        society.phases, society.groups = (ask("eyes", label="x"), ask()), {"eyes": ()}
        society.__post_init__()
        verdict, _events = await storm(society)
        assert verdict.rounds == 1
        assert verdict.answer == "yes"

    async def test_a_decree_of_one_who_says_nothing_is_no_answer(self):
        society = panel([Saying("yes"), Failing()], verdict=VerdictBy(Decree(), "decree", of="m1"))
        verdict, _ = await storm(society)
        assert verdict.answer is None
        assert [a.member for a in verdict.abstained] == ["m1"]

    async def test_the_last_vote_of_each_voter_counts(self):
        agent = Saying(lambda turn: CHOICES[turn.round - 1])
        verdict, _ = await storm(
            panel([agent], (Repeat(repeat=2, phases=(ask(form="answer"),)),)), choices=CHOICES
        )
        assert verdict.tally == {"cat": 0.0, "dog": 1.0}

    async def test_equal_ballots_of_several_members_all_count(self):
        verdict, _ = await storm(panel([Saying("yes")] * 3))
        assert verdict.tally == {"yes": 3.0}


class TestHearing:
    async def test_a_scope_of_none_hears_nothing(self):
        agents = [Saying("a"), Saying("b")]
        await storm(panel(agents, (ask(label="x"), ask(hears=Hears(scope="none")))))
        assert list(agents[0].turns[1].heard) == []

    async def test_latest_hears_the_last_of_each_sender_and_label(self):
        agents = [Saying(lambda turn: f"{turn.member.name} {turn.round}") for _ in range(2)]
        phases = (Repeat(repeat=3, phases=(ask(label="x"),)), ask(hears=Hears(scope="latest", label=("x",))))
        await storm(panel(agents, phases))
        assert [m.text for m in agents[0].turns[-1].heard] == ["m0 3", "m1 3"]

    async def test_labels_narrow_what_is_heard(self):
        agents = [Saying(lambda turn: turn.phase) for _ in range(2)]
        phases = (ask(label="x"), ask(label="y"), ask(hears=Hears(label="y")))
        await storm(panel(agents, phases))
        assert {m.label for m in agents[1].turns[-1].heard} == {"y"}

    async def test_forms_without_choices_are_over_what_was_answered(self):
        agents = [Saying(lambda turn: "B" if turn.phase == "ballot" else turn.member.name) for _ in range(2)]
        society = panel(agents, (ask(label="answer", form="answer"), ask(form="choice")))
        verdict, _ = await storm(society)
        assert agents[0].turns[1].form.options == ("m0", "m1")
        assert verdict.answer == "m1"

    @pytest.mark.parametrize("form", ["choice", "ranking", "scores", "number", "yes_no", "text"])
    async def test_every_form_by_name_can_be_asked_for(self, form):
        agent = Saying("7")
        await storm(panel([agent], (ask(form=form),)))
        assert agent.turns[0].form.kind == (
            "text" if form in ("choice", "ranking", "scores", "text") else form
        )

    async def test_a_form_with_parameters_is_passed_on(self):
        agent = Saying("7")
        await storm(panel([agent], (ask(form=TextForm(max_tokens=3)),)))
        assert agent.turns[0].form == TextForm(max_tokens=3)


class TestEvents:
    async def test_events_tell_a_mindstorm_in_order_and_end_once(self):
        _, events = await storm(panel([Saying("yes"), Saying("yes")]))
        kinds = [type(event) for event in events]
        assert kinds == [Started, Asked, Spoke, Asked, Spoke, RoundClosed, Decided] or kinds == [
            Started,
            Asked,
            Asked,
            Spoke,
            Spoke,
            RoundClosed,
            Decided,
        ]
        assert events[0].members == ("m0", "m1")

    async def test_a_failed_mindstorm_ends_with_its_reason(self):
        society = panel([Failing()], limits=Limits(on_error="raise"))
        async with society, society.mindstorm(VqaTask(question="What?")) as running:
            events = [event async for event in running]
            with pytest.raises(MemberFailed):
                await running.verdict()
        assert sum(isinstance(event, Decided | Stopped) for event in events) == 1
        assert "m0" in events[-1].reason

    async def test_what_a_trace_knew_already_is_told_as_said_again(self):
        trace = MemoryTrace()
        await storm(panel([Saying("yes")], trace=trace))
        agent = Saying("no")
        _, events = await storm(panel([agent], trace=trace))
        assert [event.again for event in events if isinstance(event, Spoke)] == [True]
        assert not [event for event in events if isinstance(event, Asked)]
        assert agent.turns == []


class TestCancelling:
    async def test_leaving_the_block_cancels_down_to_the_agents(self):
        agents = [Hanging(), Hanging()]
        async with panel(agents) as society:
            async with society.mindstorm(VqaTask(question="What?")) as running:
                async for event in running:
                    if isinstance(event, Asked):
                        break
                await until(lambda: all(agent.asked for agent in agents))
            assert [agent.cancelled for agent in agents] == [1, 1]

    async def test_other_listeners_hear_that_it_was_cancelled(self):
        agent = Hanging()
        bus = MemoryBus()
        await bus.host("m0", agent)
        society = panel([agent])
        society.bus = bus
        async with society, bus.listen() as events:
            async with society.mindstorm(VqaTask(question="What?")):
                await until(lambda: agent.asked == 1)
            heard = [await anext(events) for _ in range(3)]
        assert heard[-1].reason == "cancelled"
        await bus.close()

    async def test_cancelling_whoever_asked_leaves_no_task(self):
        agents = [Hanging(), Hanging()]
        async with panel(agents) as society:
            asking = asyncio.create_task(society.ask("What?"))
            await until(lambda: all(agent.asked for agent in agents))
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            assert [agent.cancelled for agent in agents] == [1, 1]
            assert asyncio.all_tasks() == {asyncio.current_task()}

    async def test_leaving_at_once_is_no_trouble(self):
        agent = Saying("yes")
        async with panel([agent]) as society:
            async with society.mindstorm(VqaTask(question="What?")):
                pass
            assert agent.turns == []

    async def test_a_closed_bus_stops_the_mindstorm(self):
        agent = Hanging()
        society = panel([agent, Hanging()])
        async with society:
            asking = asyncio.create_task(society.ask("What?"))
            await until(lambda: agent.asked == 1)
            assert society._bus is not None
            await society._bus.close()
            with pytest.raises(BusClosed):
                await asking

    async def test_closing_a_society_ends_what_it_is_holding(self):
        agent = Hanging()
        async with panel([agent]) as society:
            asking = asyncio.create_task(society.ask("What?"))
            await until(lambda: agent.asked == 1)
        with pytest.raises(BusClosed):
            await asking

    async def test_whoever_waits_for_the_verdict_of_one_that_is_left_is_told_so(self):
        async with panel([Hanging()]) as society:
            async with society.mindstorm(VqaTask(question="What?")) as running:
                waiting = asyncio.create_task(running.verdict())
                await asyncio.sleep(0)
            # A `CancelledError` would silently end the waiting task, as if that had been cancelled itself.
            with pytest.raises(NoVerdict, match="was cancelled"):
                await waiting
            with pytest.raises(NoVerdict, match="was cancelled"):
                await running.verdict()

    async def test_closing_a_society_is_told_to_whoever_watches_too(self):
        agent = Hanging()
        async with panel([agent]) as society:

            async def watched():
                async with society.mindstorm(VqaTask(question="What?")) as running:
                    return [event async for event in running], [event async for event in running]

            watching = asyncio.create_task(watched())
            await until(lambda: agent.asked == 1)
        events, more = await watching
        assert [type(event) for event in events] == [Started, Asked, Stopped]
        assert "closed" in events[-1].reason
        assert more == []

    async def test_a_mindstorm_has_to_be_opened(self):
        async with panel([Saying("yes")]) as society:
            async with society.mindstorm(VqaTask(question="What?")) as running:
                closed = Mindstorm(running._scheduler, running._bus)
            with pytest.raises(NlsomError, match="open the mindstorm first"):
                await closed.verdict()
            with pytest.raises(NlsomError, match="open the mindstorm first"):
                async for _ in closed:
                    pass


class TestConcurrency:
    async def test_the_same_question_asked_at_once_with_a_trace_is_asked_once(self):
        agent = Saying("yes", seconds=0.005)
        async with panel([agent], trace=MemoryTrace()) as society:
            task = await society.make_task("What?")
            verdicts = await asyncio.gather(*(society.ask(task) for _ in range(20)))
            assert len(agent.turns) == 1
            assert {verdict.answer for verdict in verdicts} == {"yes"}
            assert agent.most == 1

    @pytest.mark.parametrize("leaves", ["the first", "the second"])
    async def test_of_two_who_hold_one_mindstorm_each_is_told_of_its_own_end_only(self, leaves):
        task = VqaTask(question="What?")
        agent = Hanging()

        async def held(society):
            async with society.mindstorm(task) as running:
                return [event async for event in running]

        async with panel([agent], trace=MemoryTrace()) as society:
            first = asyncio.create_task(held(society))
            await until(lambda: agent.asked == 1)
            second = asyncio.create_task(held(society))
            await asyncio.sleep(0.01)
            leaver, stayer = (first, second) if leaves == "the first" else (second, first)
            leaver.cancel()
            await asyncio.wait([leaver])
            await until(lambda: agent.asked == (2 if leaves == "the first" else 1))
            assert not stayer.done()
            stayer.cancel()
            await asyncio.wait([stayer])

    async def test_one_that_cannot_begin_ends_with_why(self):
        class Unreadable(MemoryTrace):
            async def open(self, header):
                raise TraceError("it cannot be read")

        society = panel([Saying("yes")], trace=Unreadable())
        async with society, society.mindstorm(VqaTask(question="What?")) as running:
            events = [event async for event in running]
            with pytest.raises(TraceError):
                await running.verdict()
        assert events == [Stopped(mindstorm=running.id, reason="it cannot be read")]

    async def test_without_a_trace_each_is_asked(self):
        agent = Saying("yes", seconds=0.005)
        async with panel([agent]) as society:
            await asyncio.gather(*(society.ask("What?") for _ in range(5)))
        assert len(agent.turns) == 5

    async def test_many_mindstorms_at_once_do_not_mix(self):
        def say(turn):
            assert all(turn.task.question in m.text for m in turn.heard)
            return turn.task.question

        async with panel([Saying(say, seconds=0.001)] * 3, (ask(label="x"), ask())) as society:
            verdicts = await asyncio.gather(*(society.ask(str(n)) for n in range(30)))
        assert [verdict.answer for verdict in verdicts] == [str(n) for n in range(30)]


class Panic(BaseException):
    """As a library written in Rust raises it."""


class More(Said):
    more: int = 1


async def _panic(turn: Turn) -> Said:
    raise Panic("index out of bounds")


async def _unreadable(turn: Turn) -> Said:
    return Said.words("cat", answer="cat").model_copy(update={"confidence": 7.0})


async def _extended(turn: Turn) -> Said:
    return More(parts=(Text(text="cat"),), answer="cat")


@pytest.mark.parametrize(
    ("speak", "cause"),
    [
        (_panic, "Panic: index out of bounds"),
        (_unreadable, "less than or equal to 1"),
        (_extended, "Extra inputs are not permitted"),
    ],
)
async def test_what_an_agent_may_not_do_is_its_own_failure_and_spoils_no_trace(speak, cause, tmp_path):
    class Odd:
        identity = "odd/1"

        def __init__(self) -> None:
            self.speak = speak

    async with SqliteTrace(tmp_path / "run.sqlite") as trace:
        for _ in range(2):
            async with panel([Odd(), Saying("dog")], trace=trace) as society:
                verdict = await society.ask("What is it?", choices=CHOICES)
            assert verdict.answer == "dog"
            assert cause in verdict.abstained[0].cause


def test_nothing_costs_less_than_nothing():
    with pytest.raises(ValueError, match="greater than or equal to 0"):
        Usage(prompt_tokens=-1)
