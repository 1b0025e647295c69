"""Standings: what a society came to over a run, in figures with their intervals."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from nlsom.bench.folder import Entrant, RunFolder
from nlsom.bench.line import Line
from nlsom.bench.scores import Pair, Score, Totals, scorer
from nlsom.bench.stats import Interval, bootstrap
from nlsom.errors import UsageError

Column = Literal["official", "lenient"]
Array = NDArray[np.float64]


@dataclass(frozen=True)
class Standing:
    """One society over the samples of a run.

    Attributes:
        run: Name of the run.
        on: Name of the set.
        scorer: Name of its scorer.
        entrant: What the run's folder says of the society.
        lines: Those that count, by sample, then by seed.
    """

    run: str
    on: str
    scorer: str
    entrant: Entrant
    lines: tuple[Line, ...]

    @property
    def name(self) -> str:
        """Of the society."""
        return self.entrant.name

    @cached_property
    def _by_seed(self) -> tuple[tuple[tuple[Line, ...], Totals], ...]:
        seeds: defaultdict[int, list[Line]] = defaultdict(list)
        for line in self.lines:
            seeds[line.seed].append(line)
        judge = scorer(self.scorer)
        return tuple(
            (tuple(lines), judge.total([line.answer for line in lines], [line.as_sample() for line in lines]))
            for _, lines in sorted(seeds.items())
        )

    @cached_property
    def figures(self) -> Mapping[str, Pair]:
        """The set's figures by name, the first to be reported first; means over seeds."""
        every = [totals.figures for _, totals in self._by_seed]
        return {
            name: Pair(
                sum(one[name].official for one in every) / len(every),
                sum(one[name].lenient for one in every) / len(every),
            )
            for name in every[0]
        }

    @cached_property
    def scored(self) -> tuple[tuple[Line, Score], ...]:
        """Every line that the set counts, with its score."""
        return tuple(
            (line, score)
            for lines, totals in self._by_seed
            for line, score in zip(lines, totals.scores, strict=True)
            if score is not None
        )

    @cached_property
    def samples(self) -> tuple[str, ...]:
        """Identifiers of the samples that count, in order of the set's lines."""
        return tuple(dict.fromkeys(line.sample for line, _ in self.scored))

    def scores(self, column: Column = "lenient", *, samples: Sequence[str] | None = None) -> Array:
        """A score a sample, the mean over seeds; in the order of `samples`, by default its own."""
        found: defaultdict[str, list[float]] = defaultdict(list)
        for line, score in self.scored:
            found[line.sample].append(getattr(score, column))
        order = self.samples if samples is None else samples
        return np.array([sum(found[sample]) / len(found[sample]) for sample in order])

    def interval(self) -> Interval:
        """The mean lenient score with its interval over samples; not a number where the set counts none."""
        if not self.samples:
            return Interval(math.nan, math.nan, math.nan)
        return bootstrap(self.scores())

    @cached_property
    def tokens(self) -> float:
        """Tokens read and written a sample, on average."""
        return float(np.mean([line.usage.tokens for line in self.lines]))

    @cached_property
    def calls(self) -> float:
        """Calls of models a sample, on average."""
        return float(np.mean([line.usage.calls for line in self.lines]))

    @cached_property
    def failed(self) -> tuple[Line, ...]:
        """Lines that ended in an error."""
        return tuple(line for line in self.lines if line.error)

    @cached_property
    def abstained(self) -> float:
        """Share of replies that are none, or say that they do not know."""
        return self._share("abstained")

    @cached_property
    def unparsable(self) -> float:
        """Share of replies in which no answer could be read."""
        return self._share("unparsable")

    def _share(self, of: Literal["abstained", "unparsable"]) -> float:
        counted = sum(totals.counted for _, totals in self._by_seed)
        return sum(getattr(totals, of) for _, totals in self._by_seed) / counted if counted else 0.0


def standings(folder: RunFolder) -> list[Standing]:
    """The societies of a run that have lines, as it stands.

    Raises:
        UsageError: It is not a run, or nothing has been run in it yet.
    """
    config = folder.config()
    known: defaultdict[str, list[Line]] = defaultdict(list)
    for line in folder.lines.last():
        known[line.society].append(line)
    found = [
        Standing(folder.name, config.on, config.scorer, one, _ordered(known[one.name]))
        for one in config.entrants
        if known[one.name]
    ]
    if not found:
        raise UsageError(f"{folder.path}: no sample has been run here yet")
    return found


def named(folder: RunFolder, names: Iterable[str]) -> dict[str, Standing]:
    """The standings of some societies of a run, by name.

    Raises:
        UsageError: One of them has no line, as when the budget was spent before its turn.
    """
    known = {one.name: one for one in standings(folder)}
    if missing := [name for name in names if name not in known]:
        raise UsageError(
            f"{folder.path}: the run ended before {missing[0]!r} was asked anything; give the same command "
            "again, with a larger --budget: it goes on where it was"
        )
    return known


def gather(runs: Sequence[str | Path]) -> list[Standing]:
    """The standings of several runs; a society in two runs bears the name of its run too.

    Raises:
        UsageError: One is not a run.
    """
    every = [one for run in runs for one in standings(RunFolder(run))]
    names = [one.name for one in every]
    return [one if names.count(one.name) == 1 else _with_run(one) for one in every]


def _with_run(one: Standing) -> Standing:
    return replace(one, entrant=one.entrant.model_copy(update={"name": f"{one.name} ({one.run})"}))


def _ordered(lines: Iterable[Line]) -> tuple[Line, ...]:
    """By sample and seed: a run's lines come in the order in which they were done, which is chance."""
    return tuple(sorted(lines, key=lambda line: (len(line.sample), line.sample, line.seed)))
