"""Keys of turns: what changes them, and what does not."""

from __future__ import annotations

import dataclasses
import time

import pytest

from nlsom.blueprint import Seat
from nlsom.member import Member
from nlsom.message import Image, Said
from nlsom.phase import Ask, Hears, Inline, Limits, Repeat
from nlsom.structure import STRUCTURES
from nlsom.task import CaptionTask, VqaTask
from nlsom.testing.agents import Saying, panel

PHASES = (
    Ask(ask="everyone", prompt=Inline(text="Answer."), label="answer"),
    Ask(ask="everyone", prompt=Inline(text="Vote."), label="ballot", form="answer"),
)
TASK = VqaTask(question="What is it?", choices=("cat", "dog"))


async def turns(*, phases=PHASES, task=TASK, seed=0, change=None, agents=None, structure="democracy"):
    """The turns of a mindstorm of three by (member, phase, round)."""
    asked = {}

    def say(turn):
        asked[turn.member.name, turn.phase, turn.round] = turn
        return Said.words("cat")

    society = panel(agents(say) if agents else [Saying(say) for _ in range(3)], phases)
    society.structure = STRUCTURES[structure]()
    society.task = type(task)
    if change:
        society.seats = change(list(society.seats))
    society.__post_init__()
    async with society:
        await society.ask(task, seed=seed)
    return asked


async def keys(**what):
    return {place: turn.key for place, turn in (await turns(**what)).items()}


async def test_the_same_mindstorm_has_the_same_keys_at_any_time(monkeypatch):
    before = await keys()
    monkeypatch.setattr(time, "time", lambda: 9e9)
    assert await keys() == before


async def test_all_keys_of_a_mindstorm_differ():
    all_keys = list((await keys()).values())
    assert len(set(all_keys)) == len(all_keys) == 6


def changed(at, **what):
    def change(seats):
        seats[at] = dataclasses.replace(seats[at], member=dataclasses.replace(seats[at].member, **what))
        return seats

    return change


@pytest.mark.parametrize(
    "change", [changed(1, persona="You doubt."), changed(1, role="critic"), changed(1, name="zoe")]
)
async def test_who_a_member_is_changes_its_own_keys_only_until_it_is_heard(change):
    before, after = await keys(), await keys(change=change)
    assert before["m0", "answer", 1] == after["m0", "answer", 1]
    assert before["m1", "answer", 1] != after.get(("m1", "answer", 1), "another name")
    assert before["m0", "ballot", 1] != after["m0", "ballot", 1]


async def test_what_an_agents_replies_depend_on_is_in_its_keys():
    def agents(say):
        return [Saying(say), Saying(say, identity="saying/2"), Saying(say)]

    before, after = await keys(), await keys(agents=agents)
    assert before["m0", "answer", 1] == after["m0", "answer", 1]
    assert before["m1", "answer", 1] != after["m1", "answer", 1]


async def test_an_agent_without_an_identity_is_known_by_its_class():
    class Nameless:
        def __init__(self, say):
            self._say = say

        async def speak(self, turn):
            return self._say(turn)

    def agents(say):
        return [Nameless(say) for _ in range(3)]

    assert await keys(agents=agents) == await keys(agents=agents)


@pytest.mark.parametrize(
    "task",
    [
        VqaTask(question="What is it now?", choices=("cat", "dog")),
        VqaTask(question="What is it?", choices=("dog", "cat")),
        VqaTask(question="What is it?", choices=("cat", "dog"), context="It barks."),
        VqaTask(question="What is it?", choices=("cat", "dog"), extra={"hint": 1}),
        CaptionTask(question="What is it?", choices=("cat", "dog")),
    ],
)
async def test_another_task_has_other_keys(task):
    assert not set((await keys(task=task)).values()) & set((await keys()).values())


def image(**what):
    given = {"sha256": "a", "media_type": "image/png", "width": 4, "height": 3, "source": "s"}
    return Image(**{**given, **what})


def test_a_changed_copy_and_each_share_of_a_task_have_digests_of_their_own():
    task = VqaTask(question="Who was it?", extra={"evidence": ["a", "b"]})
    task.digest  # noqa: B018 (it is kept from now on)
    shares = [task, task.dealt(0, 2), task.dealt(1, 2), task.model_copy(update={"question": "Why?"})]
    assert len({one.digest for one in shares}) == 4
    assert task.model_copy().digest == task.digest


