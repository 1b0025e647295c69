from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nlsom.message import Choice
from nlsom.rules import Consensus
from nlsom.rules.consensus import likeness, rouge_l, token_f1
from nlsom.verdict import Vote

TEXTS = st.text("ab c", max_size=8)


def votes(*texts):
    return [Vote(f"v{at}", Choice(choice=text)) for at, text in enumerate(texts)]


def test_the_caption_most_like_the_others_wins():
    said = (
        "A black cat on a red sofa.",
        "a cat lies on a sofa",
        "A cat is on a red couch",
        "Two dogs run through snow",
    )
    count = Consensus()(votes(*said), said)
    assert count.winners == (said[0],)
    assert count.tally[said[3]] == 0
    assert count.confidence == count.tally[said[0]] > count.tally[said[1]]


def test_two_proposals_are_always_tied_and_one_alone_wins():
    assert Consensus()(votes("a cat", "a dog"), ()).winners == ("a cat", "a dog")
    assert Consensus()(votes("a cat"), ("a cat", "a dog")).winners == ("a cat",)
    assert Consensus()(votes(), ("a cat",)).winners == ()


def test_what_several_say_alike_counts_for_each_of_them():
    count = Consensus()(votes("a cat", "a cat", "one dog"), ())
    assert count.tally == {"a cat": 0.5, "one dog": 0}


def test_the_order_of_words_matters_to_rouge_l_only():
    assert token_f1("dog bites man", "man bites dog") == 1
    assert rouge_l("dog bites man", "man bites dog") == Fraction(1, 3)
    assert rouge_l("the cat sat on the mat", "the cat lay on a mat") == Fraction(4, 6)
    assert Consensus("rouge_l")(votes("a b c", "c b a", "a c b"), ()).winners == ("a c b",)


@pytest.mark.parametrize("similar", [token_f1, rouge_l])
@given(a=TEXTS, b=TEXTS)
def test_similarity_is_symmetric_and_a_text_is_like_itself(similar, a, b):
    assert 0 <= similar(a, b) == similar(b, a) <= 1
    assert similar(a, a) == 1
    assert rouge_l(a, b) <= token_f1(a, b)


def test_a_similarity_of_ones_own_can_be_a_matrix():
    alike = {frozenset("ab"): 0.1, frozenset("ac"): 0.2, frozenset("bc"): 0.3}
    found = likeness({"a": 1, "b": 1, "c": 1}, lambda x, y: alike[frozenset((x, y))])
    assert found == {"a": Fraction(3, 20), "b": Fraction(1, 5), "c": Fraction(1, 4)}
