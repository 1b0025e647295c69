"""The scorer `tara`: caption similarity by the embedded sentence model."""

from __future__ import annotations

from nlsom.bench.scores import Scorer, Similarity
from nlsom.errors import ModelUnavailable
from nlsom_agents.local.embed import Sentences


def tara() -> Scorer:
    """Makes a scorer that compares captions by their sentence vectors.

    Raises:
        ModelUnavailable: The model is not in the cache. Checked here, so that a run does not fail at its end.
    """
    sentences = Sentences()
    if name := sentences.missing():
        raise ModelUnavailable(f"scorer 'tara' needs the model {name!r}; run: nlsom models pull {name}")
    return Similarity(sentences.vectors)