async def test_a_picture_counts_by_the_bytes_it_was_given_as():
    async def of(picture):
        return await keys(task=VqaTask(question="What?", images=(picture,)))

    assert await of(image()) == await of(image(sha256="b", media_type="image/jpeg"))
    assert await of(image()) != await of(image(source="t"))
    assert await of(image()) != await of(image(width=5))


@pytest.mark.parametrize(
    "phases",
    [
        (PHASES[0].model_copy(update={"prompt": Inline(text="Answer now.")}), PHASES[1]),
        (PHASES[0].model_copy(update={"form": "answer"}), PHASES[1]),
        (PHASES[0].model_copy(update={"name": "first"}), PHASES[1]),
    ],
)
async def test_what_is_asked_is_in_the_key(phases):
    before, after = await keys(), await keys(phases=phases)
    assert not {key for place, key in before.items() if place[1] == "answer"} & set(after.values())


async def test_the_part_of_a_prompt_that_names_the_round_is_in_the_key_and_so_is_the_round():
    twice = (Repeat(repeat=2, phases=(PHASES[1].model_copy(update={"hears": Hears(scope="none")}),)),)
    asked = await turns(phases=twice)
    one, two = asked["m0", "ballot", 1], asked["m0", "ballot", 2]
    assert one.ask == two.ask
    assert list(one.heard) == list(two.heard) == []
    assert one.key != two.key
    assert one.seed != two.seed


async def test_the_order_and_the_content_of_what_was_heard_are_in_the_key():
    async def ballots(**hears):
        phases = (PHASES[0], PHASES[1].model_copy(update={"hears": Hears(**hears)}))
        return {place: key for place, key in (await keys(phases=phases)).items() if place[1] == "ballot"}

    given = [await ballots(), await ballots(content="answers"), await ballots(scope="none")]
    assert len({keys_["m0", "ballot", 1] for keys_ in given}) == 3


async def test_own_words_in_the_tail_are_in_the_key():
    def agents(say):
        def other(turn):
            say(turn)
            return Said.words("dog")

        return [Saying(say), Saying(other), Saying(say)]

    before = await turns(structure="chain")
    after = await turns(structure="chain", agents=agents)
    place = ("m1", "ballot", 1)
    assert before[place].heard.digest == after[place].heard.digest
    assert before[place].own[0].text != after[place].own[0].text
    assert before[place].key != after[place].key


async def test_another_seed_gives_other_seeds_and_keys():
    before, after = await turns(), await turns(seed=1)
    assert all(before[place].seed != after[place].seed for place in before)
    assert all(before[place].key != after[place].key for place in before)


async def test_seeds_of_members_phases_and_rounds_differ_and_fit_any_engine():
    seeds = [turn.seed for turn in (await turns()).values()]
    assert len(set(seeds)) == len(seeds)
    assert all(0 <= seed < 2**31 for seed in seeds)


async def test_removing_or_moving_a_member_shifts_no_one_elses_seed():
    before = await turns()
    without = await turns(change=lambda seats: [seats[0], seats[2]])
    moved = await turns(change=lambda seats: [seats[2], seats[1], seats[0]])
    for other in (without, moved):
        for place, turn in other.items():
            assert turn.seed == before[place].seed
        assert other["m2", "answer", 1].key == before["m2", "answer", 1].key


async def test_equal_turns_are_equal_values():
    assert await turns() == await turns()


async def test_where_agents_run_and_what_limits_them_is_in_no_key():
    before = await keys()
    assert before == await keys(change=lambda seats: [Seat(s.member, s.agent, limit=1) for s in seats])
    society = panel([Saying("cat") for _ in range(3)], PHASES, limits=Limits(calls=9))
    assert society.program.member_digests == panel([Saying("cat")] * 3, PHASES).program.member_digests
    assert society.program.digest != panel([Saying("cat")] * 3, PHASES).program.digest


def test_the_digest_of_a_program_has_no_address_in_memory():
    def rule(votes, alternatives):
        raise AssertionError

    def made():
        society = panel([Saying()], PHASES)
        society.verdict = dataclasses.replace(
            society.verdict, rule=lambda votes, alternatives: rule(votes, alternatives)
        )
        society.__post_init__()
        return society.program.digest

    assert made() == made()


def test_a_name_that_no_wire_takes_gets_an_id_of_its_own():
    assert Member("ann").id == "ann"
    odd = {Member(name).id for name in ("日本", "中国", "a b", "a_b", "Åsa", "x" * 65, "")}
    assert len(odd) == 7
    assert all(one.isascii() and len(one) <= 64 and " " not in one for one in odd)
