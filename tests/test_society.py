"""A society: opened and closed as a whole, asked any number of times, checked before it runs."""

from __future__ import annotations

import asyncio
import dataclasses

import pytest

from nlsom.errors import ConfigError, NlsomError, Unavailable, UsageError
from nlsom.phase import Ask, Inline, Repeat, Until
from nlsom.task import CaptionTask, VqaTask
from nlsom.testing.agents import Saying, panel
from nlsom.trace import MemoryTrace


class Opened(Saying):
    """Keeps the order in which it and others were opened and closed."""

    def __init__(self, log, name, *, fails=False, model=None):
        super().__init__("yes")
        self.log, self.name, self.fails, self.model = log, name, fails, model

    async def __aenter__(self):
        if self.fails:
            raise NlsomError("cannot be opened")
        self.log.append(f"+{self.name}")
        return self

    async def __aexit__(self, *_):
        self.log.append(f"-{self.name}")


def ask(who="everyone", label="ballot", **more) -> Ask:
    return Ask(ask=who, label=label, **{"prompt": Inline(text="Say it."), **more})


async def test_agents_and_the_models_they_share_are_opened_once_and_closed_in_reverse():
    log = []
    model = Opened(log, "model")
    agents = [Opened(log, "a", model=model), Opened(log, "b", model=model)]
    async with panel([*agents, agents[0]]) as society:
        await society.ask("What?")
    assert log == ["+model", "+a", "+b", "-b", "-a", "-model"]


async def test_an_agent_that_cannot_be_opened_closes_the_others_and_opens_nothing():
    log = []
    society = panel([Opened(log, "a"), Opened(log, "b", fails=True)])
    with pytest.raises(NlsomError, match="cannot be opened"):
        async with society:
            pass
    assert log == ["+a", "-a"]
    with pytest.raises(NlsomError, match="open the society first"):
        await society.ask("What?")


async def test_a_society_is_opened_once_at_a_time_and_can_be_opened_again():
    society = panel([Saying("yes")])
    for _ in range(2):
        async with society:
            with pytest.raises(NlsomError, match="open already"):
                async with society:
                    pass
            assert (await society.ask("What?")).answer == "yes"


async def test_opening_it_twice_hurts_nothing_that_the_first_uses():
    log = []
    society = panel([Opened(log, "a")])
    async with society:
        with pytest.raises(NlsomError, match="open already"):
            async with society:
                pass
        assert log == ["+a"]


async def test_it_is_not_open_again_before_it_is_closed_and_of_two_who_open_it_at_once_one_does():
    log = []

    class Slow(Opened):
        async def __aenter__(self):
            await asyncio.sleep(0.01)
            return await super().__aenter__()

        async def __aexit__(self, *_):
            await asyncio.sleep(0.01)
            await super().__aexit__(*_)

    society = panel([Slow(log, "a")])

    async def opened():
        async with society:
            return (await society.ask("What?")).answer

    first, second = await asyncio.gather(opened(), opened(), return_exceptions=True)
    assert first == "yes"
    assert "open already" in str(second)
    assert log == ["+a", "-a"]


async def test_a_task_of_another_kind_is_refused():
    async with panel([Saying("yes")]) as society:
        with pytest.raises(UsageError, match="works on vqa tasks, not on caption"):
            await society.ask(CaptionTask())


async def test_a_word_in_place_of_a_task_is_told_what_makes_one():
    async with panel([Saying("yes")]) as society:
        with pytest.raises(UsageError, match="not on str; .*make_task"):
            async with society.mindstorm("What?"):
                pass


@pytest.mark.parametrize("agent", [None, Saying, object()])
def test_what_cannot_speak_is_no_agent(agent):
    with pytest.raises(ConfigError, match="members.m0: .* no object with a method `speak`"):
        panel([agent])


