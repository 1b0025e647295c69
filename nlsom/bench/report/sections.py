"""The sections of the page as HTML."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

from nlsom.bench.compare import Comparison, compare_all
from nlsom.bench.report.facts import Facts, by_kind, calibration
from nlsom.bench.report.plots import COLOURS, NAMED, Point, Series, interval_bars, lines, reliability, scatter
from nlsom.bench.report.worth import Worth
from nlsom.bench.standing import Standing
from nlsom.errors import UsageError

_KINDS = 12  # maximum number of kinds of question shown
_LONG = 28  # a cell with more characters than this may be wrapped
_MANY = 24  # a table of more members than this is collapsed


def section(title: str, note: str, *parts: str) -> str:
    """A section with a note; "" if it has no content. The note and the parts are HTML."""
    inside = "".join(parts)
    return f'<section><h2>{escape(title)}</h2><p class="note">{note}</p>{inside}</section>' if inside else ""


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table; cells are HTML."""
    top = "".join(f"<th>{escape(one)}</th>" for one in head)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return f'<div class="scroll"><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'


def _cell(inside: str) -> str:
    """A table cell; long text may be wrapped."""
    long = ' class="long"' if len(inside) > _LONG and "<" not in inside else ""
    return f"<td{long}>{inside}</td>"


def figure(caption: str, svg: str) -> str:
    """A plot with its caption; "" without a plot."""
    return f"<figure><figcaption>{escape(caption)}</figcaption>{svg}</figure>" if svg else ""


def key(names: Sequence[str]) -> str:
    """The legend: the colour of each society."""
    dots = [
        f'<span><i style="background:var(--c{at % COLOURS})"></i>{escape(one)}</span>'
        for at, one in enumerate(names)
    ]
    return f'<p class="key">{"".join(dots)}</p>'


def scores(every: Sequence[Standing], found: Sequence[Facts]) -> str:
    """All figures, official and lenient, with their cost."""
    rows: list[list[str]] = []
    for one, fact in zip(every, found, strict=True):
        interval = one.interval()
        for at, (name, pair) in enumerate(one.figures.items()):
            figure = [escape(name), f"{pair.official:.3f}", f"{pair.lenient:.3f}"]
            if at:
                rows.append(["", *figure, *[""] * 8])
                continue
            between = f"{interval.low:.3f} to {interval.high:.3f}"
            shares = [f"{one.unparsable:.1%}", f"{one.abstained:.1%}", str(len(one.failed))]
            cost = [f"{one.tokens:,.0f}", f"{one.calls:.1f}", f"{fact.path:.1f}"]
            rows.append([escape(one.name), *figure, between, str(len(one.samples)), *shares, *cost])
    head = ("society", "figure", "official", "lenient", "95 % (lenient)", "samples")
    head = (*head, "unparsable", "abstained", "failed", "tokens", "calls", "seconds")
    failed = [line for one in every for line in one.failed]
    named = "".join(
        f"<p>{escape(line.society)}, sample {escape(line.sample)}: {escape(line.error)}</p>"
        for line in failed
    )
    note = (
        "Official: the score of the set's own tool. Lenient: as a person would judge; case, a final period, "
        "markdown or a letter for an option do not matter. Tokens, calls and seconds are means per sample; "
        "seconds are those of the slowest member of each step, summed."
    )
    more = f"<details><summary>{len(failed)} samples failed</summary>{named}</details>" if failed else ""
    return section("Scores", note, table(head, rows), more)


def costs(every: Sequence[Standing], found: Sequence[Facts]) -> str:
    """Score against tokens and seconds, with the Pareto front."""
    scale = [one.interval() for one in every]
    by_tokens = [
        Point(one.tokens, i.estimate, i.low, i.high, one.name, at)
        for at, (one, i) in enumerate(zip(every, scale, strict=True))
    ]
    by_seconds = [
        Point(fact.path, i.estimate, i.low, i.high, fact.standing.name, at)
        for at, (fact, i) in enumerate(zip(found, scale, strict=True))
    ]
    plots = (
        figure(
            "Score (lenient) against tokens per sample",
            scatter(by_tokens, "tokens per sample", "score", "Score against tokens"),
        ),
        figure(
            "Score (lenient) against seconds per sample",
            scatter(by_seconds, "seconds per sample", "score", "Score against seconds"),
        ),
    )
    note = (
        "The dashed line is the Pareto front: societies that none other matches at lower cost. "
        "Bars are 95 % intervals."
    )
    legend = key([one.name for one in every]) if len(every) > NAMED else ""
    return section("Score and cost", note, legend, f'<div class="plots">{"".join(plots)}</div>')


def compared(every: Sequence[Standing]) -> str:
    """Comparisons of all pairs of societies; for more than five, of all with the first."""
    if len(every) < 2:
        return ""
    try:
        found = compare_all(every) if len(every) <= 5 else compare_all(every, against=every[0].name)
    except UsageError as error:
        return section("Comparisons", escape(str(error)), "<p></p>")
    rows = [_compared_row(one) for one in found]
    head = ("society", "against", "gain", "95 %", "only society right", "only other right")
    head = (*head, "p", "p (Holm)", "per 1,000 tokens")
    note = (
        "Paired by sample: bootstrap intervals of the gain, and McNemar's mid-p, adjusted for all rows by "
        "Holm's method. If the interval contains 0, this run cannot distinguish the two societies."
    )
    return section("Comparisons", note, table(head, rows))


