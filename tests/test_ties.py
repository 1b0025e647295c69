from hypothesis import given
from hypothesis import strategies as st

from nlsom.message import Choice
from nlsom.rules import break_tie
from nlsom.verdict import Vote

NAMES = ("yes", "no", "maybe")


def pick(winners, how, *, votes=(), seed=0, salt="task"):
    return break_tie(winners, how, alternatives=NAMES, votes=votes, seed=seed, salt=salt)


def test_a_tie_stands_unless_a_tie_break_is_declared():
    assert pick(("yes", "no"), "none") is None
    assert pick(("no",), "none") == "no"
    assert pick((), "random") is None


@given(st.permutations(NAMES), st.integers())
def test_the_order_of_the_winners_does_not_matter(order, seed):
    assert pick(order, "first") == "yes"
    assert pick(order, "random", seed=seed) == pick(NAMES, "random", seed=seed)


def test_a_random_tie_break_is_fair_over_questions_with_one_seed():
    picks = [pick(("yes", "no"), "random", salt=f"task {at}") for at in range(2000)]
    assert 900 < picks.count("yes") < 1100


def test_the_more_confident_side_wins_if_there_is_one():
    votes = [
        Vote("ann", Choice(choice="yes"), confidence=0.3),
        Vote("bob", Choice(choice="no"), confidence=0.1),
        Vote("cy", Choice(choice="no"), confidence=0.3),
        Vote("di", Choice(choice="yes")),
    ]
    assert pick(("yes", "no"), "confidence", votes=votes) == "no"
    assert pick(("yes", "no"), "confidence", votes=[]) is None
    tenths = [Vote("ed", Choice(choice="yes"), confidence=0.1)]
    assert pick(("yes", "no"), "confidence", votes=[*votes, *tenths]) is None
