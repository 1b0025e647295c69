"""Confidence intervals, paired tests and correction for multiple testing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

_BLOCK = 4_000_000  # indices drawn at once: 32 MB


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with its confidence interval.

    Attributes:
        estimate: Point estimate.
        low: Lower end.
        high: Upper end.
        level: Confidence level, such as 0.95.
    """

    estimate: float
    low: float
    high: float
    level: float = 0.95

    def __format__(self, spec: str) -> str:
        """`0.500 [0.400, 0.600]`, each figure in the given format."""
        return f"{self.estimate:{spec}} [{self.low:{spec}}, {self.high:{spec}}]"


def wilson(successes: int, n: int, *, level: float = 0.95) -> Interval:
    """The score interval of a proportion (Wilson 1927); 0 to 1 for n = 0.

    Raises:
        ValueError: `successes` is not between 0 and n, or `level` not between 0 and 1.
    """
    if not 0 <= successes <= n:
        raise ValueError(f"{successes} successes of {n}")
    if not 0 < level < 1:
        raise ValueError(f"level {level} is not between 0 and 1")
    if n == 0:
        return Interval(math.nan, 0.0, 1.0, level)
    z = NormalDist().inv_cdf(0.5 + level / 2)
    share, shrink = successes / n, 1 + z * z / n
    middle = (share + z * z / (2 * n)) / shrink
    half = z / shrink * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    # The ends are known exactly here; with rounding errors, the share could lie outside.
    low = 0.0 if successes == 0 else middle - half
    high = 1.0 if successes == n else middle + half
    return Interval(share, low, high, level)


def bootstrap(scores: ArrayLike, *, draws: int = 10_000, level: float = 0.95, seed: int = 0) -> Interval:
    """The percentile bootstrap interval of a mean (Efron 1979).

    Args:
        scores: One score per sample, shape (n,).
        draws: Number of resamples.
        level: Confidence level.
        seed: Seed of the resampling; equal seeds give equal intervals.

    Raises:
        ValueError: There are no scores, or they have another shape.
    """
    values = np.asarray(scores, np.float64)
    if values.ndim != 1 or not values.size:
        raise ValueError(f"scores need a shape (n,) with n at least 1, not {values.shape}")
    rng = np.random.default_rng(seed)
    n, means = len(values), list[NDArray[np.float64]]()
    step = max(1, _BLOCK // n)
    for done in range(0, draws, step):
        drawn = rng.integers(0, n, (min(step, draws - done), n))
        means.append(values[drawn].mean(1))
    low, high = np.quantile(np.concatenate(means), [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(values.mean()), float(low), float(high), level)


def paired_bootstrap(one: ArrayLike, other: ArrayLike) -> Interval:
    """The bootstrap interval of mean(one) - mean(other), paired by sample; both have shape (n,).

    Raises:
        ValueError: The shapes differ.
    """
    a, b = np.asarray(one, np.float64), np.asarray(other, np.float64)
    if a.shape != b.shape:
        raise ValueError(f"scores of shapes {a.shape} and {b.shape} are not over the same samples")
    return bootstrap(a - b)


@dataclass(frozen=True, slots=True)
class McNemar:
    """Result of McNemar's test of two runs over the same samples, right or wrong (McNemar 1947).

    Attributes:
        only_one: Number of samples that only the first got right.
        only_other: Number of samples that only the second got right.
        exact: Two-sided exact p-value.
        mid: Two-sided mid-p value (Fagerland et al. 2013), less conservative, with a size close to the level.
    """

    only_one: int
    only_other: int
    exact: float
    mid: float


def mcnemar(only_one: int, only_other: int) -> McNemar:
    """Tests whether two runs differ, from the numbers of samples that only one of them got right.

    Raises:
        ValueError: A count is negative.
    """
    if min(only_one, only_other) < 0:
        raise ValueError(f"counts must not be negative: {only_one}, {only_other}")
    n, k = only_one + only_other, min(only_one, only_other)
    if n == 0:
        return McNemar(0, 0, 1.0, 1.0)
    # In logarithms, since 2**n exceeds the range of floats at about a thousand samples.
    logs = [
        math.lgamma(n + 1) - math.lgamma(i + 1) - math.lgamma(n - i + 1) - n * math.log(2)
        for i in range(k + 1)
    ]
    tail = math.fsum(map(math.exp, logs))
    exact = 1.0 if only_one == only_other else min(1.0, 2 * tail)
    mid = 1 - math.exp(logs[k]) if only_one == only_other else min(1.0, 2 * tail - math.exp(logs[k]))
    return McNemar(only_one, only_other, exact, mid)


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """P-values adjusted for multiple testing (Holm 1979), in the order given.

    Raises:
        ValueError: A value is not between 0 and 1.
    """
    if not all(0 <= p <= 1 for p in p_values):
        raise ValueError(f"p-values must lie between 0 and 1: {list(p_values)}")
    adjusted, worst = [0.0] * len(p_values), 0.0
    for rank, at in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        worst = max(worst, min(1.0, (len(p_values) - rank) * p_values[at]))
        adjusted[at] = worst
    return tuple(adjusted)
