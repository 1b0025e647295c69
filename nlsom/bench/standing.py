"""Standings: the results of a society in a run, as figures with intervals."""

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
    """Results of one society in a run.

    Attributes:
        run: Name of the run.
        on: Name of the set.
        scorer: Name of its scorer.
        entrant: Description of the society.
        lines: The lines that count, sorted by sample, then by seed.
    """

    run: str
    on: str
    scorer: str
    entrant: Entrant
    lines: tuple[Line, ...]

    @property
    def name(self) -> str:
        """Name of the society."""
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
        """The set's figures by name, in the order of reporting; means over seeds."""
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
        """Every line that the set scores, with its score."""
        return tuple(
            (line, score)
            for lines, totals in self._by_seed
            for line, score in zip(lines, totals.scores, strict=True)
            if score is not None
        )

    @cached_property
    def samples(self) -> tuple[str, ...]:
        """Identifiers of the scored samples, in the order of `lines`."""
        return tuple(dict.fromkeys(line.sample for line, _ in self.scored))

    def scores(self, column: Column = "lenient", *, samples: Sequence[str] | None = None) -> Array:
        """Mean score of each sample over seeds, shape (samples,).

        Args:
            column: Which score.
            samples: The samples and their order; by default the society's own `samples`.
        """
        found: defaultdict[str, list[float]] = defaultdict(list)
        for line, score in self.scored:
            found[line.sample].append(getattr(score, column))
        order = self.samples if samples is None else samples
        return np.array([sum(found[sample]) / len(found[sample]) for sample in order])

    def interval(self) -> Interval:
        """The mean lenient score with its interval over samples; NaN if no sample is scored."""
        if not self.samples:
            return Interval(math.nan, math.nan, math.nan)
        return bootstrap(self.scores())

    @cached_property
    def tokens(self) -> float:
        """Mean number of tokens read and written per sample."""
        return float(np.mean([line.usage.tokens for line in self.lines]))

    @cached_property
    def calls(self) -> float:
        """Mean number of calls to models per sample."""
        return float(np.mean([line.usage.calls for line in self.lines]))

    @cached_property
    def failed(self) -> tuple[Line, ...]:
        """Lines that ended in an error."""
        return tuple(line for line in self.lines if line.error)

    @cached_property
    def abstained(self) -> float:
        """Share of samples without a verdict, or whose verdict says that it does not know."""
        return self._share("abstained")

    @cached_property
    def unparsable(self) -> float:
        """Share of verdicts in which no answer could be read."""
        return self._share("unparsable")

    def _share(self, of: Literal["abstained", "unparsable"]) -> float:
        counted = sum(totals.counted for _, totals in self._by_seed)
        return sum(getattr(totals, of) for _, totals in self._by_seed) / counted if counted else 0.0


def standings(folder: RunFolder) -> list[Standing]:
    """The current results of all societies of a run that have lines.

    Raises:
        UsageError: The folder has no run, or no sample has been run yet.
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
    """The standings of the given societies of a run, by name.

    Raises:
        UsageError: One of them has no line; for example, the budget was spent before its turn.
    """
    known = {one.name: one for one in standings(folder)}
    if missing := [name for name in names if name not in known]:
        raise UsageError(
            f"{folder.path}: the run ended before {missing[0]!r} was asked anything; give the same command "
            "again with a larger --budget to resume it"
        )
    return known


def gather(runs: Sequence[str | Path]) -> list[Standing]:
    """The standings of several runs. Societies of the same name get the name of their run appended.

    Raises:
        UsageError: One of the folders has no run, or no sample has been run in it yet.
    """
    every = [one for run in runs for one in standings(RunFolder(run))]
    names = [one.name for one in every]
    return [one if names.count(one.name) == 1 else _with_run(one) for one in every]


def _with_run(one: Standing) -> Standing:
    return replace(one, entrant=one.entrant.model_copy(update={"name": f"{one.name} ({one.run})"}))


def _ordered(lines: Iterable[Line]) -> tuple[Line, ...]:
    """Sorts by sample and seed, since the order of lines in the file depends on timing."""
    return tuple(sorted(lines, key=lambda line: (len(line.sample), line.sample, line.seed)))
