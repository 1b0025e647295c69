"""The score of TARA with the embedded sentence model."""

from __future__ import annotations

from nlsom.bench.scores import Scorer, Similarity
from nlsom.errors import ModelUnavailable
from nlsom_agents.local.embed import Sentences


def tara() -> Scorer:
    """Compares captions by their sentence vectors.

    Raises:
        ModelUnavailable: The model is not in the cache: told before a run, not after it.
    """
    sentences = Sentences()
    if name := sentences.missing():
        raise ModelUnavailable(f"scorer 'tara' needs the model {name!r}; run: nlsom models pull {name}")
    return Similarity(sentences.vectors)
