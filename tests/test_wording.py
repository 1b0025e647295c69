"""An open answer is counted in normalised form, and reported in the words in which it was given."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nlsom.bench.line import decided, line_of
from nlsom.bench.sample import Sample
from nlsom.bench.scores.vqa import judge_by, vqa_accuracy
from nlsom.blueprint import VerdictBy
from nlsom.phase import Ask, Inline
from nlsom.rules import Plurality, Schulze
from nlsom.task import VqaTask
from nlsom.testing.agents import Saying, panel
from nlsom.trace import MemoryTrace
from nlsom.wording import wordings

TASK = VqaTask(question="What is it?")


async def ask(*said, trace=None, **more):
    async with panel([Saying(one) for one in said], trace=trace, **more) as society:
        return await society.ask(TASK)


async def test_an_answer_is_told_in_the_words_that_most_of_its_voters_used():
    verdict = await ask("red car", "A red car.", "The answer is: A red car", "Paris", "a red car")
    assert verdict.answer == "A red car"
    assert verdict.counted == "red car"
    assert verdict.tally == {"A red car": 4, "Paris": 1}


async def test_of_words_used_as_often_those_of_the_first_member_count():
    assert (await ask("Paris", "paris", "PARIS")).answer == "Paris"


async def test_tied_answers_are_told_in_words_too():
    verdict = await ask("Paris", "The Louvre")
    assert verdict.answer is None
    assert verdict.tied == ("Paris", "The Louvre")


async def test_the_tie_break_acts_on_answers_as_they_are_counted():
    verdict = await ask("Paris", "Oslo", verdict=VerdictBy(Plurality(), "plurality", tie_break="first"))
    assert verdict.answer == "Paris"
    assert verdict.counted == "paris"


async def test_a_ballot_over_answers_given_is_told_in_the_words_they_were_given_in():
    def say(first, then):
        return lambda turn: then if turn.phase == "ballot" else first

    phases = [
        Ask(ask="everyone", prompt=Inline(text="Propose."), label="answer", form="answer"),
        Ask(ask="everyone", prompt=Inline(text="Rank."), label="ballot", form="ranking"),
    ]
    society = panel(
        [Saying(say("Paris", "A > B")), Saying(say("The Louvre", "A > B")), Saying(say("Paris", "B > A"))],
        phases,
        verdict=VerdictBy(Schulze(), "schulze"),
    )
    async with society:
        verdict = await society.ask(TASK)
    assert verdict.answer == "Paris"
    assert set(verdict.tally) == {"Paris", "The Louvre"}
    assert verdict.pairwise == {"Paris": {"The Louvre": 2}, "The Louvre": {"Paris": 1}}


async def test_choices_keep_their_own_words():
    async with panel([Saying("the a CAT"), Saying("cat"), Saying("dog")]) as society:
        verdict = await society.ask("What?", choices=["Cat", "Dog"])
    assert verdict.answer == verdict.counted == "Cat"
    assert verdict.tally == {"Cat": 2, "Dog": 1}


async def test_a_run_that_is_taken_up_again_tells_the_same_words():
    trace = MemoryTrace()
    said = ("a red car", "A red car", "A red car")
    first = await ask(*said, trace=trace)
    again = await ask("nobody", "is", "asked", trace=trace)
    assert again.usage.calls == 0
    assert (again.answer, again.tally) == (first.answer, first.tally) == ("A red car", {"A red car": 3})


async def test_a_benchmark_scores_the_answer_as_it_is_counted():
    sample = Sample(id="1", task=TASK, answers=("red car",) * 10)
    line = decided(line_of("panel", 0, sample, TASK), await ask("A red car", "A Red Car"))
    assert line.answer == "red car"
    score = judge_by(vqa_accuracy)(line.answer, sample)
    assert score.official == score.lenient == 1.0  # where all agree, the challenge normalises nothing


OPEN = st.lists(st.text(st.sampled_from("aA ,.;-5'\"[]x\nthe")), max_size=12) | st.lists(
    st.text(), max_size=8
)


@given(OPEN)
def test_different_answers_are_told_in_different_words_and_each_counts_as_what_it_tells(said):
    given = [(counted, words) for words in said if (counted := TASK.canonical(words)) is not None]
    alternatives = tuple(dict.fromkeys(counted for counted, _ in given))
    found = wordings(alternatives, given, TASK)
    told = [found.get(one, one) for one in alternatives]
    assert len(set(told)) == len(alternatives)
    assert all(TASK.canonical(words) == one or words == one for one, words in found.items())


@pytest.mark.parametrize(
    ("said", "told"),
    [("The answer is **Paris**.", "Paris"), ("  A\n red   car ", "A red car"), ("two", "two"), ("A", "A")],
)
def test_the_wording_leaves_out_only_what_is_around_an_answer(said, told):
    assert TASK.wording(said) == told


def test_how_many_is_told_in_digits() -> None:
    task = VqaTask(question="How many people are there?")
    assert [task.wording(answer) for answer in ("None", "One", "The answer is two.")] == ["0", "1", "2"]
