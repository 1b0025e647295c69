"""CIDEr and CIDEr-D (Vedantam et al. 2015) over a whole set, in NumPy.

The n-grams of all captions are numbered together, and each (caption, n-gram) pair that occurs is one entry of
a few flat arrays; the definitions' sums over n-grams become sums over these arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Tokens = Sequence[str]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_ORDERS = 4
_SIGMA = 6.0


@dataclass(frozen=True, slots=True)
class Cider:
    """Both scores for each of n pictures; the score of a set is the mean.

    Attributes:
        cider_d: CIDEr-D, with clipped counts and a length penalty; this is what COCO's caption tool prints as
            "CIDEr". Shape (n,), 0 to 10.
        cider: Plain CIDEr, without clipping and penalty. Shape (n,), 0 to 10.
    """

    cider_d: Floats
    cider: Floats


def cider(hypotheses: Sequence[Tokens], references: Sequence[Sequence[Tokens]]) -> Cider:
    """Scores one hypothesis per picture against its references, which also give the document frequencies.

    Args:
        hypotheses: The tokens of one caption for each of n pictures.
        references: For each picture, the tokens of its reference captions; at least one.

    Raises:
        ValueError: The lengths differ, or a picture has no reference.
    """
    if len(hypotheses) != len(references):
        raise ValueError(f"{len(hypotheses)} hypotheses for {len(references)} pictures")
    if not all(references):
        raise ValueError("every picture needs at least one reference")
    n = len(hypotheses)
    if not n:
        return Cider(np.zeros(0), np.zeros(0))
    per_picture = np.array([len(group) for group in references], np.int64)
    captions = [*hypotheses, *(caption for group in references for caption in group)]
    picture = np.concatenate([np.arange(n), np.repeat(np.arange(n), per_picture)])
    lengths = np.array([len(caption) for caption in captions], np.int64)
    owner = np.repeat(np.arange(len(captions)), lengths)
    words = _numbered(captions)
    span = int(words.max(initial=0)) + 1

    clipped, plain = np.zeros(len(captions) - n), np.zeros(len(captions) - n)
    starts, grams = np.arange(len(words)), words
    for order in range(1, _ORDERS + 1):
        if order > 1:  # extend each n-gram by one word where its caption is long enough
            last = starts + order - 1
            on = last < len(words)
            on[on] = owner[starts[on]] == owner[last[on]]
            starts, grams = starts[on], _dense(grams[on] * span + words[last[on]])
        one_clipped, one_plain = _order(grams, owner[starts], picture, n)
        clipped += one_clipped
        plain += one_plain

    # The tool uses the number of bigrams as the length of a caption.
    size = np.maximum(lengths - 1, 0)
    delta = (size[picture[n:]] - size[n:]).astype(np.float64)
    clipped *= np.exp(-(delta**2) / (2 * _SIGMA**2))
    scale = 10 / _ORDERS / per_picture
    return Cider(
        cider_d=np.bincount(picture[n:], clipped, n) * scale, cider=np.bincount(picture[n:], plain, n) * scale
    )


def _order(grams: Ints, owner: Ints, picture: Ints, n: int) -> tuple[Floats, Floats]:
    """Similarity of each reference to its hypothesis over n-grams of one order: (clipped, plain)."""
    span = int(grams.max(initial=0)) + 1
    entries, counts = np.unique(owner * span + grams, return_counts=True)
    owner, grams = entries // span, entries % span
    keys = picture[owner] * span + grams
    first = int(np.searchsorted(owner, n))  # hypotheses come first, then references

    ordered = np.sort(keys[first:])  # np.unique hashes, which is slower here
    once_a_picture = ordered[np.diff(ordered, prepend=-1) > 0]
    frequency = np.bincount(once_a_picture % span, minlength=span)
    weights: Floats = counts * (np.log(float(n)) - np.log(np.maximum(frequency, 1)))[grams]
    norms = np.sqrt(np.bincount(owner, weights**2, len(picture)))

    shared = np.minimum(np.searchsorted(keys[:first], keys[first:]), max(first - 1, 0))
    found = np.flatnonzero(keys[:first][shared] == keys[first:]) if first else np.zeros(0, np.int64)
    of_hypothesis, of_reference = weights[:first][shared[found]], weights[first:][found]
    into = owner[first:][found] - n
    product = norms[picture[n:]] * norms[n:]

    def similarity(each: Floats) -> Floats:
        dots = np.bincount(into, each * of_reference, len(product))
        return np.divide(dots, product, out=np.zeros(len(product)), where=product > 0)

    return similarity(np.minimum(of_hypothesis, of_reference)), similarity(of_hypothesis)


def _numbered(captions: Sequence[Tokens]) -> Ints:
    """All words of all captions in order, each replaced by a number."""
    numbers: dict[str, int] = {}
    return np.array(
        [numbers.setdefault(word, len(numbers)) for caption in captions for word in caption], np.int64
    )


def _dense(values: Ints) -> Ints:
    """The values renumbered without gaps."""
    return np.unique(values, return_inverse=True)[1].astype(np.int64)
