import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nlsom_serve.app.choices import Asked, read_choices

QUESTIONS = st.sampled_from(
    [
        "What is this?",
        "Welche Farbe hat das Auto?",
        "Wie viele?",
        "写真には何が写っていますか?",
        "How many cats are there",
    ]
)
WORDS = (
    st.text(
        st.characters(whitelist_categories=("Ll", "Lu", "Nd"), whitelist_characters=" '-"),
        min_size=1,
        max_size=30,
    )
    .map(lambda text: " ".join(text.split()))
    .filter(lambda text: bool(text) and text.strip(" -'") == text)
)
OPTIONS = st.lists(WORDS, min_size=2, max_size=26, unique=True)
STYLES = st.sampled_from(["({})", "{}.", "{})", "{}:"])
LETTERS = st.sampled_from([string.ascii_uppercase, string.ascii_lowercase])


@given(QUESTIONS, OPTIONS, STYLES, LETTERS)
def test_options_one_a_line_are_read_back_in_every_style(question, options, style, letters):
    lines = [f"{style.format(letters[at])} {option}" for at, option in enumerate(options)]
    asked = read_choices("\n".join([question, *lines]))
    assert asked == Asked(question, tuple(options), "text", tuple(letters[: len(options)]))


@given(OPTIONS, STYLES, LETTERS)
def test_options_on_one_line_are_read_back_where_they_are_marked_off(options, style, letters):
    options = [option for option in options if len(option) > 3][:6]
    if len(options) < 2:
        return
    inline = " ".join(f"{style.format(letters[at])} {option}" for at, option in enumerate(options))
    asked = read_choices(f"What is this? {inline}")
    assert asked.question == "What is this?"
    assert asked.choices == tuple(options)


@given(st.text(max_size=400))
def test_any_text_is_taken_apart_without_an_error_and_its_options_stand_in_it(text):
    asked = read_choices(text)
    assert len(asked.choices) != 1
    assert all(choice in text for choice in asked.choices)
    assert asked.choices or asked.question == text.strip()


@given(OPTIONS)
def test_writing_an_option_as_a_letter_and_reading_the_letter_gives_the_option(options):
    asked = Asked("Which?", tuple(options), "letter", tuple(string.ascii_uppercase[: len(options)]))
    assert [options[string.ascii_uppercase.index(asked.write(option))] for option in options] == options


@pytest.mark.parametrize(
    ("text", "question", "choices", "reply"),
    [
        ("What animal? A. cat B. dog", "What animal?", ("cat", "dog"), "text"),
        ("What animal? (a) a cat (b) a dog", "What animal?", ("a cat", "a dog"), "text"),
        ("What animal?\nA. cat\nB. dog", "What animal?", ("cat", "dog"), "text"),
        ("What animal?\n\nA) cat\n\nB) dog\n", "What animal?", ("cat", "dog"), "text"),
        (
            "What animal?\nA. cat\nB. dog\nAnswer with the option's letter from the given choices directly.",
            "What animal?",
            ("cat", "dog"),
            "letter",
        ),
        (
            "What animal? A. cat B. dog. Answer with the letter only.",
            "What animal?",
            ("cat", "dog"),
            "letter",
        ),
        (
            "Please select the correct letter.\nWhat animal?\nA: cat\nB: dog",
            "What animal?",
            ("cat", "dog"),
            "letter",
        ),
        (
            "Answer the following multiple choice question. The entire content of your response should be "
            "of the following format: 'ANSWER: $LETTER' (without quotes) where LETTER is one of A,B.\n\n"
            "What animal?\n\nA) cat\nB) dog",
            "Answer the following multiple choice question. What animal?",
            ("cat", "dog"),
            "labelled",
        ),
        ("Which letter is on the sign? A. K B. Z", "Which letter is on the sign?", ("K", "Z"), "text"),
    ],
)
def test_how_people_and_benchmarks_write_options(text, question, choices, reply):
    asked = read_choices(text)
    assert (asked.question, asked.choices, asked.reply) == (question, choices, reply)


@pytest.mark.parametrize(
    "text",
    [
        "Is this vitamin A or vitamin B?",
        "This was said by A. Smith and B. Jones.",
        "A. cat",
        "Which?\nA. cat\nC. dog",
        "Which?\nB. cat\nA. dog",
        "Which?\nA. cat\nB. cat",
        "A. cat\nB. dog",
        "Compare (a) the left and (b) the right picture.",
        "What is 3.5 + 2?",
        "",
    ],
)
def test_what_is_no_multiple_choice_stays_an_open_question(text):
    assert read_choices(text).choices == ()


def test_an_answer_that_is_counted_in_another_spelling_is_still_its_option():
    asked = Asked("Which?", ("The Cat", "A Dog"), "letter", ("A", "B"))
    assert asked.write("cat", ("cat", "dog")) == "A"
    assert asked.write("horse", ("cat", "dog")) == "horse"
