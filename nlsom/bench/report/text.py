"""Reports for programs and for papers: Markdown and CSV."""

from __future__ import annotations

import io
from collections.abc import Sequence
from csv import writer

from nlsom.bench.standing import Standing

_COLUMNS = [
    "run",
    "set",
    "society",
    "seed",
    "sample",
    "question",
    "gold",
    "answer",
    "official",
    "lenient",
    "read",
    "why",
    "confidence",
    "tied",
    "abstained",
    "cut_short",
    "calls",
    "prompt_tokens",
    "completion_tokens",
    "seconds",
    "error",
]


def markdown(every: Sequence[Standing]) -> str:
    """A table, a row a society; all figures of the set in both columns, the interval at 95 %."""
    lines = [
        "| society | set | samples | figure | official | lenient | 95 % (lenient) | unparsable | abstained "
        "| failed | tokens | calls |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for one in every:
        interval = one.interval()
        for at, (name, pair) in enumerate(one.figures.items()):
            cells = [
                one.name,
                one.on,
                str(len(one.samples)),
                name,
                f"{pair.official:.3f}",
                f"{pair.lenient:.3f}",
            ]
            if at:
                cells = ["", "", "", *cells[3:], "", "", "", "", "", ""]
            else:
                cells.append(f"{interval.low:.3f} to {interval.high:.3f}")
                cells += [f"{one.unparsable:.1%}", f"{one.abstained:.1%}", str(len(one.failed))]
                cells += [f"{one.tokens:.0f}", f"{one.calls:.1f}"]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def csv(every: Sequence[Standing]) -> str:
    """A row a sample, society and seed."""
    out = io.StringIO()
    rows = writer(out, lineterminator="\n")
    rows.writerow(_COLUMNS)
    for one in every:
        scores = {id(line): score for line, score in one.scored}
        for line in one.lines:
            score = scores.get(id(line))
            gold = "|".join(line.answers or line.references)
            rows.writerow(
                [
                    one.run,
                    one.on,
                    one.name,
                    line.seed,
                    line.sample,
                    line.question,
                    gold,
                    line.answer if line.answer is not None else "",
                    "" if score is None else score.official,
                    "" if score is None else score.lenient,
                    "" if score is None else score.read or "",
                    "" if score is None else score.why,
                    "" if line.confidence is None else line.confidence,
                    "|".join(line.tied),
                    "|".join(f"{a.member}: {a.cause}" for a in line.abstained),
                    line.cut_short or "",
                    line.usage.calls,
                    line.usage.prompt_tokens,
                    line.usage.completion_tokens,
                    line.usage.seconds,
                    line.error,
                ]
            )
    return out.getvalue()
