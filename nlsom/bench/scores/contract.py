"""The interface of a scorer: a score per sample where one is defined, and figures over the whole set."""

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
        official: The value by the rules of the set's official tool.
        lenient: The value as a person would judge: ignores case, a final period and markdown, and accepts
            "Answer: red" and the letter of an option.
    """

    official: float
    lenient: float


@dataclass(frozen=True, slots=True)
class Score(Pair):
    """The score of a reply, between 0 and 1 except for captions.

    Attributes:
        read: The answer that the lenient column read from the reply; None if it could not read one.
        why: How it was read, or why not.
    """

    read: str | None
    why: str


@dataclass(frozen=True, slots=True)
class Totals:
    """Figures over a whole set.

    Attributes:
        figures: The figures by name, the main one first; shares between 0 and 1, except for captions.
        scores: One per sample, in order; None for a sample that the set does not count.
        counted: Number of samples on which the figures are based.
        abstained: How many of these got no reply, or one like "I don't know".
        unparsable: How many of these got a reply from which no answer could be read.
    """

    figures: Mapping[str, Pair]
    scores: tuple[Score | None, ...]
    counted: int
    abstained: int
    unparsable: int


class Scorer(Protocol):
    """Scores replies to the samples of a set."""

    @property
    def name(self) -> str:
        """The name by which it is looked up."""
        ...

    def score(self, prediction: str | None, sample: Sample) -> Score | None:
        """Scores one reply; shown while a run is under way.

        Returns:
            None if the set does not count the sample, or if only the whole set can be scored (captions).
        """
        ...

    def total(self, predictions: Sequence[str | None], samples: Sequence[Sample]) -> Totals:
        """Computes the figures over the set; a prediction of None (no reply) counts as wrong."""
        ...


Judge = Callable[[str | None, Sample], Score | None]


def mean_of(pairs: Sequence[Pair]) -> Pair:
    """The means of both columns; 0 if there are no pairs."""
    n = len(pairs) or 1
    return Pair(sum(p.official for p in pairs) / n, sum(p.lenient for p in pairs) / n)


def tally(
    scores: Sequence[Score | None], predictions: Sequence[str | None], figures: Mapping[str, Pair]
) -> Totals:
    """Totals with these figures and scores; counts the replies that abstained or could not be read."""
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
    """A scorer whose only figure is the mean over samples.

    Attributes:
        name: Name of the scorer and of its figure.
        judge: Scores one reply.
    """

    name: str
    judge: Judge

    def score(self, prediction: str | None, sample: Sample) -> Score | None:
        """Scores one reply."""
        return self.judge(prediction, sample)

    def total(self, predictions: Sequence[str | None], samples: Sequence[Sample]) -> Totals:
        """Computes the mean in both columns."""
        scores = [self.judge(p, sample) for p, sample in zip(predictions, samples, strict=True)]
        return tally(scores, predictions, {self.name: mean_of([s for s in scores if s is not None])})
