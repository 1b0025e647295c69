"""Scorers: each applies the official rules of a set, and alongside them what a person would accept."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from nlsom import plugins
from nlsom.bench.scores import choice, mmmu, strings, vqa
from nlsom.bench.scores.caption import Captions, Similarity
from nlsom.bench.scores.contract import Pair, PerSample, Score, Scorer, Totals
from nlsom.bench.scores.mmbench import Circular
from nlsom.bench.scores.pope import Pope
from nlsom.errors import Unavailable, UsageError, meant

__all__ = ["SCORERS", "Pair", "Score", "Scorer", "Similarity", "Totals", "scorer"]

_ALL: tuple[Scorer, ...] = (
    PerSample("vqa", vqa.judge_by(vqa.vqa_accuracy)),
    PerSample("textvqa", vqa.judge_by(vqa.textvqa_accuracy)),
    PerSample("vizwiz", vqa.vizwiz),
    PerSample("aokvqa-choice", choice.aokvqa_choice),
    PerSample("aokvqa-direct", choice.aokvqa_direct),
    PerSample("choice", choice.scienceqa),
    PerSample("answer", choice.one_answer),
    PerSample("mmmu", mmmu.mmmu),
    Circular(),
    PerSample("anls", strings.judge_anls),
    PerSample("relaxed", strings.judge_relaxed),
    PerSample("exact", strings.judge_exact),
    Pope(),
    Captions(),
)
SCORERS: Mapping[str, Scorer] = MappingProxyType({scorer.name: scorer for scorer in _ALL})
"""The built-in scorers by name, except `tara`, which needs a model for embeddings."""

_UNAVAILABLE = {
    "meteor": "METEOR 1.5 is a Java program with its own paraphrase tables, and this package ships neither",
    "spice": "SPICE needs the Stanford parser (Java, 6 GB of memory), and this package does not ship it",
}


def scorer(name: str) -> Scorer:
    """Returns the scorer with this name, from `SCORERS` or the entry point group `nlsom.scorers`.

    An entry point refers to a callable without arguments that returns a `Scorer`.

    Raises:
        Unavailable: METEOR or SPICE was requested; no approximation is offered in their place.
        UsageError: There is no such scorer.
    """
    key = name.casefold()
    if key in _UNAVAILABLE:
        raise Unavailable(f"{name} is unavailable: {_UNAVAILABLE[key]}; use CIDEr (scorer 'captions')")
    if key in SCORERS:
        return SCORERS[key]
    known = [*SCORERS, *sorted(plugins.installed("scorers"))]
    if name not in known:
        raise UsageError(f"no scorer is called {name!r}; {meant(key, known)}")
    return plugins.load("scorers", name)()