async def test_an_agent_that_cannot_be_opened_is_named():
    class Gone(Saying):
        async def __aenter__(self):
            raise RuntimeError("the device is gone")

        async def __aexit__(self, *_):
            pass

    with pytest.raises(Unavailable, match="Gone cannot be opened: RuntimeError: the device is gone"):
        async with panel([Gone("yes")]):
            pass


def test_a_seat_where_no_turn_may_run_is_refused_and_not_waited_at_for_ever():
    society = panel([Saying("yes")])
    with pytest.raises(ConfigError, match="members.m0.limit: at least 1, not 0"):
        dataclasses.replace(society, seats=[dataclasses.replace(society.seats[0], limit=0)])


async def test_a_prompt_that_cannot_be_made_is_told_with_phase_round_and_member():
    async with panel([Saying("yes")], (ask(prompt=Inline(text="{{ 1 / (round - 1) }}")),)) as society:
        with pytest.raises(UsageError, match="phase 'ballot', round 1, prompt for 'm0': .*division by zero"):
            await society.ask("What?")


async def test_pictures_beside_a_whole_task_are_an_error_and_not_dropped():
    async with panel([Saying("yes")]) as society:
        with pytest.raises(UsageError, match="whole task"):
            await society.ask(VqaTask(question="What?"), choices=["a", "b"])


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"question": 5}, "makes no vqa task"),
        ({"question": "?", "choices": ["a", None]}, "makes no vqa task"),
        ({"question": "?", "choices": "cat"}, "choices='cat': give a list"),
        ({"question": "?", "choices": {"cat", "dog"}}, "give a list"),  # in no order, so no key could be had
        ({"question": "?", "images": b"GIF89a"}, "give a list"),
        ({"question": "?", "extra": ["a"]}, "extra: Input should be a valid dictionary"),
        ({"question": "?", "images": "cat.jpg"}, "images='cat.jpg': give a list"),
    ],
)
async def test_what_makes_no_task_is_told_and_a_word_is_not_taken_for_its_letters(given, told):
    async with panel([Saying("yes")]) as society:
        with pytest.raises(UsageError, match=told):
            await society.ask(**given)


@pytest.mark.parametrize(
    ("phases", "told"),
    [
        ((), "needs at least one phase"),
        ((ask("nobody"),), "no member or role is called 'nobody'"),
        ((ask("memebr"),), "did you mean 'member'"),
        ((ask(wait="certain"), ask(label="more")), "for the last phase"),
        ((ask(hears={"label": "none"}),), "no phase is labelled 'none'"),
        ((Repeat(repeat=2, phases=(ask(),), until=Until(agreement=1, over="x")),), "no phase of this repeat"),
    ],
)
def test_what_cannot_run_is_told_before_it_does(phases, told):
    with pytest.raises(ConfigError, match=told):
        panel([Saying("yes")], phases)


def test_a_society_without_members_is_told():
    with pytest.raises(ConfigError, match="at least one member"):
        panel([])


def test_phases_of_one_label_have_names_of_their_own():
    society = panel([Saying("yes")], (ask(), ask(), ask(name="ballot#2"), ask()))
    names = [step.name for step in society.program.steps]
    assert len(set(names)) == 4


async def test_half_a_surrogate_pair_in_any_part_of_a_task_breaks_nothing():
    async with panel([Saying("yes")], trace=MemoryTrace()) as society:
        odd = "a\ud800"
        extra = {odd: {odd: [odd, 1, None, 0.5]}}
        task = await society.make_task(odd, choices=[odd, "yes"], context=odd, extra=extra)
        assert task.extra == {"a\ufffd": {"a\ufffd": ["a\ufffd", 1, None, 0.5]}}
        assert (await society.ask(task)).answer == "yes"


async def test_a_choice_that_is_there_twice_is_refused_since_no_vote_could_tell_which():
    async with panel([Saying("cat")]) as society:
        with pytest.raises(UsageError, match="one is there twice"):
            await society.ask("What is it?", choices=["cat", "dog", "cat"])
