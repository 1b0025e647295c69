from itertools import chain, combinations, permutations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nlsom.rules as rules
from nlsom.message import Approval, Choice, Ranking, Scores
from nlsom.verdict import Vote

few = settings(max_examples=60, deadline=None)
NEW = ("new", "newer")


def choices(names):
    return [None, *(Choice(choice=name) for name in names)]


def approvals(names):
    sets = chain.from_iterable(combinations(names, n) for n in range(len(names) + 1))
    return [None, *(Approval(approved=names) for names in sets)]


def orders(names):
    return [None, *(Ranking(ranking=order[:n]) for order in permutations(names) for n in (1, len(names)))]


def scores(names):
    grid = product((0, 4, 10), repeat=len(names))
    return [None, *(Scores(scores=dict(zip(names, given, strict=True))) for given in grid)]


EXACT = {
    "plurality": (rules.Plurality(), choices),
    "confidence": (rules.Confidence(), choices),
    "reconcile": (rules.Confidence(calibration="reconcile"), choices),
    "competence": (rules.Competence(), choices),
    "approval": (rules.Approval(), approvals),
    "range": (rules.Range(), scores),
    "borda": (rules.Borda(), orders),
    "decree": (rules.Decree(), choices),
    "unanimity": (rules.Unanimity(), choices),
    "unanimity, else plurality": (rules.Unanimity(rules.Plurality()), choices),
}
SUFFICIENT = {
    "copeland": (rules.Copeland(), orders),
    "minimax": (rules.Minimax(), orders),
    "schulze": (rules.Schulze(by="margin"), orders),
    "ranked_pairs": (rules.RankedPairs(), orders),
    "instant_runoff": (rules.InstantRunoff(), orders),
    "bucklin": (rules.Bucklin(), orders),
}
ALL = EXACT | SUFFICIENT
UNIT = st.sampled_from([None, 0.0, 0.3, 0.7, 1.0])
COMPETENCE = st.sampled_from([None, 0.5, 0.55, 0.8, 0.9, 0.97])


@st.composite
def halves(draw, ballots, names, most):
    came = draw(st.lists(st.tuples(st.sampled_from(ballots(names)), UNIT, COMPETENCE), max_size=most))
    outstanding = draw(st.lists(COMPETENCE, min_size=1, max_size=2))
    return [Vote(f"v{at}", *drawn) for at, drawn in enumerate(came)], outstanding


def completions(rule, votes, outstanding, ballots):
    """All that the outstanding voters may say, with no confidence and with all of it."""
    confidences = (0.0, 1.0) if isinstance(rule, rules.Confidence) else (None,)
    said = [
        [Vote(f"w{at}", ballot, confidence, competence) for ballot in ballots for confidence in confidences]
        for at, competence in enumerate(outstanding)
    ]
    return ([*votes, *more] for more in product(*said))


@pytest.mark.parametrize("name", ALL)
@few
@given(data=st.data())
def test_settled_just_when_no_completion_changes_the_winners(name, data):
    rule, ballots = ALL[name]
    names = ("a", "b", "c")[: data.draw(st.integers(1, 2 if name == "range" else 3))]
    votes, outstanding = data.draw(halves(ballots, names, 6))
    now = rule(votes, names).winners
    stands = all(
        rule(full, names).winners == now for full in completions(rule, votes, outstanding, ballots(names))
    )
    if name in EXACT:
        assert rule.settled(votes, outstanding, names) == stands
    elif rule.settled(votes, outstanding, names):
        assert stands


OPEN_EXACT = ("plurality", "confidence", "reconcile", "approval", "range", "decree", "unanimity")


@pytest.mark.parametrize("name", ALL)
@few
@given(data=st.data())
def test_an_open_question_is_settled_only_if_no_new_answer_can_win_either(name, data):
    rule, ballots = ALL[name]
    votes, outstanding = data.draw(halves(ballots, ("a", "b")[: data.draw(st.integers(1, 2))], 6))
    named = sorted({name for vote in votes if vote.ballot for name in names_in(vote.ballot)})
    new = NEW[:1] if ballots is not choices else NEW
    outcomes = {
        rule(full, ()).winners for full in completions(rule, votes, outstanding, ballots((*named, *new)))
    }
    settled = rule.settled(votes, outstanding, ())
    if name in OPEN_EXACT:
        assert settled == (outcomes == {rule(votes, ()).winners})
    elif settled:
        assert outcomes == {rule(votes, ()).winners}


def names_in(ballot):
    if isinstance(ballot, Choice):
        return (ballot.choice,)
    if isinstance(ballot, Approval):
        return ballot.approved
    return ballot.ranking if isinstance(ballot, Ranking) else tuple(ballot.scores)


@pytest.mark.parametrize("name", ALL)
@few
@given(data=st.data())
def test_stopping_when_settled_brings_the_winners_of_the_full_count(name, data):
    rule, ballots = ALL[name]
    names = ("a", "b", "c", "d") if name != "range" else ("a", "b", "c")
    liked = st.sampled_from(ballots(names)[: data.draw(st.integers(2, len(ballots(names))))])
    drawn = data.draw(st.lists(st.tuples(liked, UNIT, COMPETENCE), min_size=1, max_size=25))
    votes = [Vote(f"v{at}", *said) for at, said in enumerate(drawn)]
    full = rule(votes, names).winners
    for heard in range(len(votes) + 1):
        if rule.settled(votes[:heard], [vote.competence for vote in votes[heard:]], names):
            assert rule(votes[:heard], names).winners == full
    assert rule.settled(votes, [], names)


@pytest.mark.parametrize("name", SUFFICIENT)
def test_a_crushing_lead_settles_every_ranked_rule(name):
    rule, _ = SUFFICIENT[name]
    votes = [Vote(f"v{at}", Ranking(ranking=("a", "b", "c"))) for at in range(7)]
    assert rule.settled(votes, [None] * 6, ("a", "b", "c"))
    assert not rule.settled(votes, [None] * 7, ("a", "b", "c"))
    assert rule.settled(votes, [None] * 6, ())


def test_a_lead_that_could_become_a_tie_is_not_settled():
    votes = [Vote(f"v{at}", Choice(choice="a")) for at in range(3)]
    assert rules.Plurality().settled(votes, [None] * 2, ("a", "b"))
    assert not rules.Plurality().settled(votes, [None] * 3, ("a", "b"))


def test_with_log_odds_a_strong_voter_to_come_keeps_the_vote_open():
    votes = [Vote(f"v{at}", Choice(choice="a"), competence=0.6) for at in range(3)]
    assert rules.Competence().settled(votes, [0.6, 0.6], ("a", "b"))
    assert not rules.Competence().settled(votes, [0.9], ("a", "b"))
    assert not rules.Competence().settled(votes, [0.6], ()), "how many options there are is not known"
    assert rules.Competence(options=2).settled(votes, [0.6], ())
