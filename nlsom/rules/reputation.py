"""Estimating competence: from a record of past tasks, or from who agrees with whom."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Beta:
    """Belief about the probability that a voter is right: a Beta distribution, by default uniform.

    Attributes:
        right: Tasks answered correctly, plus those that the prior is worth.
        wrong: Tasks answered wrongly, plus those that the prior is worth.
    """

    right: float = 1.0
    wrong: float = 1.0

    def __post_init__(self) -> None:
        if not (self.right > 0 and self.wrong > 0):
            raise ValueError(f"beta: right ({self.right}) and wrong ({self.wrong}) must be above 0")

    def seen(self, right: int, wrong: int) -> Beta:
        """The belief after more tasks."""
        return Beta(self.right + right, self.wrong + wrong)

    @property
    def mean(self) -> float:
        """The expected competence: the probability that the next answer is right."""
        return self.right / (self.right + self.wrong)

    @property
    def deviation(self) -> float:
        """Standard deviation of the belief."""
        return math.sqrt(self.mean * (1 - self.mean) / (self.right + self.wrong + 1))


@dataclass(frozen=True, slots=True)
class Estimate:
    """Estimated competences, and probabilities of answers.

    Attributes:
        competence: Probability that a voter is right, by voter.
        posterior: For each item, the probability of each answer that was given.
        rounds: Rounds of EM that were run.
        converged: Whether the competences had converged by then.
    """

    competence: dict[str, float]
    posterior: tuple[dict[str, float], ...]
    rounds: int
    converged: bool


def dawid_skene(
    items: Sequence[Mapping[str, str]],
    *,
    options: Sequence[int | None] | None = None,
    prior: Beta = Beta(2.0, 1.0),
    rounds: int = 200,
    tolerance: float = 1e-6,
) -> Estimate:
    """Estimates competences without knowing any right answer, by EM (Dawid and Skene 1979).

    Answers to different questions have no labels in common. So a voter is described by one number, its
    probability of being right, and all wrong answers are equally likely: the one-coin model (Zhang et al.
    2014, "Spectral methods meet EM"). The prior leans towards better than chance, so that the estimate
    follows the majority and not its mirror image.

    Args:
        items: For each item the answers by voter, without those who abstained.
        options: For each item the number of answers to choose from; None for as many as were given, at least
            2.
        prior: Belief about every voter.
        rounds: Most rounds of EM.
        tolerance: Stops when no competence changes by more than this.

    Raises:
        ValueError: `options` is not as long as `items`, or smaller than the number of answers given.
    """
    voters = sorted({voter for item in items for voter in item})
    labels = [sorted(set(item.values())) for item in items]
    if options is not None and len(options) != len(items):
        raise ValueError(f"{len(options)} counts of options were given for {len(items)} items")
    widths = [max(2, len(given)) for given in labels]
    for at, stated in enumerate(options or ()):
        if stated is not None and stated < len(labels[at]):
            raise ValueError(
                f"item {at}: {len(labels[at])} answers were given but only {stated} options stated"
            )
        widths[at] = max(widths[at], stated or 0)
    seat = {voter: at for at, voter in enumerate(voters)}
    triples = [
        (at, seat[voter], labels[at].index(answer))
        for at, item in enumerate(items)
        for voter, answer in sorted(item.items())
    ]
    if not triples:
        return Estimate({}, tuple({} for _ in items), 0, True)
    item_of, voter_of, label_of = np.array(triples).T
    open_label = np.arange(max(map(len, labels)))[None, :] < np.array([len(x) for x in labels])[:, None]
    wrong_ways = np.log(np.array(widths) - 1.0)
    given = np.bincount(voter_of, minlength=len(voters))

    posterior = np.zeros(open_label.shape)
    np.add.at(posterior, (item_of, label_of), 1.0)
    posterior /= np.maximum(posterior.sum(axis=1, keepdims=True), 1.0)
    competence = np.full(len(voters), prior.mean)
    done, moved = 0, math.inf
    while done < rounds and moved > tolerance:
        done += 1
        right = np.bincount(voter_of, weights=posterior[item_of, label_of], minlength=len(voters))
        # The mean of the posterior rather than its mode: it stays off 0 and 1 with any prior.
        updated = (prior.right + right) / (prior.right + prior.wrong + given)
        moved = float(np.abs(updated - competence).max())
        competence = updated
        weight = np.log(competence) - np.log1p(-competence)
        logits = np.where(open_label, 0.0, -np.inf)
        np.add.at(logits, (item_of, label_of), weight[voter_of] + wrong_ways[item_of])
        top = np.where(open_label.any(axis=1), logits.max(axis=1), 0.0)
        posterior = np.exp(logits - top[:, None])
        posterior /= np.maximum(posterior.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    return Estimate(
        competence={voter: float(p) for voter, p in zip(voters, competence, strict=True)},
        posterior=tuple(
            {name: float(p) for name, p in zip(names, row, strict=False)}
            for names, row in zip(labels, posterior, strict=True)
        ),
        rounds=done,
        converged=moved <= tolerance,
    )
