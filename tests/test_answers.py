import asyncio

import pytest

from nlsom.answers import Answers, NotOpen
from nlsom.config import load
from nlsom.errors import DeadlineExceeded
from nlsom.form import TextForm
from nlsom.media import MediaStore
from nlsom.member import Member
from nlsom.task import VqaTask
from nlsom.turn import Turn
from nlsom_agents.human import Human


def turn(key="k"):
    return Turn(
        task=VqaTask(question="Well?"),
        ask="Say.",
        form=TextForm(),
        member=Member("you"),
        phase="answer",
        round=1,
        seed=0,
        key=key,
        media=MediaStore(),
    )


async def test_the_first_answer_counts_and_serves_all_who_wait_for_the_turn():
    answers = Answers()
    waiting = [asyncio.create_task(answers.ask(turn())) for _ in range(2)]
    await asyncio.sleep(0)
    assert [one.turn.key for one in answers.waiting()] == ["k"]
    answers.give("k", "first")
    with pytest.raises(NotOpen):
        answers.give("k", "second")
    assert await asyncio.gather(*waiting) == ["first", "first"]
    assert answers.waiting() == ()
    with pytest.raises(NotOpen):
        answers.give("k", "third")


async def test_a_turn_whose_deadline_passes_or_that_is_cancelled_is_open_no_more():
    answers = Answers()
    with pytest.raises(DeadlineExceeded, match="did not answer within 0.01 seconds"):
        await answers.ask(turn(), seconds=0.01)
    waiting = asyncio.create_task(answers.ask(turn("other"), seconds=60))
    await asyncio.sleep(0)
    assert answers.get("other").deadline > 0
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert answers.get("other") is None


async def test_a_human_member_says_what_the_person_answers():
    you = Human()
    you.answers = Answers()
    speaking = asyncio.create_task(you.speak(turn()))
    await asyncio.sleep(0)
    you.answers.give("k", " a cat ")
    said = await speaking
    assert said is not None
    assert said.text == "a cat"


async def test_where_nobody_can_be_asked_a_human_member_abstains_and_says_what_to_do():
    society = load(
        {
            "name": "alone",
            "members": {"you": {"agent": "human"}},
            "mindstorm": [{"ask": "you", "prompt": {"text": "Say."}, "as": "ballot"}],
        }
    )
    async with society:
        verdict = await society.ask("Well?")
    assert "nlsom serve" in verdict.abstained[0].cause
