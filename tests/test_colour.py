import io
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from nlsom.form import ChoiceForm, Form, TextForm, YesNoForm
from nlsom.message import Said
from nlsom.testing.pictures import encoded, plain
from nlsom.testing.turns import make_message, make_turn
from nlsom_agents.colour import Colour, Palette
from nlsom_agents.sight.detector import Thing
from nlsom_agents.sight.palette import NAMES, colours_named, lab, name_pixels, shares
from nlsom_agents.sight.question import read_question
from nlsom_agents.sight.runtime import Sight

PHOTOGRAPHS = Path(__file__).parents[1] / "societies/nlsom_societies/samples/images"
FLOWER = (PHOTOGRAPHS / "900000000002.jpg").read_bytes()
CAT = (PHOTOGRAPHS / "900000000004.jpg").read_bytes()
ROCKET = (PHOTOGRAPHS / "900000000006.jpg").read_bytes()


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
    async with Colour(sight=sight) as colour:
        said = await colour.speak(make_turn(question, pictures=[picture], form=form, heard=heard))
    assert said is not None
    return said


def scene() -> Palette:
    """A black dog on the left and a red car on the right, on green ground under a blue sky."""
    picture = Image.new("RGB", (400, 400), "skyblue")
    picture.paste("green", (0, 240, 400, 400))
    picture.paste("black", (20, 160, 140, 280))
    picture.paste("red", (240, 160, 380, 280))
    things = (Thing("dog", 0.8, 0.05, 0.4, 0.35, 0.7), Thing("car", 0.7, 0.6, 0.4, 0.95, 0.7))
    return Palette(name_pixels(np.asarray(picture)), things, 1.0)


def told(question: str, *options: str) -> str | None:
    return Colour().answer(scene(), read_question(question), options).answer


@pytest.mark.parametrize(
    ("css", "name"),
    [
        ("black", "black"), ("white", "white"), ("gray", "grey"), ("red", "red"), ("darkred", "red"),
        ("orange", "orange"), ("yellow", "yellow"), ("green", "green"), ("limegreen", "green"),
        ("navy", "blue"),
        ("royalblue", "blue"), ("skyblue", "blue"), ("purple", "purple"), ("pink", "pink"),
        ("hotpink", "pink"),
        ("saddlebrown", "brown"), ("tan", "beige"), ("turquoise", "turquoise"), ("teal", "turquoise"),
    ],
)  # fmt: skip
def test_colours_have_the_names_that_people_give_them(css: str, name: str) -> None:
    picture = Image.open(io.BytesIO(plain(css, (20, 10))))
    assert shares(name_pixels(np.asarray(picture))) == {name: 1.0}


def test_lab_has_its_reference_values() -> None:
    # Of sRGB red, green, blue and white under D65, to the second digit.
    rgb = np.array([[255, 0, 0], [0, 255, 0], [0, 0, 255], [255, 255, 255]], dtype=np.uint8)
    wanted = [[53.24, 80.09, 67.20], [87.73, -86.18, 83.18], [32.30, 79.19, -107.86], [100, 0, 0]]
    assert np.allclose(lab(rgb), wanted, atol=0.05)


def test_the_thing_that_is_named_is_looked_at() -> None:
    assert told("What color is the dog?") == "black"
    assert told("What colour is the automobile?") == "red"
    assert told("What color is the sky?") == "blue"
    assert told("What color is the grass?") == "green"
    assert told("What color is the dog's collar?") is None
    assert told("What color is the zebra?") is None


def test_of_several_things_the_question_has_to_say_which_is_meant() -> None:
    picture = Image.new("RGB", (400, 400), "white")
    picture.paste("blue", (0, 100, 160, 200))
    picture.paste("red", (240, 100, 400, 200))
    things = (Thing("car", 0.8, 0, 0.25, 0.4, 0.5), Thing("car", 0.7, 0.6, 0.25, 1, 0.5))
    cars = Palette(name_pixels(np.asarray(picture)), things, 1.0)

    def answer(question: str) -> str | None:
        return Colour().answer(cars, read_question(question), ()).answer

    assert answer("What color is the car on the right?") == "red"
    assert answer("Is the car on the left red?") == "no"
    assert answer("What color is the car?") == "blue"
    assert answer("What color is the car that the man is washing?") is None


def test_clothes_are_looked_for_on_the_person_who_is_meant() -> None:
    picture = Image.new("RGB", (400, 400), "white")
    picture.paste("blue", (40, 0, 120, 400))
    picture.paste("red", (240, 0, 360, 400))
    people = (Thing("person", 0.8, 0.1, 0, 0.3, 1), Thing("person", 0.8, 0.6, 0, 0.9, 1))
    pair = Palette(name_pixels(np.asarray(picture)), people, 1.0)
    found = Colour().answer(pair, read_question("What color are the pants of the man on the left?"), ())
    assert found.answer == "blue"
    assert "the pants of the person on the left" in found.text


def test_colours_are_confirmed_denied_and_chosen() -> None:
    assert told("Is the car red?") == "yes"
    assert told("Is the car blue?") == "no"
    assert told("Is there a red car?") == "yes"
    assert told("What color is the car?", "blue", "red", "green") == "red"
    assert told("What color is the car?", "navy", "white") is None
    assert told("How many dogs are there?") is None


async def test_the_flower_in_the_middle_is_orange(sight: Sight) -> None:
    said = await ask(sight, "What color is the flower?", FLOWER, TextForm(short=True))
    assert said.answer == "orange"
    assert said.confidence is not None
    assert said.confidence < 0.5
    assert "if that is the flower" in said.text
    vote = await ask(
        sight, "What color is the flower?", FLOWER, ChoiceForm(options=("blue", "orange", "white"))
    )
    assert vote.answer == "orange"


async def test_the_sky_over_the_rocket_is_blue_and_the_cat_is_brown(sight: Sight) -> None:
    assert (await ask(sight, "What color is the sky?", ROCKET)).answer == "blue"
    cat = await ask(sight, "What color is the cat?", CAT)
    assert cat.answer == "brown"
    assert "The cat filling most of the picture is brown" in cat.text


async def test_questions_that_are_not_about_colour_are_not_answered(sight: Sight) -> None:
    said = await ask(sight, "Is there a dog?", CAT, YesNoForm())
    assert said.answer is None
    assert said.why == "I see nothing but colours, so I cannot tell."


async def test_an_introduction_names_the_main_colours(sight: Sight) -> None:
    half = Image.new("RGB", (100, 100), "red")
    half.paste("white", (0, 0, 100, 50))
    async with Colour(sight=sight) as colour:
        said = await colour.speak(make_turn(pictures=[encoded(half)], phase="caption"))
    assert said is not None
    assert said.text.startswith("Main colours: white (50 %) and red (50 %).")


def test_colour_words_are_read_by_our_names() -> None:
    assert colours_named("a gray and navy coat, REDdish") == ("grey", "blue")
    assert set(colours_named(" ".join(NAMES))) == set(NAMES)
