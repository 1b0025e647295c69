"""Reports as Markdown and CSV, for papers and programs."""

from __future__ import annotations

import io
from collections.abc import Sequence
from csv import DictWriter

from nlsom.bench.line import Line
from nlsom.bench.scores import Score
from nlsom.bench.standing import Standing


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    top, *lines = (f"| {' | '.join(cells)} |" for cells in (head, *rows))
    return "\n".join([top, "|" + "---|" * len(head), *lines])


def markdown(every: Sequence[Standing]) -> str:
    """A Markdown table of all societies: the set's figures, official and lenient, with 95 % intervals."""
    rows: list[list[str]] = []
    for one in every:
        interval = one.interval()
        for at, (name, pair) in enumerate(one.figures.items()):
            figure = [name, f"{pair.official:.3f}", f"{pair.lenient:.3f}"]
            if at:
                rows.append(["", "", "", *figure, *[""] * 6])
            else:
                shares = [f"{one.unparsable:.1%}", f"{one.abstained:.1%}", str(len(one.failed))]
                cost = [f"{one.tokens:.0f}", f"{one.calls:.1f}"]
                between = f"{interval.low:.3f} to {interval.high:.3f}"
                rows.append([one.name, one.on, str(len(one.samples)), *figure, between, *shares, *cost])
    head = ("society", "set", "samples", "figure", "official", "lenient", "95 % (lenient)")
    return table((*head, "unparsable", "abstained", "failed", "tokens", "calls"), rows) + "\n"


def csv(every: Sequence[Standing]) -> str:
    """A CSV table with one row for each sample, society and seed."""
    rows: list[dict[str, object]] = []
    for one in every:
        scores = {id(line): score for line, score in one.scored}
        rows += [_row(one, line, scores.get(id(line))) for line in one.lines]
    out = io.StringIO()
    writer = DictWriter(out, rows[0], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def _row(one: Standing, line: Line, score: Score | None) -> dict[str, object]:
    return {
        "run": one.run,
        "set": one.on,
        "society": one.name,
        "seed": line.seed,
        "sample": line.sample,
        "question": line.question,
        "gold": "|".join(line.answers or line.references),
        "answer": line.answer,
        "official": score and score.official,
        "lenient": score and score.lenient,
        "read": score and score.read,
        "why": score and score.why,
        "confidence": line.confidence,
        "tied": "|".join(line.tied),
        "abstained": "|".join(f"{a.member}: {a.cause}" for a in line.abstained),
        "cut_short": line.cut_short,
        "calls": line.usage.calls,
        "prompt_tokens": line.usage.prompt_tokens,
        "completion_tokens": line.usage.completion_tokens,
        "seconds": line.usage.seconds,
        "error": line.error,
    }
