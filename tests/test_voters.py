import math
from itertools import product

import pytest

from nlsom.message import Choice
from nlsom.rules import Competence, Plurality, break_tie
from nlsom.testing.voters import SimulatedVoter, majority_right
from nlsom.verdict import Vote

NAMES = ("yes", "no")


def band(n, p, level=0.99):
    """The smallest and largest number of successes of n within the level: exact binomial quantiles."""

    def chance_of(k):
        return math.exp(
            math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
            + k * math.log(p) + (n - k) * math.log1p(-p)
        )  # fmt: skip

    tail = (1 - level) / 2
    low, below = 0, chance_of(0)
    while below < tail:
        low += 1
        below += chance_of(low)
    high, above = n, chance_of(n)
    while above < tail:
        high -= 1
        above += chance_of(high)
    return low, high


def right_answers(voters, questions, rule, seed):
    right = 0
    for at in range(questions):
        question, truth = f"{len(voters)} voters, question {at}", NAMES[at % 2]
        votes = [voter.vote(question, NAMES, right=truth, seed=seed) for voter in voters]
        winners = rule(votes, NAMES).winners
        answer = break_tie(winners, "random", alternatives=NAMES, votes=votes, seed=seed, salt=question)
        right += answer == truth
    return right


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 8, 9, 16, 17, 33, 64, 65, 129])
def test_plurality_is_right_as_often_as_the_jury_theorem_says(size):
    questions = 400
    voters = [SimulatedVoter(f"v{at}", 0.55) for at in range(size)]
    low, high = band(questions, majority_right(size, 0.55))
    assert low <= right_answers(voters, questions, Plurality(), seed=0) <= high


def test_over_all_sizes_few_fall_outside_the_band():
    outside = 0
    for size in range(1, 130):
        voters = [SimulatedVoter(f"v{at}", 0.6) for at in range(size)]
        low, high = band(60, majority_right(size, 0.6))
        outside += not low <= right_answers(voters, 60, Plurality(), seed=1) <= high
    # Of 129 independent sizes, 1.3 are expected outside; 6 or more happen once in 500 times.
    assert outside < 6


def test_the_formula_is_that_of_the_binomial():
    assert majority_right(1, 0.7) == pytest.approx(0.7)
    assert majority_right(2, 0.7) == pytest.approx(0.7)
    assert majority_right(3, 0.7) == pytest.approx(0.7**3 + 3 * 0.7**2 * 0.3)
    assert majority_right(129, 0.5) == pytest.approx(0.5)


def accuracy(rule, competences):
    """The exact value, summed over all outcomes of which voters are right; a tie counts one half."""
    total = 0.0
    for right in product((True, False), repeat=len(competences)):
        votes = [
            Vote(f"v{at}", Choice(choice="yes" if r else "no"), competence=p)
            for at, (r, p) in enumerate(zip(right, competences, strict=True))
        ]
        chance_of = math.prod(p if r else 1 - p for r, p in zip(right, competences, strict=True))
        winners = rule(votes, NAMES).winners
        total += chance_of * ("yes" in winners) / len(winners)
    return total


def test_log_odds_weights_reach_the_optimum_and_beat_plurality():
    competences = (0.9, 0.8, 0.6, 0.6, 0.55, 0.55, 0.55)
    optimum = 0.0
    for right in product((True, False), repeat=len(competences)):
        if_yes = math.prod(p if r else 1 - p for r, p in zip(right, competences, strict=True))
        if_no = math.prod(1 - p if r else p for r, p in zip(right, competences, strict=True))
        optimum += max(if_yes, if_no) / 2
    assert accuracy(Competence(), competences) == pytest.approx(optimum, abs=1e-12)
    assert accuracy(Plurality(), competences) < optimum - 0.05
    voters = [SimulatedVoter(f"v{at}", p) for at, p in enumerate(competences)]
    low, high = band(1000, optimum)
    assert low <= right_answers(voters, 1000, Competence(), seed=0) <= high
    assert right_answers(voters, 1000, Plurality(), seed=0) < low


def test_weights_of_equal_voters_change_nothing():
    assert accuracy(Competence(), (0.7,) * 5) == pytest.approx(majority_right(5, 0.7))


def test_voters_are_correlated_as_stated():
    pairs = 6000
    ann, bob = (SimulatedVoter(name, 0.7, correlation=0.4) for name in ("ann", "bob"))
    right = [
        tuple(v.vote(f"q{at}", NAMES, right="yes").ballot == Choice(choice="yes") for v in (ann, bob))
        for at in range(pairs)
    ]
    both = sum(a and b for a, b in right) / pairs
    mean = sum(a + b for a, b in right) / pairs / 2
    assert mean == pytest.approx(0.7, abs=0.02)
    assert (both - mean**2) / (mean * (1 - mean)) == pytest.approx(0.4, abs=0.05)


def test_a_vote_depends_on_nothing_but_seed_voter_and_question():
    ann = SimulatedVoter("ann", 0.5)
    asked = [ann.vote(f"q{at}", "abcd", right="b", seed=3).ballot for at in range(200)]
    assert asked == [ann.vote(f"q{at}", "abcd", right="b", seed=3).ballot for at in range(200)]
    assert {ballot.choice for ballot in asked} == set("abcd")
    assert asked != [ann.vote(f"q{at}", "abcd", right="b", seed=4).ballot for at in range(200)]
    with pytest.raises(ValueError, match="between 0 and 1"):
        SimulatedVoter("ann", 1.5)
