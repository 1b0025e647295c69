from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest

from nlsom.form import ChoiceForm, Form, NumberForm, TextForm, YesNoForm
from nlsom.message import Said
from nlsom.testing.pictures import plain
from nlsom.testing.turns import make_message, make_turn
from nlsom_agents.sight import tagger
from nlsom_agents.sight.question import read_question
from nlsom_agents.sight.runtime import Floats, Sight
from nlsom_agents.tag import Tag

PHOTOGRAPHS = Path(__file__).parents[1] / "societies/nlsom_societies/samples/images"
COFFEE = (PHOTOGRAPHS / "900000000003.jpg").read_bytes()
CAT = (PHOTOGRAPHS / "900000000004.jpg").read_bytes()


@pytest.fixture(scope="module")
def compiled() -> Sight:
    """Shared by all tests here, so that models are compiled once."""
    return Sight()


@pytest.fixture
async def sight(compiled: Sight) -> AsyncIterator[Sight]:
    """Closed after each test, which ends its threads and keeps its models."""
    async with compiled:
        yield compiled


async def ask(sight: Sight, question: str, picture: bytes, form: Form | None = None) -> Said:
    heard = [make_message(question, label="question")]
    async with Tag(sight=sight) as tag:
        said = await tag.speak(make_turn(question, pictures=[picture], form=form, heard=heard))
    assert said is not None
    return said


def probabilities(**shares: float) -> Floats:
    view = np.zeros(1000, dtype=np.float32)
    for label, share in shares.items():
        view[tagger.labels().index(label.replace("_", " "))] = share
    return view


async def test_the_coffee_is_introduced_as_coffee(sight: Sight) -> None:
    async with Tag(sight=sight) as tag:
        said = await tag.speak(make_turn(pictures=[COFFEE], phase="caption"))
    assert said is not None
    assert said.text.startswith("As a whole the picture looks like coffee")
    assert "espresso" in said.text


async def test_it_votes_cat_for_the_cat_and_espresso_for_the_coffee(sight: Sight) -> None:
    cat = await ask(sight, "What animal is this?", CAT, ChoiceForm(options=("cat", "dog", "horse", "bird")))
    assert cat.answer == "cat"
    assert cat.confidence is not None
    assert cat.confidence > 0.8
    drink = await ask(
        sight, "What drink is in the cup?", COFFEE, ChoiceForm(options=("tea", "an espresso", "milk"))
    )
    assert drink.answer == "an espresso"


async def test_it_abstains_from_choices_that_it_does_not_see(sight: Sight) -> None:
    said = await ask(sight, "What animal is this?", COFFEE, ChoiceForm(options=("dog", "horse")))
    assert said.answer is None
    assert said.why is not None
    assert "Of the choices: dog 0 %, horse 0 %." in said.why


async def test_it_says_that_something_is_there_but_never_that_it_is_not(sight: Sight) -> None:
    assert (await ask(sight, "Is there a kitten?", CAT, YesNoForm())).answer == "yes"
    absent = await ask(sight, "Is there a dog?", CAT, YesNoForm())
    assert absent.answer is None
    assert absent.why is not None
    assert "a dog with" in absent.why


async def test_it_cannot_count(sight: Sight) -> None:
    said = await ask(sight, "How many cats are there?", CAT, NumberForm())
    assert said.answer is None
    assert "a cat with 9" in said.text


async def test_kinds_are_named(sight: Sight) -> None:
    said = await ask(sight, "What animal is this?", CAT, TextForm())
    assert said.answer == "cat"
    assert (await ask(sight, "What is this?", plain("white"))).why is not None


def test_common_nouns_hold_what_they_say() -> None:
    labels = tagger.labels()
    assert len(labels) == 1000
    held = {noun: {labels[at] for at in places} for noun, places in tagger.kinds().items()}
    assert held["cat"] == {"tabby", "tiger cat", "Persian cat", "Siamese cat", "Egyptian cat"}
    assert {"Chihuahua", "Mexican hairless", "golden retriever"} <= held["dog"]
    assert not held["dog"] & {"timber wolf", "dingo", "sea lion"}
    assert {"cock", "albatross", "goose"} <= held["bird"]
    assert not held["bird"] & {"tusker", "European fire salamander", "grey whale"}
    assert {"puffer", "tench", "stingray"} <= held["fish"]
    assert {"admiral", "ant", "dragonfly"} <= held["insect"]
    assert {"guacamole", "burrito", "pizza"} <= held["food"]
    assert {"agaric", "bolete"} <= held["mushroom"]
    assert {"strawberry", "pomegranate"} <= held["fruit"]
    assert {"broccoli", "artichoke"} <= held["vegetable"]
    assert {"baboon", "squirrel monkey"} <= held["monkey"]
    assert {"gorilla", "orangutan"} <= held["ape"]


def test_the_narrowest_noun_that_probably_holds_is_told() -> None:
    tag = Tag()
    assert "looks like a dog (60 %)" in tag.introduce(probabilities(pug=0.3, beagle=0.3)).text
    assert "looks like a pizza (90 %)" in tag.introduce(probabilities(pizza=0.9)).text
    assert "perhaps shows a banana" in tag.introduce(probabilities(banana=0.35)).text
    assert "nothing that I know" in tag.introduce(probabilities(banana=0.2)).text


def test_choices_that_are_about_as_likely_are_not_voted_on() -> None:
    tag = Tag()
    view = probabilities(pug=0.3, tabby=0.25)
    question = read_question("What animal is this?")
    assert tag.answer(view, question, ("dog", "cat")).answer is None
    assert tag.answer(view, question, ("dog", "horse")).answer == "dog"
    assert tag.answer(view, read_question("Why would it bark?"), ("dog", "horse")).answer is None


@pytest.mark.parametrize("option", ["", "???", "a thing that nobody knows"])
def test_odd_options_are_no_nouns(option: str) -> None:
    assert tagger.noun_of(option) is None
