"""Forms: how they are asked for, constrained and read; nothing is guessed."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from nlsom.form import (
    ApprovalForm,
    ChoiceForm,
    Constraint,
    GrammarForm,
    JsonForm,
    NumberForm,
    RankingForm,
    ScoresForm,
    TextForm,
    YesNoForm,
    labels_for,
)

OPTIONS = ("cat", "dog", "hamster")
FORMS = [
    TextForm(),
    TextForm(short=True),
    ChoiceForm(options=OPTIONS),
    YesNoForm(),
    NumberForm(),
    NumberForm(decimals=True),
    RankingForm(options=OPTIONS),
    ScoresForm(options=OPTIONS),
    JsonForm(json_schema={"type": "object"}),
    GrammarForm(grammar='root ::= "a"'),
]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.kind)
@given(text=st.text(max_size=40))
def test_any_text_is_read_or_says_why_not(form, text):
    reading = form.read(text)
    assert reading.why
    assert form.max_tokens > 0
    form.instruct().encode()


def test_up_to_26_options_have_letters_and_more_have_numbers():
    assert labels_for(["x"] * 3) == ("A", "B", "C")
    assert labels_for(["x"] * 27)[-1] == "27"


@pytest.mark.parametrize(
    ("form", "text", "answer"),
    [
        (ChoiceForm(options=OPTIONS), "B", "dog"),
        (ChoiceForm(options=OPTIONS), "a bird", None),
        (YesNoForm(), "Yes, it is.", "yes"),
        (YesNoForm(), "I notice nothing.", None),
        (NumberForm(), "There are 7 of them.", "7"),
        (NumberForm(), "2 or 3", None),
        (RankingForm(options=OPTIONS), "B > A > C", "dog"),
        (RankingForm(options=OPTIONS), "B", None),
        (RankingForm(options=OPTIONS), "A ranking: B > A > C", "dog"),
        (RankingForm(options=OPTIONS), "Of A, B and C, I say C > A. No: B > C > A.", "dog"),
        (RankingForm(options=OPTIONS), "Ｂ ＞ Ａ ＞ Ｃ", "dog"),
        (RankingForm(options=tuple("abcdefghij")), "I think B > A", "b"),
        (RankingForm(options=tuple("abcdefghij")), "I > B > A", "i"),
        (ApprovalForm(options=OPTIONS), "B is fine.", "dog"),
        (ApprovalForm(options=OPTIONS), "A dog is fine.", None),
        (ApprovalForm(options=OPTIONS), "I accept B but not A", None),
        (ApprovalForm(options=OPTIONS), "not B", None),
        (ApprovalForm(options=tuple("abcdefghij")), "I accept B", "b"),
        (ApprovalForm(options=tuple("abcdefghij")), "I", "i"),
        (ScoresForm(options=OPTIONS), "**A**: 7, **B**: 9", "dog"),
        (ScoresForm(options=OPTIONS), "A=1, B=9, C=2", "dog"),
        (ScoresForm(options=OPTIONS), "A=1, B=99", None),
        (ScoresForm(options=OPTIONS), "none", None),
        (ScoresForm(options=OPTIONS), "A=3, B=3", None),
        (JsonForm(json_schema={}), 'Here: {"a": [1]} ok', '{"a": [1]}'),
        (JsonForm(json_schema={}), "{broken", None),
        (JsonForm(json_schema={}), "[" * 100_000, None),
        (JsonForm(json_schema={}), '{"a": ' * 100_000, None),
        (TextForm(), "  ", None),
    ],
)
def test_answers_are_read_and_nothing_is_guessed(form, text, answer):
    assert form.read(text).answer == answer


@pytest.mark.parametrize(
    ("form", "text"),
    [
        (NumberForm(), "-12"),
        (NumberForm(decimals=True), "1.5"),
        (RankingForm(options=OPTIONS), "C > A > B"),
        (ScoresForm(options=OPTIONS), "A=7, B=3, C=10"),
    ],
)
def test_what_a_constraint_lets_through_is_what_is_read(form, text):
    assert re.fullmatch(form.constraint().regex, text)
    assert form.read(text).ballot is not None or form.read(text).answer is not None


def test_constraints_name_labels_words_and_schemas():
    assert ChoiceForm(options=OPTIONS).constraint().choice == ("A", "B", "C")
    assert YesNoForm().constraint().choice == ("Yes", "No")
    schema = {"type": "object"}
    assert JsonForm(json_schema=schema).constraint().schema == schema
    assert json.dumps(schema) in JsonForm(json_schema=schema).instruct()
    assert TextForm().constraint() is None


def test_a_grammar_says_where_it_begins():
    with pytest.raises(ValidationError, match="root"):
        GrammarForm(grammar='start ::= "a"')
    assert GrammarForm(grammar='root ::= "a"').constraint() == Constraint(grammar='root ::= "a"')
