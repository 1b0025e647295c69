"""Caption scores: CIDEr, BLEU and ROUGE-L over a whole set, and similarity of sentence embeddings (TARA)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from nlsom.bench.sample import Sample
from nlsom.bench.scores.bleu import bleu, rouge_l
from nlsom.bench.scores.cider import cider
from nlsom.bench.scores.contract import Pair, Score, Totals, mean_of, tally
from nlsom.bench.scores.tokens import tokenize
from nlsom.errors import UsageError
from nlsom.reading import clean

Embed = Callable[[Sequence[str]], NDArray[np.floating]]
"""Maps n texts to vectors, shape (n, dimensions)."""

_LEAD = re.compile(r"\A(?:(?:the |a )?(?:image )?caption(?: is)?|description|answer)\s*[:-]\s*", re.I)


def caption_of(prediction: str | None) -> str:
    """The caption in a reply, without markdown, "Caption:" at the start, and quotes; "" for no reply."""
    return _LEAD.sub("", " ".join(clean(prediction or "").split())).strip("\"' ")


def _checked(samples: Sequence[Sample]) -> None:
    bare = [sample.id for sample in samples if not sample.references]
    if bare:
        raise UsageError(
            f"cannot score captions: {len(bare)} of {len(samples)} samples have no reference captions "
            f"(the first: {bare[0]})"
        )


class Captions:
    """COCO's caption scores, except METEOR and SPICE. A sample's score is its CIDEr-D, from 0 to 10.

    Figures: `CIDEr` (CIDEr-D, as COCO's tool prints it), `BLEU-1` to `BLEU-4`, `ROUGE-L`, and `CIDEr-plain`
    (neither clipped nor penalised). The lenient column first removes markdown, "Caption:" and enclosing
    quotes. A missing reply counts as an empty caption.
    """

    name = "captions"

    def score(self, prediction: str | None, sample: Sample) -> None:
        """Returns None: CIDEr needs the document frequencies of the whole set."""

    def total(self, predictions: Sequence[str | None], samples: Sequence[Sample]) -> Totals:
        """Computes all figures.

        Raises:
            UsageError: A sample has no reference captions.
        """
        _checked(samples)
        references = [[tokenize(reference) for reference in sample.references] for sample in samples]
        said = [caption_of(prediction) for prediction in predictions]
        official = [tokenize(prediction or "") for prediction in predictions]
        lenient = [tokenize(caption) for caption in said]
        columns = _figures(official, references)
        by_eye = columns if lenient == official else _figures(lenient, references)
        scores = [
            Score(float(a), float(b), caption or None, "the caption" if caption else "no caption")
            for a, b, caption in zip(columns[1], by_eye[1], said, strict=True)
        ]
        figures = {name: Pair(value, by_eye[0][name]) for name, value in columns[0].items()}
        return tally(scores, predictions, figures)


def _apart(captions: Sequence[Sequence[str]]) -> list[list[str]]:
    """Splits tokens like "1 1/2" into two words, as the tool does for every score except ROUGE-L."""
    return [" ".join(tokens).split() for tokens in captions]


def _figures(
    hypotheses: Sequence[Sequence[str]], references: Sequence[Sequence[Sequence[str]]]
) -> tuple[dict[str, float], NDArray[np.float64]]:
    if not hypotheses:
        return {"CIDEr": 0.0}, np.zeros(0)
    apart, gold_apart = _apart(hypotheses), list(map(_apart, references))
    consensus, precision = cider(apart, gold_apart), bleu(apart, gold_apart)
    overlap = [rouge_l(said, gold) for said, gold in zip(hypotheses, references, strict=True)]
    figures = {"CIDEr": float(consensus.cider_d.mean())}
    figures |= {f"BLEU-{order}": value for order, value in enumerate(precision.corpus, 1)}
    figures |= {"ROUGE-L": sum(overlap) / len(overlap), "CIDEr-plain": float(consensus.cider.mean())}
    return figures, consensus.cider_d


class Similarity:
    """Cosine similarity of sentence embeddings, best over references; for TARA (Fu et al. 2022).

    An empty caption scores 0. Negative cosines are kept.
    """

    name = "tara"

    def __init__(self, embed: Embed) -> None:
        self._embed = embed

    def score(self, prediction: str | None, sample: Sample) -> None:
        """Returns None: captions are embedded only at the end, all in one call."""

    def total(self, predictions: Sequence[str | None], samples: Sequence[Sample]) -> Totals:
        """Computes the mean similarity; all texts are embedded in one call.

        Raises:
            UsageError: A sample has no reference captions.
        """
        scores = self._scores(predictions, samples)
        return tally(scores, predictions, {"similarity": mean_of(scores)})

    def _scores(self, predictions: Sequence[str | None], samples: Sequence[Sample]) -> list[Score]:
        _checked(samples)
        raw = [prediction or "" for prediction in predictions]
        said = [caption_of(prediction) for prediction in predictions]
        texts = [*raw, *said, *(reference for sample in samples for reference in sample.references)]
        vectors = np.asarray(self._embed(texts), np.float64)
        vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        scores: list[Score] = []
        at = 2 * len(raw)
        for n, sample in enumerate(samples):
            gold = vectors[at : at + len(sample.references)]
            at += len(sample.references)
            official = float((gold @ vectors[n]).max()) if raw[n].strip() else 0.0
            lenient = float((gold @ vectors[len(raw) + n]).max()) if said[n] else 0.0
            scores.append(
                Score(official, lenient, said[n] or None, "the caption" if said[n] else "no caption")
            )
        return scores
