from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from nlsom.form import ChoiceForm, Form, NumberForm, RankingForm, TextForm, YesNoForm
from nlsom.message import Choice, Data, Said
from nlsom.testing.pictures import plain
from nlsom.testing.turns import make_message, make_turn
from nlsom_agents.detect import Detect
from nlsom_agents.sight.detector import Thing
from nlsom_agents.sight.finding import Finding, say
from nlsom_agents.sight.question import read_question
from nlsom_agents.sight.runtime import Sight

PHOTOGRAPHS = Path(__file__).parents[1] / "societies/nlsom_societies/samples/images"
PAVILION = (PHOTOGRAPHS / "900000000001.jpg").read_bytes()
FLOWER = (PHOTOGRAPHS / "900000000002.jpg").read_bytes()
COFFEE = (PHOTOGRAPHS / "900000000003.jpg").read_bytes()
CAT = (PHOTOGRAPHS / "900000000004.jpg").read_bytes()
ASTRONAUT = (PHOTOGRAPHS / "900000000005.jpg").read_bytes()
ROCKET = (PHOTOGRAPHS / "900000000006.jpg").read_bytes()

ANIMALS = ChoiceForm(options=("cat", "dog", "horse", "bird"))


@pytest.fixture(scope="module")
def compiled() -> Sight:
    """Shared by all tests here, so that models are compiled once."""
    return Sight()


@pytest.fixture
async def sight(compiled: Sight) -> AsyncIterator[Sight]:
    """Closed after each test, which ends its threads and keeps its models."""
    async with compiled:
        yield compiled


async def ask(sight: Sight, question: str, *pictures: bytes, form: Form | None = None) -> Said:
    turn = make_turn(question, pictures=pictures, form=form, heard=[make_message(question, label="question")])
    async with Detect(sight=sight) as detect:
        said = await detect.speak(turn)
    assert said is not None
    return said


def thing(name: str, score: float, x: float = 0.5, y: float = 0.5, size: float = 0.2) -> Thing:
    return Thing(name, score, x - size / 2, y - size / 2, x + size / 2, y + size / 2)


def told(question: str, *view: Thing, options: tuple[str, ...] = ()) -> tuple[str | None, str]:
    finding = Detect().answer(tuple(sorted(view, key=lambda t: -t.score)), read_question(question), options)
    return finding.answer, finding.text


async def test_the_cat_is_introduced_counted_placed_and_given_as_data(sight: Sight) -> None:
    async with Detect(sight=sight) as detect:
        said = await detect.speak(make_turn("What animal is this?", pictures=[CAT], phase="caption"))
    assert said is not None
    assert "one cat filling most of the picture" in said.text
    assert "I see no person" in said.text
    assert (said.answer, said.why) == (None, None)
    data = said.parts[1]
    assert isinstance(data, Data)
    assert isinstance(data.value, list)
    picture = data.value[0]
    assert isinstance(picture, dict)
    assert picture["things"][0]["name"] == "cat"  # pyright: ignore


async def test_given_choices_it_votes_for_what_it_sees(sight: Sight) -> None:
    said = await ask(sight, "What animal is this?", CAT, form=ANIMALS)
    assert (said.answer, said.ballot) == ("cat", Choice(choice="cat"))
    assert said.confidence is not None
    assert said.confidence > 0.7


def test_counts_are_voted_for_in_digits_and_in_words() -> None:
    one = say(Finding("I see one cat.", "1", 0.8), ChoiceForm(options=("one", "two")), None, asked=True)
    assert one.answer == "one"
    none = say(Finding("I see no cat.", "0", 0.8), ChoiceForm(options=("yes", "no")), None, asked=True)
    assert none.answer is None
    assert none.why


async def test_given_choices_it_sees_none_of_it_abstains_and_says_why(sight: Sight) -> None:
    said = await ask(sight, "What animal is this?", PAVILION, form=ANIMALS)
    assert (said.answer, said.ballot) == (None, None)
    assert said.why is not None
    assert "Of the choices I see none" in said.why


async def test_a_form_it_cannot_answer_in_is_an_abstention(sight: Sight) -> None:
    said = await ask(sight, "What animal is this?", CAT, form=RankingForm(options=("cat", "dog")))
    assert said.answer is None
    assert said.why


@pytest.mark.parametrize(
    ("picture", "people"), [(PAVILION, "0"), (COFFEE, "0"), (CAT, "0"), (ASTRONAUT, "1"), (ROCKET, "0")]
)
async def test_people_are_counted_on_shipped_photographs(sight: Sight, picture: bytes, people: str) -> None:
    said = await ask(sight, "How many people are there?", picture, form=NumberForm())
    assert said.answer == people


