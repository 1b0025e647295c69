"""Yes and no, numbers, "I don't know", short answers, and the decoration around them."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nlsom.reading import clean, read_number, read_short, read_yes_no, says_unknown
from nlsom.reading.number import number_in_words

POPE = json.loads((Path(__file__).parent / "vectors" / "pope_vectors.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", POPE["parse"], ids=lambda case: case["text"][:30])
def test_yes_and_no_are_read_as_a_person_reads_them(case):
    expected = None if case["expected"] == "unclear" else case["expected"]
    assert read_yes_no(case["text"])[0] == expected


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("Yes, there is no doubt.", "yes"),
        ("No, there isn't.", "no"),
        ("Notice the sign", None),
        ("A Norwegian flag", None),
        ("Yesterday", None),
        ("No doubt about it: yes", "yes"),
        ("There are none.", "no"),
        ("I can see two dogs.", "yes"),
        ("I cannot see any dog.", "no"),
        ("I cannot tell if there is a dog.", None),
        ("It is.", "yes"),
        ("It isn't.", "no"),
        ("There may be a dog.", None),
        ("Is there a dog? Yes.", "yes"),
        ("The answer is yes. There is no cat, though.", "yes"),
        ("yes or no", None),
        ("No. Yes.", None),
        ("I looked closely. No.", "no"),
        ("true", "yes"),
        ("**Yes**", "yes"),
        ("\\boxed{no}", "no"),
        ("I would say no.", "no"),
        ("I think yes", "yes"),
        ("Well, actually no", "no"),
        ("Unfortunately, no.", "no"),
        ("I say it is no trouble", None),
        ("dog: yes", "yes"),
        ("Options: yes or no", None),
        ("Is it a dog: yes? No, I cannot say: no", None),
        ("I don't think so.", "no"),
        ("I think so", "yes"),
        ("Definitely not!", "no"),
        ("Of course.", "yes"),
        ("So, yes and no", None),
    ],
)
def test_a_reply_says_yes_or_no_only_where_it_does(reply, expected):
    assert read_yes_no(reply)[0] == expected


@pytest.mark.parametrize(
    ("reply", "decimals", "expected"),
    [
        ("3", False, "3"),
        ("There are 3 dogs.", False, "3"),
        ("three", False, "3"),
        ("There are twenty-one birds", False, "21"),
        ("1,000", False, "1000"),
        ("3.0", False, "3"),
        ("3.5", False, None),
        ("3.5", True, "3.5"),
        ("-4", False, "-4"),
        ("2 or 3", False, None),
        ("2 red and 1 blue, so the answer is 3.", False, "3"),
        ("2 + 1 = 3", False, "3"),
        ("12:30", False, None),
        ("room 4b", False, None),
        ("none", False, None),
        ("no idea", False, None),
        ("", False, None),
        ("Answer: **7**", False, "7"),
        ("two hundred", False, None),
        ("twenty-two hundred of them", False, None),
        ("Answer: 3 million", False, None),
        ("Answer: 3\nOf one hundred.", False, "3"),
        ("minus five", False, "-5"),
        ("It is negative 12.", False, "-12"),
        ("7 minus 5 = 2", False, "2"),
        ("٣", False, "3"),
        ("१२", False, "12"),
    ],
)
def test_the_one_number_of_a_reply_is_read(reply, decimals, expected):
    assert read_number(reply, decimals=decimals)[0] == expected


@given(st.integers(-(10**6), 10**6))
def test_every_whole_number_is_read_as_itself(number):
    assert read_number(f"I count {number} of them.")[0] == str(number)


@pytest.mark.parametrize(
    ("words", "value"),
    [("twelve", 12), ("forty-two", 42), ("ninety nine", 99), ("one two", None), ("", None), ("cat", None)],
)
def test_number_words_have_their_value(words, value):
    assert number_in_words(words) == value


@pytest.mark.parametrize(
    "reply",
    [
        "I don't know.", "I do not know", "idk", "unknown", "Unanswerable.", "I cannot tell from what I see.",
        "I can't determine that.", "It is unclear", "I'm not sure", "Not sure", "not enough information",
        "It is impossible to tell", "I'm sorry, but I can't help with that.", "cannot be determined",
        "There is no way to know", "n/a", "?", "**unknown**", "I am unable to see enough", "No idea!",
        "The answer is unknown.", "I really don't know", "I can not tell",
    ],
)  # fmt: skip
def test_a_reply_that_knows_no_answer_is_an_abstention(reply):
    assert says_unknown(reply)


@pytest.mark.parametrize(
    "reply",
    [
        "no", "none", "red", "a can of beans", "He can tell the time", "the unknown soldier's grave",
        "I know: red",
        "clear sky", "It is a cat", "the canteen", "a certain dog", "nothing", "sure", "It says 'no entry'",
    ],
)  # fmt: skip
def test_an_answer_is_not_taken_for_an_abstention(reply):
    assert not says_unknown(reply)


@pytest.mark.parametrize(
    ("reply", "short"),
    [
        ("red", "red"),
        ("Red.", "Red"),
        ("**red**", "red"),
        ("Answer: red", "red"),
        ("The answer is red.", "red"),
        ('"red"', "red"),
        ("It looks hot. Answer: red", "red"),
        ("So the answer is: red!", "red"),
        ("<think>blue?</think>red", "red"),
        ("u.s.", "u.s."),
        ("It is red.", "It is red"),
        ("", ""),
        ("3.5", "3.5"),
        (".", ""),
    ],
)
def test_the_short_answer_is_what_is_left_without_dress(reply, short):
    assert read_short(reply) == short


@given(st.text(max_size=60))
def test_a_short_answer_was_said(text):
    assert read_short(text) in clean(text)


@pytest.mark.parametrize(
    ("reply", "plain"),
    [
        ("**B**", "B"),
        ("*B*", "B"),
        ("`B`", "B"),
        ("### B", "B"),
        ("- B", "B"),
        ("$B$", "B"),
        ("costs $7 or $8", "costs $7 or $8"),
        ("\\boxed{\\text{B}}", "Answer: B"),
        ("<answer>B</answer>", "Answer: B"),
        ("~~A~~ B", "B"),
        ("<think>A", ""),
        ("A</think>B", "B"),
        ("（Ｂ）", "(B)"),
        ("snake_case stays", "snake_case stays"),
        ("it’s", "it's"),
        ("a\n\n  b", "a\nb"),
        ("2 * 3", "2 * 3"),
    ],
)
def test_dress_is_taken_off(reply, plain):
    assert clean(reply) == plain
