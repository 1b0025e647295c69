"""Seconds for CIDEr over 5,000 captions with 5 references each: `python benchmarks/captions.py`."""

import argparse
import random
import statistics
import time

from nlsom.bench.scores.cider import cider
from nlsom.bench.scores.tokens import tokenize

WORDS = 10_000
"""Size of the vocabulary, whose words are drawn by Zipf's law, like those of real captions."""


def captions(count: int, lot: random.Random) -> list[str]:
    """Random captions of 8 to 14 words."""
    weights = [1 / rank for rank in range(1, WORDS + 1)]
    words = [f"word{n}" for n in range(WORDS)]
    return [
        " ".join(lot.choices(words, weights, k=lot.randint(8, 14))).capitalize() + "." for _ in range(count)
    ]


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--captions", type=int, default=5000)
    parser.add_argument("--times", type=int, default=5)
    given = parser.parse_args()
    lot = random.Random(0)  # noqa: S311 - no secret
    said = captions(given.captions, lot)
    gold = captions(5 * given.captions, lot)
    scores: list[float] = []
    tokens: list[float] = []
    for _ in range(given.times):
        began = time.perf_counter()
        hypotheses = [tokenize(text) for text in said]
        references = [[tokenize(text) for text in gold[5 * n : 5 * n + 5]] for n in range(given.captions)]
        tokens.append(time.perf_counter() - began)
        began = time.perf_counter()
        cider(hypotheses, references)
        scores.append(time.perf_counter() - began)
    for name, seconds in (("tokenizer", tokens), ("CIDEr and CIDEr-D", scores)):
        print(
            f"{name}: best {min(seconds):.2f} s, median {statistics.median(seconds):.2f} s of {given.times}"
        )


if __name__ == "__main__":
    main()
