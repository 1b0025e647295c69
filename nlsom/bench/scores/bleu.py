"""BLEU-1 to BLEU-4 (Papineni et al. 2002) and ROUGE-L (Lin 2004), as COCO's caption tool computes them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

Tokens = Sequence[str]

_ORDERS = 4
_TINY, _SMALL = 1e-15, 1e-9  # the tool's guards against a division by zero
_BETA = 1.2


@dataclass(frozen=True, slots=True)
class Bleu:
    """BLEU-1 to BLEU-4.

    Attributes:
        corpus: BLEU of the whole set, shape (4,); not the mean over captions.
        captions: BLEU of each caption, shape (n, 4).
    """

    corpus: tuple[float, ...]
    captions: list[tuple[float, ...]]


def bleu(hypotheses: Sequence[Tokens], references: Sequence[Sequence[Tokens]]) -> Bleu:
    """Clipped n-gram precision, with a brevity penalty relative to the reference closest in length."""
    captions: list[tuple[float, ...]] = []
    total_right, total_said = [0] * _ORDERS, [0] * _ORDERS
    total_length = total_wanted = 0
    for hypothesis, group in zip(hypotheses, references, strict=True):
        length = len(hypothesis)
        wanted = min((abs(len(reference) - length), len(reference)) for reference in group)[1]
        said = [max(0, length - order) for order in range(_ORDERS)]
        right = _clipped(hypothesis, group)
        captions.append(_geometric(right, said, length, wanted))
        total_length, total_wanted = total_length + length, total_wanted + wanted
        total_right = [a + b for a, b in zip(total_right, right, strict=True)]
        total_said = [a + b for a, b in zip(total_said, said, strict=True)]
    return Bleu(_geometric(total_right, total_said, total_length, total_wanted), captions)


def _clipped(hypothesis: Tokens, group: Sequence[Tokens]) -> list[int]:
    right = [0] * _ORDERS
    for order in range(1, _ORDERS + 1):
        said = _grams(hypothesis, order)
        if not said:
            break
        most: dict[tuple[str, ...], int] = {}
        for reference in group:
            for gram, count in _grams(reference, order).items():
                if gram in said and count > most.get(gram, 0):
                    most[gram] = count
        right[order - 1] = sum(min(said[gram], count) for gram, count in most.items())
    return right


def _grams(tokens: Tokens, order: int) -> Counter[tuple[str, ...]]:
    return Counter(zip(*(tokens[start:] for start in range(order)), strict=False))


def _geometric(right: Sequence[int], said: Sequence[int], length: int, wanted: int) -> tuple[float, ...]:
    ratio = (length + _TINY) / (wanted + _SMALL)
    brevity = math.exp(1 - 1 / ratio) if ratio < 1 else 1.0
    product, out = 1.0, list[float]()
    for order in range(_ORDERS):
        product *= (right[order] + _TINY) / (said[order] + _SMALL)
        out.append(product ** (1 / (order + 1)) * brevity)
    return tuple(out)


def rouge_l(hypothesis: Tokens, references: Sequence[Tokens]) -> float:
    """ROUGE-L of one caption (0 to 1), from the best precision and best recall over references; beta 1.2."""
    # The tool treats an empty caption as one empty word.
    said = list(hypothesis) or [""]
    common = [(_subsequence(said, list(reference) or [""]), len(reference) or 1) for reference in references]
    precision = max(length for length, _ in common) / len(said)
    recall = max(length / size for length, size in common)
    if not precision or not recall:
        return 0.0
    return (1 + _BETA**2) * precision * recall / (recall + _BETA**2 * precision)


def _subsequence(one: Tokens, other: Tokens) -> int:
    """Length of the longest common subsequence; bit-parallel, one table row per integer (Hyyrö 2004)."""
    places: dict[str, int] = {}
    for at, token in enumerate(one):
        places[token] = places.get(token, 0) | 1 << at
    row = full = (1 << len(one)) - 1
    for token in other:
        match = row & places.get(token, 0)
        row = ((row + match) | (row - match)) & full
    return len(one) - row.bit_count()
