"""Intervals and tests, against closed forms and known values."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nlsom.bench.stats import Interval, bootstrap, holm, mcnemar, paired_bootstrap, wilson


def test_wilson_gives_the_textbook_interval():
    interval = wilson(81, 263)  # Newcombe 1998, table I
    assert (round(interval.low, 4), round(interval.high, 4)) == (0.2553, 0.3662)


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_holds_the_share_and_stays_between_0_and_1(counts):
    right, n = counts
    interval = wilson(right, n)
    assert 0 <= interval.low <= right / n <= interval.high <= 1
    mirrored = wilson(n - right, n)
    assert mirrored.low == pytest.approx(1 - interval.high)


def test_wilson_of_nothing_knows_nothing():
    interval = wilson(0, 0)
    assert (interval.low, interval.high) == (0, 1)
    assert math.isnan(interval.estimate)


def test_wilson_refuses_more_successes_than_samples():
    with pytest.raises(ValueError, match="3 successes of 2"):
        wilson(3, 2)


@pytest.mark.parametrize(
    ("one", "other", "exact", "mid"),
    [
        (1, 1, 1.0, 0.5),
        (0, 5, 2 / 32, 1 / 32),
        (2, 8, 2 * 56 / 1024, (2 * 56 - 45) / 1024),
        (0, 0, 1.0, 1.0),
        (3, 3, 1.0, 1 - 20 / 64),
    ],
)
def test_mcnemar_is_the_binomial_test_of_the_disagreements(one, other, exact, mid):
    test = mcnemar(one, other)
    assert test.exact == pytest.approx(exact)
    assert test.mid == pytest.approx(mid)


@given(st.integers(0, 3000), st.integers(0, 3000))
def test_mcnemar_is_symmetric_and_a_probability(one, other):
    test, turned = mcnemar(one, other), mcnemar(other, one)
    assert test.exact == turned.exact
    assert 0 <= test.mid <= test.exact <= 1 + 1e-12


def test_mcnemar_refuses_negative_counts():
    with pytest.raises(ValueError, match="negative"):
        mcnemar(-1, 2)


def test_holm_gives_the_textbook_values():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx((0.03, 0.06, 0.06, 0.02))


@given(st.lists(st.floats(0, 1), max_size=12))
def test_holm_keeps_the_order_and_makes_nothing_surer(p_values):
    adjusted = holm(p_values)
    assert all(p <= q <= 1 for p, q in zip(p_values, adjusted, strict=True))
    ranked = [q for _, q in sorted(zip(p_values, adjusted, strict=True))]
    assert all(a <= b for a, b in pairwise(ranked))


def test_holm_refuses_what_is_no_probability():
    with pytest.raises(ValueError, match="between 0 and 1"):
        holm([0.5, 1.5])


def test_a_bootstrap_interval_is_near_the_normal_one():
    scores = np.random.default_rng(1).normal(0.3, 1, 2000)
    interval = bootstrap(scores, draws=4000)
    half = 1.96 * scores.std() / math.sqrt(len(scores))
    assert interval.estimate == pytest.approx(scores.mean())
    assert interval.high - interval.low == pytest.approx(2 * half, rel=0.06)


def test_equal_seeds_give_equal_intervals():
    scores = [0, 1, 1, 0, 1]
    assert bootstrap(scores, seed=3, draws=500) == bootstrap(scores, seed=3, draws=500)
    assert bootstrap(list(range(50)), seed=3, draws=500) != bootstrap(list(range(50)), seed=4, draws=500)


def test_a_sure_difference_has_no_width():
    interval = paired_bootstrap([1, 0, 1], [0, -1, 0])
    assert (interval.estimate, interval.low, interval.high) == (1, 1, 1)


def test_an_interval_is_told_with_its_estimate():
    assert f"{Interval(0.5, 0.4, 0.625):+.2f}" == "+0.50 [+0.40, +0.62]"


@pytest.mark.parametrize("scores", [[], [[1.0]]])
def test_a_bootstrap_needs_scores(scores):
    with pytest.raises(ValueError, match="shape"):
        bootstrap(scores)


def test_runs_over_different_samples_are_refused():
    with pytest.raises(ValueError, match="not over the same samples"):
        paired_bootstrap([1, 2], [1])
