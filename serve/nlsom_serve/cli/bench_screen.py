"""Output of `nlsom bench`: progress, scores and comparisons, for people and as JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Generator, Sequence
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar
from rich.table import Table

from nlsom.bench.baseline import Baseline
from nlsom.bench.compare import Comparison
from nlsom.bench.equal_cost import Row
from nlsom.bench.line import Line
from nlsom.bench.progress import Progress, Watch
from nlsom.bench.sets import Caption, Question, Spec
from nlsom.bench.standing import Standing
from nlsom_serve.cli.screen import err, escape, out, print_json


@contextmanager
def progress_bars(*, quiet: bool = False) -> Generator[Watch | None]:
    """Progress bars on standard error, one per society, with rate, score so far and time left."""
    if quiet:
        yield None
        return
    columns = (
        TextColumn("[bold]{task.description}[/]"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[state]}"),
        TimeElapsedColumn(),
    )
    with Bar(*columns, console=err) as bar:
        tasks: dict[str, TaskID] = {}
        last: Line | None = None

        def watch(progress: Progress) -> None:
            nonlocal last
            if progress.society not in tasks:
                tasks[progress.society] = bar.add_task(
                    escape(progress.society), total=progress.total, state=""
                )
            line, before = progress.line, last
            last = line
            if line is not None and line is not before and line.error:
                bar.console.print(
                    f"[yellow]sample {escape(line.sample)}: {escape(line.error)}[/]", soft_wrap=True
                )
            if progress.stopped:
                bar.console.print(f"[yellow]{escape(progress.society)}: {progress.stopped}[/]")
            bar.update(tasks[progress.society], completed=progress.done, state=_state(progress))

        yield watch


def _state(progress: Progress) -> str:
    rate = f"{progress.rate:.{0 if progress.rate >= 10 else 2}f}/s"
    parts = [rate if progress.fresh else "from an earlier run"]
    if progress.score is not None:
        parts.append(f"official {progress.score.official:.3f}, lenient {progress.score.lenient:.3f}")
    if progress.failed:
        parts.append(f"[yellow]{progress.failed} failed[/]")
    if progress.left:
        minutes, seconds = divmod(round(progress.left), 60)
        parts.append(f"{minutes}:{seconds:02} left")
    return "  ".join(parts)


def show(every: Sequence[Standing], json: bool) -> None:
    """Prints the scores and costs of societies, official and lenient."""
    if json:
        print_json([_figures(one) for one in every])
        return
    table = _table(
        ["society"], ["n", "official", "lenient [95 %]", "unread", "abstain", "fail", "tokens", "calls"]
    )
    for one in every:
        figures = next(iter(one.figures.values()))
        table.add_row(
            escape(one.name),
            str(len(one.samples)),
            f"{figures.official:.3f}",
            f"{one.interval():.3f}",
            f"{one.unparsable:.1%}",
            f"{one.abstained:.1%}",
            str(len(one.failed)),
            f"{one.tokens:.0f}",
            f"{one.calls:.1f}",
        )
        for name, pair in list(one.figures.items())[1:]:
            table.add_row(
                f"[dim]  {name}[/]", "", f"[dim]{pair.official:.3f}[/]", f"[dim]{pair.lenient:.3f}[/]"
            )
    out.print(table)


def _table(names: Sequence[str], figures: Sequence[str]) -> Table:
    """A table for a terminal of 80 columns: names are wrapped, figures never cut."""
    table = Table(box=None, header_style="dim", padding=(0, 1, 0, 0))
    for name in names:
        table.add_column(name, overflow="fold")
    for figure in figures:
        table.add_column(figure, no_wrap=True)
    return table


def _figures(one: Standing) -> dict[str, object]:
    interval = one.interval()
    return {
        "society": one.name,
        "run": one.run,
        "set": one.on,
        "samples": len(one.samples),
        "figures": {name: {"official": p.official, "lenient": p.lenient} for name, p in one.figures.items()},
        "lenient_interval": [interval.low, interval.high],
        "unparsable": one.unparsable,
        "abstained": one.abstained,
        "failed": [line.sample for line in one.failed],
        "tokens": one.tokens,
        "calls": one.calls,
    }


def comparison_json(one: Comparison) -> dict[str, object]:
    """A comparison as JSON."""
    gain = one.difference
    return {
        "one": one.one,
        "other": one.other,
        "samples": one.samples,
        "gain": gain.estimate,
        "interval": [gain.low, gain.high],
        "only_one_right": one.test.only_one,
        "only_other_right": one.test.only_other,
        "p": one.p,
        "p_exact": one.test.exact,
        "p_holm": one.adjusted,
        "per_1000_tokens": one.per_thousand,
    }


def show_compared(found: Sequence[Comparison]) -> None:
    """Prints comparisons, one per row."""
    table = _table(["society", "against"], ["n", "gain [95 %]", "won / lost", "p", "p (Holm)", "per 1,000"])
    for one in found:
        per = one.per_thousand
        table.add_row(
            escape(one.one),
            escape(one.other),
            str(one.samples),
            f"{one.difference:+.3f}",
            f"{one.test.only_one} / {one.test.only_other}",
            f"{one.p:.3f}",
            f"{one.adjusted:.3f}",
            "–" if per is None else f"{per:+.4f}",
        )
    out.print(table)


def baseline_json(found: Baseline) -> dict[str, object]:
    """A society and its rivals as JSON."""
    top = found.oracle
    return {
        "society": _figures(found.society),
        "single": _figures(found.single),
        "self_consistency": _figures(found.consistency),
        "members": [_figures(one) for one in found.alone],
        "oracle": {"lenient": top.estimate, "interval": [top.low, top.high]},
        "comparisons": [comparison_json(one) for one in found.comparisons],
    }


def row_json(row: Row) -> dict[str, object]:
    """A structure and its vote of equal cost as JSON."""
    return {
        **_figures(row.standing),
        "seconds": row.seconds,
        "equal_cost_vote": _figures(row.rival),
        "comparison": comparison_json(row.comparison),
    }


def set_json(spec: Spec) -> dict[str, object]:
    """The declaration of a set as JSON."""
    columns = dataclasses.asdict(spec.convert) if isinstance(spec.convert, Question | Caption) else {}
    return {
        "name": spec.name,
        "about": spec.about,
        "task": spec.task.kind,
        "scorer": spec.scorer,
        "licence": spec.licence,
        "source": spec.source,
        "files": [files.pattern for files in spec.layouts],
        "columns": {name: column for name, column in columns.items() if column},
        "tried": spec.tried,
        "package": spec.package,
        "hub": dataclasses.asdict(spec.hub) if spec.hub else None,
    }