def _compared_row(one: Comparison) -> list[str]:
    gain, per = one.difference, one.per_thousand
    return [
        escape(one.one),
        escape(one.other),
        f"{gain.estimate:+.3f}",
        f"{gain.low:+.3f} to {gain.high:+.3f}",
        str(one.test.only_one),
        str(one.test.only_other),
        f"{one.p:.3f}",
        f"{one.adjusted:.3f}",
        "–" if per is None else f"{per:+.4f}",
    ]


def rounds(found: Sequence[Facts]) -> str:
    """Agreement and changed answers, step by step."""
    talked = [(at, one) for at, one in enumerate(found) if any(r.answers for r in one.rounds)]
    deep = [(at, one) for at, one in talked if len(one.rounds) > 1]
    most = max((len(one.rounds) for _, one in deep), default=0)
    names = [str(n + 1) for n in range(most)]
    agreed = [Series(one.standing.name, [r.agreed for r in one.rounds], at) for at, one in deep]
    right = [Series(one.standing.name, [r.right / r.answers for r in one.rounds], at) for at, one in deep]
    plots = figure(
        "Agreement (share of the most frequent answer) by step",
        lines(agreed, names, "agreement", "Agreement by step"),
    ) + figure("Share of right answers by step", lines(right, names, "share right", "Share right by step"))
    rows = [
        [
            escape(one.standing.name) if not n else "",
            escape(r.name),
            str(r.answers),
            f"{r.right / r.answers:.3f}",
            f"{r.agreed:.3f}",
            str(r.lost) if n else "",
            str(r.won) if n else "",
            str(r.kept) if n else "",
        ]
        for _, one in talked
        for n, r in enumerate(one.rounds)
    ]
    head = ("society", "step", "answers", "right", "agreement", "right→wrong", "wrong→right", "kept")
    note = "Steps in which members answered the question; changes are relative to a member's previous answer."
    legend = key([fact.standing.name for fact in found]) if deep else ""
    shown = f'<div class="plots">{plots}</div>' if plots else ""
    return section("Rounds", note, legend, shown, table(head, rows) if rows else "")


def calibrated(every: Sequence[Standing]) -> str:
    """Confidence of verdicts compared with how often they are right."""
    plots: list[str] = []
    for at, one in enumerate(every):
        bins, error = calibration(one)
        if error is not None:
            dots = [(b.confidence, b.right, b.number) for b in bins]
            caption = f"{one.name}: expected calibration error {error:.3f}"
            plots.append(figure(caption, reliability(dots, f"Calibration of {one.name}", at)))
    note = "How often verdicts of a given confidence are right; on the dashed line, confidence is calibrated."
    return section("Calibration", note, f'<div class="plots">{"".join(plots)}</div>' if plots else "")


def kinds(every: Sequence[Standing]) -> str:
    """Scores by kind of question."""
    found = [by_kind(one) for one in every]
    if not found or not found[0]:
        return ""
    kinds = list(found[0])[:_KINDS]
    rows = [
        [
            escape(kind),
            str(found[0][kind][1]),
            *(f"{one[kind][0]:.3f}" if kind in one else "–" for one in found),
        ]
        for kind in kinds
    ]
    head = ("kind", "samples", *(one.name for one in every))
    note = "Mean lenient score by the set's own kinds of question, or else by the question's first two words."
    return section("Kinds of question", note, table(head, rows))


def members(
    found: Sequence[Facts], counted: Mapping[str, Sequence[Worth]], drawn: Mapping[str, Sequence[Worth]]
) -> str:
    """Contribution, cost and worth of each member.

    Args:
        found: Facts about the societies.
        counted: Worth by recounted votes, by society.
        drawn: Worth by fresh runs, by society; empty if there were none.
    """
    parts: list[str] = []
    for at, one in enumerate(found):
        name = one.standing.name
        if len(one.shares) < 2:
            continue
        votes = {worth.member: worth for worth in counted.get(name, ())}
        anew = {worth.member: worth for worth in drawn.get(name, ())}
        samples = max(1, len(one.standing.lines))
        rows = [
            [
                escape(share.name),
                f"{share.calls / samples:.1f}",
                f"{share.tokens / samples:,.0f}",
                f"{share.seconds / samples:.1f}",
                f"{share.right / share.answers:.3f}" if share.answers else "–",
                _worth(votes.get(share.name)),
                _worth(anew.get(share.name)),
            ]
            for share in one.shares
        ]
        head = (
            "member",
            "calls",
            "tokens",
            "seconds",
            "last answer right",
            "worth: votes",
            "worth: fresh run",
        )
        bars = [
            (worth.member, worth.gain.estimate, worth.gain.low, worth.gain.high)
            for worth in (anew or votes).values()
            if not math.isnan(worth.gain.estimate)
        ]
        plot = figure("Score lost without the member", interval_bars(bars, f"Members of {name}", at))
        shown = table(head, rows) + (f'<div class="plots">{plot}</div>' if plot else "")
        if len(rows) > _MANY:
            shown = f"<details><summary>{len(rows)} members</summary>{shown}</details>"
        parts.append(f"<h3>{escape(name)}</h3>{shown}")
    note = (
        "Calls, tokens and seconds are means per sample. Worth is the score lost without the member. "
        "<i>Votes</i>: the votes counted again without its own, from the trace; the others still heard it. "
        "<i>Fresh run</i> (<code>--fresh</code>): the society run again without it, using stored replies "
        "where possible; the number of new calls stands beside."
    )
    return section("Members", note, *parts)


def _worth(worth: Worth | None) -> str:
    if worth is None:
        return "–"
    gain = worth.gain
    drawn = f" <small>{worth.draws} calls</small>" if worth.draws else ""
    return f"{gain.estimate:+.3f} <small>[{gain.low:+.3f}, {gain.high:+.3f}]</small>{drawn}"
