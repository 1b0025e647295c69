import numpy as np
import pytest

from nlsom.message import Choice
from nlsom.rules.reputation import Beta, dawid_skene
from nlsom.testing.voters import SimulatedVoter

NAMES = ("a", "b", "c", "d")
VOTERS = [SimulatedVoter(f"v{at}", p) for at, p in enumerate((0.95, 0.9, 0.7, 0.6, 0.45, 0.45, 0.4))]


def simulated(questions, seed=0):
    truth = [NAMES[at % 4] for at in range(questions)]
    items = []
    for at, right in enumerate(truth):
        cast = [voter.vote(f"q{at}", NAMES, right=right, seed=seed) for voter in VOTERS]
        items.append({vote.voter: vote.ballot.choice for vote in cast if isinstance(vote.ballot, Choice)})
    return items, truth


def test_the_record_of_tasks_makes_a_competence():
    belief = Beta().seen(8, 2)
    assert belief.mean == pytest.approx(9 / 12)
    assert belief.deviation == pytest.approx(np.sqrt(9 * 3 / (12**2 * 13)))
    assert belief.seen(80, 20).deviation < belief.deviation
    with pytest.raises(ValueError, match="above 0"):
        Beta(0, 1)


def test_competences_are_found_without_labels():
    items, truth = simulated(800)
    found = dawid_skene(items, options=[4] * len(items))
    assert found.converged
    for voter in VOTERS:
        assert found.competence[voter.name] == pytest.approx(voter.competence, abs=0.06)
    right = sum(max(p, key=p.__getitem__) == t for p, t in zip(found.posterior, truth, strict=True))
    most = [max(sorted(set(item.values())), key=list(item.values()).count) for item in items]
    assert right / 800 > sum(a == b for a, b in zip(most, truth, strict=True)) / 800 + 0.02
    # A posterior that says 0.9 is right nine times in ten: calibrated, in the mean.
    assert np.mean([max(p.values()) for p in found.posterior]) == pytest.approx(right / 800, abs=0.02)


def test_the_order_of_voters_does_not_matter_and_posteriors_add_up():
    items, _ = simulated(30)
    found = dawid_skene(items)
    other = dawid_skene([dict(reversed(item.items())) for item in items])
    assert other.competence == pytest.approx(found.competence)
    for item, posterior in zip(items, found.posterior, strict=True):
        assert set(posterior) == set(item.values())
        assert sum(posterior.values()) == pytest.approx(1)


def test_nothing_said_is_nothing_known():
    assert dawid_skene([]).competence == {}
    found = dawid_skene([{}, {"ann": "x"}, {}])
    assert found.posterior == ({}, {"x": 1.0}, {})
    assert 0.5 < found.competence["ann"] < 1


def test_options_that_cannot_be_are_refused():
    with pytest.raises(ValueError, match="item 0: 2 answers were given but only 1"):
        dawid_skene([{"ann": "x", "bob": "y"}], options=[1])
    with pytest.raises(ValueError, match="1 counts of options"):
        dawid_skene([{"ann": "x"}, {}], options=[2])


def test_it_says_when_it_ran_out_of_rounds():
    items, _ = simulated(20)
    found = dawid_skene(items, rounds=1)
    assert (found.rounds, found.converged) == (1, False)
