import pytest
from hypothesis import given
from hypothesis import strategies as st

from nlsom.message import Approval, Choice, Ranking, Scores
from nlsom.rules.grouping import group, relabel


def canonical(answer):
    return answer.strip().casefold().rstrip(".") or None


def test_the_form_said_most_often_stands_for_its_group():
    said = ["Cat.", "cat", "dog", "CAT", "cat", ""]
    assert group(said, canonical) == {"Cat.": "cat", "cat": "cat", "CAT": "cat", "dog": "dog", "": None}


def test_of_forms_said_equally_often_the_first_stands():
    assert group(["Cat.", "cat", "CAT"], canonical)["CAT"] == "Cat."


@given(st.lists(st.text("aA. b", max_size=3)))
def test_answers_share_a_form_just_when_they_share_a_canonical_form(said):
    forms = group(said, canonical)
    assert set(forms) == set(said)
    for a in said:
        for b in said:
            assert (forms[a] == forms[b]) == (canonical(a) == canonical(b))
        assert forms[a] is None or canonical(forms[a]) == canonical(a)


@pytest.mark.parametrize(
    ("ballot", "new"),
    [
        (Choice(choice="CAT"), Choice(choice="cat")),
        (Choice(choice="?"), None),
        (Choice(choice="eel"), Choice(choice="eel")),
        (Approval(approved=("CAT", "cat", "?")), Approval(approved=("cat",))),
        (Approval(approved=()), Approval(approved=())),
        (Ranking(ranking=("CAT", "eel", "cat")), Ranking(ranking=("cat", "eel"))),
        (Ranking(ranking=("?",)), None),
        (Scores(scores={"CAT": 2, "cat": 2, "eel": 1}), Scores(scores={"cat": 2, "eel": 1})),
        (Scores(scores={"CAT": 2, "cat": 3}), None),
        (Scores(scores={"?": 2}), None),
    ],
)
def test_ballots_are_put_in_terms_of_the_groups(ballot, new):
    assert relabel(ballot, {"CAT": "cat", "cat": "cat", "?": None}) == new
