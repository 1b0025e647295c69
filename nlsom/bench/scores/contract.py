"""The contract of a scorer: a score a sample where there is one, and figures over the whole set."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from nlsom.bench.sample import Sample
from nlsom.reading import says_unknown


@dataclass(frozen=True, slots=True)
class Pair:
    """A figure in two columns.

    Attributes:
        official: As the set's own tool gives it.
        lenient: As a person would judge: case, a final period, markdown, "Answer: red" and the letter of an
            option are no faults.
    """

    official: float
    lenient: float


@dataclass(frozen=True, slots=True)
class Score(Pair):
    """What a reply is worth, between 0 and 1 for all but captions.

    Attributes:
        read: What the lenient column took as the answer; None where nothing could be read.
        why: How it was read, or why not.
    """

    read: str | None
    why: str


@dataclass(frozen=True, slots=True)
class Totals:
    """Figures over a whole set.

    Attributes:
        figures: By name, the one to report first; all but those of captions are shares between 0 and 1.
        scores: One a sample, in order; None for a sample that the set does not count.
        counted: How many samples the figures are taken over.
        abstained: Of those, how many got no reply, or one that says "I don't know".
        unparsable: Of those, how many got a reply in which no answer could be read.
    """

    figures: Mapping[str, Pair]
    scores: tuple[Score | None, ...]
    counted: int
    abstained: int
    unparsable: int


class Scorer(Protocol):
    """Scores replies against a set. `name` is what the registry calls it."""

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    def score(self, prediction: str | None, sample: Sample) -> Score | None:
        """The worth of one reply, for sight while a run goes on.

        Returns:
            None where the set does not count the sample, or has a score only as a whole (captions).
        """
        ...

    def total(self, predictions: Sequence[str | None], samples: Sequence[Sample]) -> Totals:
        """Figures over the set; a sample without a prediction counts as wrong."""
        ...


Judge = Callable[[str | None, Sample], Score | None]


def mean_of(pairs: Sequence[Pair]) -> Pair:
    """Means of both columns; 0 over nothing."""
    n = len(pairs) or 1
    return Pair(sum(p.official for p in pairs) / n, sum(p.lenient for p in pairs) / n)


def tally(
    scores: Sequence[Score | None], predictions: Sequence[str | None], figures: Mapping[str, Pair]
) -> Totals:
    """Totals with the shares of replies that abstained and of those that could not be read."""
    unread = [
        prediction is None or says_unknown(prediction)
        for prediction, score in zip(predictions, scores, strict=True)
        if score is not None and score.read is None
    ]
    return Totals(
        figures=figures,
        scores=tuple(scores),
        counted=sum(score is not None for score in scores),
        abstained=sum(unread),
        unparsable=len(unread) - sum(unread),
    )


@dataclass(frozen=True, slots=True)
class PerSample:
    """A scorer whose figure is the mean over samples.

    Attributes:
        name: What it is called, and its figure.
        judge: Scores one reply.
    """

    name: str
    judge: Judge

    def score(self, prediction: str | None, sample: Sample) -> Score | None:
        """The worth of one reply."""
        return self.judge(prediction, sample)

    def total(self, predictions: Sequence[str | None], samples: Sequence[Sample]) -> Totals:
        """The mean, in both columns."""
        scores = [self.judge(p, sample) for p, sample in zip(predictions, samples, strict=True)]
        return tally(scores, predictions, {self.name: mean_of([s for s in scores if s is not None])})
