"""Paired comparisons of societies over the same samples: gain, significance and additional cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from nlsom.bench.line import Line
from nlsom.bench.standing import Column, Standing
from nlsom.bench.stats import Interval, McNemar, holm, mcnemar, paired_bootstrap
from nlsom.errors import UsageError

RIGHT = 0.5  # a sample counts as right if its score (mean over seeds) is above this


@dataclass(frozen=True, slots=True)
class Comparison:
    """Result of a paired comparison of two societies.

    Attributes:
        one: Name of the first society.
        other: Name of the society it is compared with.
        samples: Number of samples, the same for both.
        difference: Mean score of the first minus that of the other, with its interval.
        test: McNemar's test on right and wrong samples.
        tokens: Tokens per sample that the first spends more than the other.
        p: The test's mid-p value.
        adjusted: The p-value, adjusted for all comparisons made together (Holm).
    """

    one: str
    other: str
    samples: int
    difference: Interval
    test: McNemar
    tokens: float
    p: float
    adjusted: float

    @property
    def per_thousand(self) -> float | None:
        """Gain per 1,000 additional tokens; None if the first society spends no more than the other."""
        return 1000 * self.difference.estimate / self.tokens if self.tokens > 0 else None


def check(one: Standing, other: Standing) -> None:
    """Checks that two standings are comparable.

    Raises:
        UsageError: They were run over different samples, or scored by different scorers.
    """
    if (one.on, one.scorer) != (other.on, other.scorer):
        raise UsageError(
            f"{one.name} was run on {one.on}, but {other.name} on {other.on}: only runs over the same "
            "samples can be compared"
        )
    asked = {line.sample: _asked(line) for line in one.lines}
    others = {line.sample: _asked(line) for line in other.lines}
    counted = set(one.samples) == set(other.samples)
    if asked != others or not counted:
        strangers = [sample for sample in asked | others if asked.get(sample) != others.get(sample)]
        first = f"{len(strangers)} differ, the first is sample {min(strangers)!r}" if strangers else ""
        raise UsageError(
            f"{one.name} has {len(asked)} samples and {other.name} {len(others)}, and they are not the same "
            f"({first}); run both to the end, with the same --limit and --sample-seed"
        )


def _asked(line: Line) -> object:
    """A key that is equal for equal samples: question, choices, and digests of the original pictures."""
    return line.question, line.task.get("choices"), [image.source for image in line.images]


def compare(one: Standing, other: Standing, *, column: Column = "lenient") -> Comparison:
    """Compares two societies, with `adjusted` equal to `p`.

    Raises:
        UsageError: They were not run over the same samples, or no sample has a score.
    """
    check(one, other)
    if not one.samples:
        raise UsageError(f"{one.name}: no sample has a score, so nothing can be compared")
    first, second = one.scores(column), other.scores(column, samples=one.samples)
    right, others = first > RIGHT, second > RIGHT
    test = mcnemar(int(np.sum(right & ~others)), int(np.sum(others & ~right)))
    return Comparison(
        one=one.name,
        other=other.name,
        samples=len(first),
        difference=paired_bootstrap(first, second),
        test=test,
        tokens=one.tokens - other.tokens,
        p=test.mid,
        adjusted=test.mid,
    )


def adjusted(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """The comparisons with their p-values adjusted for multiple testing (Holm)."""
    values = holm([comparison.p for comparison in comparisons])
    return [replace(one, adjusted=value) for one, value in zip(comparisons, values, strict=True)]


def compare_all(
    every: Sequence[Standing], *, against: str | None = None, column: Column = "lenient"
) -> list[Comparison]:
    """Compares all pairs of societies, or all societies with one.

    Args:
        every: The societies, at least two.
        against: Name of the society with which all others are compared; None for all pairs.
        column: The score that is compared.

    Raises:
        UsageError: There are fewer than two societies, none is called `against`, or samples differ.
    """
    if len(every) < 2:
        raise UsageError("a comparison needs two societies: give two runs, or one run of several societies")
    if against is None:
        pairs = [(b, a) for at, a in enumerate(every) for b in every[at + 1 :]]
    else:
        base = next((one for one in every if one.name == against), None)
        if base is None:
            known = ", ".join(one.name for one in every)
            raise UsageError(f"there is no society {against!r} in these runs; there are {known}")
        pairs = [(one, base) for one in every if one is not base]
    return adjusted([compare(one, other, column=column) for one, other in pairs])
