import pytest
from hypothesis import given
from hypothesis import strategies as st

from nlsom.form import ChoiceForm, Form, NumberForm, TextForm, YesNoForm
from nlsom.task import CaptionTask
from nlsom.testing.turns import make_message, make_turn
from nlsom_agents.sight.detector import NAMES
from nlsom_agents.sight.question import options_of, question_of, read_question
from nlsom_agents.sight.words import plural, tokens


@pytest.mark.parametrize(
    ("text", "sort", "asked"),
    [
        ("How many people are there?", "count", "person"),
        ("how many yellow traffic lights are hanging at the top", "count", "yellow traffic light"),
        ("Is there a dog?", "presence", "dog"),
        ("Are there any people in this picture?", "presence", "person"),
        ("Can you see a cat or a dog on the sofa?", "presence", "cat dog"),
        ("Does the image contain a horse?", "presence", "horse"),
        ("Is a bus visible?", "presence", "bus"),
        ("Is anyone sitting at the desk?", "presence", "anyone"),
        ("Is this a double decker bus?", "presence", "double decker bus"),
        ("Is there meat on the table?", "presence", "meat"),
        ("Is there only one person?", "presence", "only one person"),
        ("Are there no people?", "other", ""),
        ("What is there on the table?", "what", ""),
        ("Is the laptop open?", "other", ""),
        ("Is it sunny?", "other", ""),
        ("What colour is the cat?", "colour", ""),
        ("What color are the cat's eyes?", "colour", ""),
        ("Where is the dog?", "where", ""),
        ("Is the dog on the left or the right?", "where", ""),
        ("What does the first line say?", "words", ""),
        ("What number is on the bus?", "words", ""),
        ("What is the name of the restaurant?", "words", ""),
        ("What is in the picture?", "all", ""),
        ("What do you see?", "all", ""),
        ("What are these objects?", "all", ""),
        ("Describe the scene.", "all", ""),
        ("What animal is this?", "what", ""),
        ("What is the cat standing on?", "what", ""),
        ("Tell me more about it.", "other", ""),
    ],
)
def test_the_sort_of_a_question_and_what_it_asks_for_are_read(text: str, sort: str, asked: str) -> None:
    question = read_question(text)
    assert (question.sort, " ".join(question.asked)) == (sort, asked)


def test_what_needs_knowledge_of_the_world_is_not_plain() -> None:
    assert read_question("What animal is this?").plain
    assert not read_question("What would a cat usually try to do with this animal?").plain
    assert not read_question("What is this man's job most likely?").plain


def test_of_several_sentences_the_question_is_read() -> None:
    question = read_question("I wonder about animals. Question: Is there a cat? Please look closely.")
    assert (question.sort, question.asked) == ("presence", ("cat",))


@given(st.text())
def test_any_text_can_be_read_as_a_question(text: str) -> None:
    question = read_question(text)
    assert set(question.asked) <= set(question.said)


@given(
    st.sampled_from(NAMES),
    st.sampled_from(["How many {} are there?", "Are there any {} in the photo?", "Can you see {}?"]),
    st.sampled_from([str, str.upper, str.title]),
)
def test_any_class_that_is_asked_for_is_found_in_the_question(name: str, frame: str, case: type[str]) -> None:
    assert read_question(case(frame.format(plural(name)))).asked == tokens(name)


def test_the_last_message_labelled_question_is_the_question() -> None:
    heard = [
        make_message("Is there a cat?", label="question"),
        make_message("I see one cat.", sender="eyes"),
        make_message("Is there a dog?", label="question", round=2),
        make_message("What about you?", sender="eyes"),
    ]
    for form in (TextForm(), YesNoForm(), NumberForm()):
        assert question_of(make_turn("What is it?", heard=heard, form=form)) == "Is there a dog?"


def test_a_ballot_over_options_answers_the_task_whatever_was_heard() -> None:
    heard = [make_message("Is there a dog?", label="question")]
    turn = make_turn("What animal is this?", heard=heard, form=ChoiceForm(options=("cat", "dog")))
    assert question_of(turn) == "What animal is this?"
    assert options_of(turn) == ("cat", "dog")


@pytest.mark.parametrize(
    ("phase", "ask"),
    [
        ("caption", ""),
        ("introduce", ""),
        ("p1", "Describe what you see in one or two sentences."),
        ("p1", "Introduce the picture."),
        ("p1", ""),
    ],
)
def test_free_text_with_nothing_heard_introduces(phase: str, ask: str) -> None:
    assert question_of(make_turn("Is there a dog?", phase=phase, ask=ask)) is None


def test_an_introduction_that_is_asked_for_by_name_stays_one_after_answers_were_heard() -> None:
    heard = [make_message("I see one cat.", sender="eyes")]
    assert question_of(make_turn("Is there a dog?", phase="caption", heard=heard)) is None
    assert question_of(make_turn("Is there a dog?", phase="answer", heard=heard)) == "Is there a dog?"


@pytest.mark.parametrize("form", [YesNoForm(), NumberForm(), TextForm(short=True)])
def test_a_turn_that_wants_an_answer_asks_the_tasks_question(form: Form) -> None:
    assert question_of(make_turn("Is there a dog?", form=form)) == "Is there a dog?"


def test_a_caption_task_asks_for_an_introduction() -> None:
    assert question_of(make_turn("Caption this.", task=CaptionTask, phase="draft")) is None


def test_an_ask_that_is_one_question_is_the_question() -> None:
    assert question_of(make_turn("What is it?", ask="How many cats are there?")) == "How many cats are there?"
