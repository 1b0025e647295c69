"""Real models in a society answer about real pictures: the embedded default, end to end."""

from __future__ import annotations

import pytest

import nlsom
from nlsom.event import Spoke
from nlsom_societies.samples import sample

pytestmark = pytest.mark.real_model

ANIMALS = ("cat", "dog", "horse", "bird")


async def test_the_monarchy_and_the_democracy_see_the_cat():
    for name in ("vqa-monarchy", "vqa-democracy"):
        async with nlsom.load(name) as society:
            verdict = await society.ask("What animal is this?", images=[sample("cat")], choices=ANIMALS)
        assert verdict.answer == "cat", name
        assert verdict.usage.calls > 0
        assert verdict.usage.prompt_tokens > 100
        assert verdict.usage.cached_tokens is None, "the engine does not say, and nobody guesses"


async def test_a_page_of_print_is_read():
    async with nlsom.load("solo") as society:
        task = await society.make_task("What does the first line say?", images=[sample("page")])
        async with society.mindstorm(task) as storm:
            said = [event.message async for event in storm if isinstance(event, Spoke)]
            verdict = await storm.verdict()
    assert "lighthouse keeper's log" in (verdict.answer or "").lower()
    assert any(message.sender == "eyes.ocr" for message in said)


PEOPLE = {"cat": "0", "coffee": "0", "astronaut": "1", "rocket": "0"}


async def test_people_are_counted_and_a_dog_is_looked_for():
    right: list[str] = []
    async with nlsom.load("solo") as society:
        for name, people in PEOPLE.items():
            counted = await society.ask(
                "How many people are there?", images=[sample(name)], choices=["0", "1", "2", "3"]
            )
            dog = await society.ask("Is there a dog?", images=[sample(name)], choices=["yes", "no"])
            right += [name] if (counted.answer, dog.answer) == (people, "no") else []
    assert right == list(PEOPLE)
