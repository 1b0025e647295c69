"""The VQA challenge's normalisation, and how tasks count answers as the same."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nlsom.task import CaptionTask, VqaTask
from nlsom.task.normalise import CONTRACTIONS, normalise

VECTORS = json.loads((Path(__file__).parent / "vectors" / "vqa_accuracy_vectors.json").read_text("utf-8"))
OPEN = VqaTask(question="What is it?")
CHOICE = VqaTask(question="What is it?", choices=("a dog", "a cat", "unknown"))


@pytest.mark.parametrize("case", VECTORS["cases"], ids=lambda case: str(case["id"]))
def test_an_answer_is_normalised_as_the_challenge_does_it(case):
    assert normalise(case["prediction"]) == case["normalised_prediction"]


def test_a_contraction_is_mended_where_one_apostrophe_is_missing():
    assert CONTRACTIONS["couldnt've"] == CONTRACTIONS["couldn'tve"] == "couldn't've"
    assert "its" not in CONTRACTIONS


@pytest.mark.parametrize(
    ("answer", "counted"),
    [
        ("Red.", "red"),
        ("The answer is: **Red**", "red"),
        ("the two dogs", "2 dogs"),
        ("none", "none"),
        ("None.", "none"),
        ("no", "no"),
        ("0", "0"),
        ("A", "a"),
        ("I don't know", None),
        ("unanswerable", None),
        ("I cannot tell from what I see.", None),
        ("", None),
        ("?", None),
        ("...", None),
    ],
)
def test_open_answers_are_counted_by_their_normal_form(answer, counted):
    assert OPEN.canonical(answer) == counted


@pytest.mark.parametrize(
    ("question", "counted"), [("How many dogs are there?", "0"), ("What is on it?", "none")]
)
def test_none_and_zero_are_one_answer_to_how_many_and_to_nothing_else(question, counted):
    assert VqaTask(question=question).canonical("None.") == counted
    assert VqaTask(question=question).canonical("zero") == "0"


@pytest.mark.parametrize(
    ("answer", "counted"),
    [
        ("B", "a cat"),
        ("(b)", "a cat"),
        ("A cat.", "a cat"),
        ("The answer is a dog", "a dog"),
        ("a dog or a cat", None),
        ("I don't know", None),
        ("unknown", "unknown"),
        ("Unknown.", "unknown"),
        ("C", "unknown"),
        ("a horse", None),
    ],
)
def test_choices_are_counted_by_the_option_that_is_meant(answer, counted):
    assert CHOICE.canonical(answer) == counted


def test_an_option_that_is_called_like_a_letter_stays_itself_when_it_was_read_already():
    letters = VqaTask(question="Which letter is on the sign?", choices=("B", "A"))
    assert letters.canonical("A") == "A"


@given(st.text(max_size=40))
def test_counting_an_answer_twice_counts_it_once(text):
    once = CHOICE.canonical(text)
    assert once is None or CHOICE.canonical(once) == once


def test_a_caption_is_counted_on_one_line():
    task = CaptionTask()
    assert task.canonical("  A cup\n of coffee. ") == "A cup of coffee."
    assert task.canonical(" \n") is None
