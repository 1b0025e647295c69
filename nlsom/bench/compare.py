"""Comparing societies over the same samples: how much better, how surely, and at what price."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from nlsom.bench.line import Line
from nlsom.bench.standing import Column, Standing
from nlsom.bench.stats import Interval, McNemar, holm, mcnemar, paired_bootstrap
from nlsom.errors import UsageError

RIGHT = 0.5  # a sample is right where its score (the mean over seeds) is above this


@dataclass(frozen=True, slots=True)
class Comparison:
    """One society against another, sample by sample.

    Attributes:
        one: The name of the first.
        other: What it is held against.
        samples: How many samples both have.
        difference: Mean score of the first less that of the other, with its interval.
        test: McNemar's, of right and wrong.
        tokens: Tokens a sample that the first spends more.
        p: The test's mid-p value.
        adjusted: The same, adjusted for all comparisons made with it (Holm).
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
        """Score gained per 1,000 tokens more; None where the first spends no more than the other."""
        return 1000 * self.difference.estimate / self.tokens if self.tokens > 0 else None


def check(one: Standing, other: Standing) -> None:
    """Makes sure that both were asked the same.

    Raises:
        UsageError: They were run over different samples, or scored by different rules.
    """
    if (one.on, one.scorer) != (other.on, other.scorer):
        raise UsageError(
            f"{one.name} was run on {one.on} and {other.name} on {other.on}: only runs over the same samples "
            "can be compared"
        )
    asked = {line.sample: _asked(line) for line in one.lines}
    others = {line.sample: _asked(line) for line in other.lines}
    counted = set(one.samples) == set(other.samples)
    if asked != others or not counted:
        strangers = [sample for sample in asked | others if asked.get(sample) != others.get(sample)]
        first = f"{len(strangers)} differ, the first is sample {min(strangers)!r}" if strangers else ""
        raise UsageError(
            f"{one.name} has {len(asked)} samples and {other.name} {len(others)}, and they are not the same "
            f"({first}); run both with equal --limit and --sample-seed, and to the end"
        )


def _asked(line: Line) -> object:
    """What makes a sample the same: question, choices and the pictures' bytes as they were given."""
    return line.question, line.task.get("choices"), [image.source for image in line.images]


def compare(one: Standing, other: Standing, *, column: Column = "lenient") -> Comparison:
    """One society against another.

    Raises:
        UsageError: They were not run over the same samples.
    """
    check(one, other)
    if not one.samples:
        raise UsageError(f"{one.name}: no sample has a score, so there is nothing to compare")
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
    """Comparisons that were made together, with p-values adjusted for being many."""
    values = holm([comparison.p for comparison in comparisons])
    return [replace(one, adjusted=value) for one, value in zip(comparisons, values, strict=True)]


def compare_all(
    every: Sequence[Standing], *, against: str | None = None, column: Column = "lenient"
) -> list[Comparison]:
    """Every society against every one after it, or all against one.

    Args:
        every: At least two.
        against: Name of the one; None for all pairs.
        column: Which score is compared.

    Raises:
        UsageError: There is nothing to compare, or the samples differ.
    """
    if len(every) < 2:
        raise UsageError("a comparison needs two societies: give two runs, or a run of several societies")
    if against is None:
        pairs = [(b, a) for at, a in enumerate(every) for b in every[at + 1 :]]
    else:
        base = next((one for one in every if one.name == against), None)
        if base is None:
            known = ", ".join(one.name for one in every)
            raise UsageError(f"no society {against!r} in these runs; there are {known}")
        pairs = [(one, base) for one in every if one is not base]
    return adjusted([compare(one, other, column=column) for one, other in pairs])