@pytest.mark.parametrize("picture", [PAVILION, FLOWER, COFFEE, CAT, ASTRONAUT, ROCKET])
async def test_there_is_no_dog_on_the_shipped_photographs(sight: Sight, picture: bytes) -> None:
    said = await ask(sight, "Is there a dog?", picture, form=YesNoForm())
    assert said.answer == "no"
    assert said.confidence is not None
    assert said.confidence < 0.8


async def test_a_narrower_word_is_answered_with_half_the_confidence(sight: Sight) -> None:
    person = await ask(sight, "Is there a person?", ASTRONAUT, form=YesNoForm())
    woman = await ask(sight, "Is there a woman?", ASTRONAUT, form=YesNoForm())
    assert person.answer == woman.answer == "yes"
    assert woman.confidence == pytest.approx((person.confidence or 0) / 2, abs=0.001)
    assert "Whether it is a woman I cannot tell for sure" in woman.text


async def test_several_pictures_are_told_apart(sight: Sight) -> None:
    said = await ask(sight, "Is there a cat?", COFFEE, CAT, form=YesNoForm())
    assert said.answer == "yes"
    assert said.text.startswith("Picture 1: I see no cat.\nPicture 2: I see one cat")
    second = await ask(
        sight, "How many people are there in the second picture?", COFFEE, ASTRONAUT, form=NumberForm()
    )
    assert second.answer == "1"
    both = await ask(sight, "How many people are there?", COFFEE, ASTRONAUT, form=NumberForm())
    assert both.answer is None
    assert both.why


async def test_nothing_is_seen_on_a_plain_picture(sight: Sight) -> None:
    said = await ask(sight, "What is in the picture?", plain("white"), form=TextForm())
    assert said.answer is None
    assert "nothing that I know" in said.text


def test_the_doubtful_is_said_to_be_and_the_unsure_left_out() -> None:
    view = (thing("dog", 0.8, 0.1), thing("cat", 0.5, 0.9), thing("cup", 0.35), thing("bird", 0.26))
    text = Detect().introduce(view).text
    assert "I see one dog on the left; confident." in text
    assert "I see one cat on the right; fairly sure." in text
    assert "Perhaps one cup in the centre; unsure." in text
    assert "bird" not in text


def test_counts_leave_out_the_doubtful_but_mention_it() -> None:
    view = (thing("person", 0.8, 0.1), thing("person", 0.6, 0.5), thing("person", 0.35, 0.9))
    answer, text = told("How many people are there?", *view)
    assert answer == "2"
    assert "There may be one more" in text
    assert told("How many boys are there?", *view)[0] == "2"
    assert told("How many red cars are there?", thing("car", 0.9)) == (
        None,
        "I see one car in the centre. Which of them are meant I cannot tell.",
    )
    assert told("How many towers are there?", *view)[0] is None


def test_presence_weighs_all_that_is_named() -> None:
    dog = thing("dog", 0.6)
    assert told("Is there a dog or a cat?", dog)[0] == "yes"
    assert told("Are there a dog and a cat?", dog)[0] == "no"
    assert told("Is there an animal?", dog)[0] == "yes"
    assert told("Is there a puppy?", dog)[0] == "yes"
    assert told("Is there a brown dog?", dog)[0] is None
    assert told("Is there a brown dog?")[0] == "no"
    assert told("Is there only one dog?", dog, thing("dog", 0.7, 0.1))[0] is None
    assert told("Is there a bike?", thing("bicycle", 0.5))[0] == "yes"
    assert told("Is there meat on the table?", thing("dining table", 0.9))[0] is None


def test_absence_of_what_is_easily_missed_is_not_told() -> None:
    assert told("Is there a fork?")[0] is None
    assert told("Are there utensils?")[0] is None
    assert told("Is there a dog?", thing("dog", 0.27))[0] is None


def test_where_and_which_are_answered_for_what_is_seen() -> None:
    view = (thing("dog", 0.8, 0.1), thing("horse", 0.7, 0.9))
    assert told("Where is the dog?", *view)[0] == "on the left"
    assert told("Where is the dog?", *view, options=("left", "right"))[0] == "left"
    assert told("Where is the zebra?", *view)[0] is None
    assert told("Where is the dog running?", *view)[0] is None
    assert told("What animals are shown?", *view)[0] == "dog and horse"
    assert told("What is the dog thinking of?", *view)[0] is None


def test_no_vote_where_seeing_is_not_enough() -> None:
    view = (thing("cat", 0.8), thing("bird", 0.8))
    assert told("What animal is this?", *view, options=("cat", "bird"))[0] is None
    assert told("What would this cat usually eat?", *view, options=("bird", "hay"))[0] is None
