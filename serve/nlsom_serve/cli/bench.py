"""`nlsom bench`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from nlsom.bench import baseline as rivals
from nlsom.bench import equal_cost
from nlsom.bench import structures as paper
from nlsom.bench.compare import compare_all
from nlsom.bench.folder import Entrant, RunFolder
from nlsom.bench.report import csv, markdown, page
from nlsom.bench.run import Contender, Runner, Watch
from nlsom.bench.sets import SETS, load_set
from nlsom.bench.standing import Column, gather, standings
from nlsom.config import load
from nlsom.errors import UsageError
from nlsom_serve.cli.bench_screen import progress_bars, show, show_compared, told
from nlsom_serve.cli.options import (
    AsJson,
    BusUrl,
    Models,
    Overrides,
    SocietyName,
    complete_society,
    fetch_missing,
    reach,
    read_models,
)
from nlsom_serve.cli.screen import err, escape, out, print_json

app = typer.Typer(
    help="Societies over whole sets: official scores, paired comparisons, reports.", no_args_is_help=True
)

Societies = Annotated[
    list[str],
    typer.Argument(
        metavar="SOCIETY…", help="Installed societies, or YAML files.", autocompletion=complete_society
    ),
]
Runs = Annotated[list[Path], typer.Argument(metavar="RUN…", help="Folders of runs.")]
On = Annotated[str, typer.Option("--on", metavar="NAME", help="The set; see `nlsom bench sets`.")]
SetPath = Annotated[
    Path | None, typer.Option("--path", metavar="PATH", help="Where the set lies; not for a packaged set.")
]
Limit = Annotated[int | None, typer.Option("--limit", min=1, help="So many samples; all, if not given.")]
SampleSeed = Annotated[
    int | None, typer.Option("--sample-seed", help="Draws the samples at random; the first, if not given.")
]
Seeds = Annotated[int, typer.Option("--seeds", min=1, help="Asks each sample with so many seeds.")]
Concurrency = Annotated[int, typer.Option("--concurrency", "-j", min=1, help="Samples at once.")]
Budget = Annotated[
    str | None,
    typer.Option(
        "--budget", metavar="tokens=N", help="No new sample is begun once the run has spent so many tokens."
    ),
]
RetryFailed = Annotated[
    bool,
    typer.Option(
        "--retry-failed", help="Asks again where a sample failed, was cut short, or a member abstained."
    ),
]
Out = Annotated[Path, typer.Option("--out", "-o", metavar="RUN/", help="The run's folder.")]
By = Annotated[Column, typer.Option("--by", help="Which score is compared.")]


@app.command("sets")
def list_sets(json: AsJson = False) -> None:
    """Lists the sets, their scores, and whether their layout was read from real files.

    Example: `nlsom bench sets`
    """
    if json:
        keys = ("name", "about", "scorer", "licence", "source", "tried", "package")
        print_json([{key: getattr(spec, key) for key in keys} for spec in SETS.values()])
        return
    table = Table("set", "about", "scorer", "layout", box=None, header_style="dim", padding=(0, 2, 0, 0))
    for spec in SETS.values():
        layout = "read from real files" if spec.tried else "from its documentation"
        table.add_row(f"[bold]{spec.name}[/]", escape(spec.about), spec.scorer, layout)
    out.print(table)
    out.print("\n[dim]METEOR and SPICE are not available: both need Java and models of their own.[/]")


@app.command("run")
def run(
    societies: Societies,
    on: On,
    to: Out,
    path: SetPath = None,
    limit: Limit = None,
    sample_seed: SampleSeed = None,
    seeds: Seeds = 1,
    concurrency: Concurrency = 8,
    model: Models = None,
    set: Overrides = None,
    bus: BusUrl = None,
    budget: Budget = None,
    retry_failed: RetryFailed = False,
    json: AsJson = False,
) -> None:
    """Runs societies over a set. Run again after a kill, it goes on where it was.

    Example: `nlsom bench run vqa-monarchy solo --on vqav2 --path val/ --limit 200 -o run/`
    """
    contenders = [_contender(name, model, set, bus) for name in societies]
    with progress_bars(quiet=json) as watch:
        runner = _runner(on, path, to, limit, sample_seed, seeds, concurrency, budget, retry_failed, watch)
        asyncio.run(runner.run(contenders))
    show(standings(RunFolder(to)), json)


@app.command("compare")
def compare(
    runs: Runs,
    against: Annotated[
        str | None, typer.Option("--against", metavar="NAME", help="Holds all against this society.")
    ] = None,
    by: By = "lenient",
    json: AsJson = False,
) -> None:
    """Compares societies, pair by pair, over the same samples: intervals, McNemar's test, Holm's correction.

    Example: `nlsom bench compare run-a/ run-b/`
    """
    found = compare_all(gather(runs), against=against, column=by)
    if json:
        print_json([told(one) for one in found])
        return
    show_compared(found)


@app.command("baseline")
def baseline(
    society: SocietyName,
    on: On,
    to: Out,
    path: SetPath = None,
    limit: Limit = None,
    sample_seed: SampleSeed = None,
    seeds: Seeds = 1,
    concurrency: Concurrency = 8,
    model: Models = None,
    set: Overrides = None,
    most: Annotated[int, typer.Option("--most", min=1, help="Samples of self-consistency at most.")] = 64,
) -> None:
    """Runs a society and its rivals of equal cost: single, self-consistency, best member, oracle.

    Example: `nlsom bench baseline vqa-democracy --on vqav2 --path val/ --limit 200 -o run/`
    """
    contender = _contender(society, model, set)
    with progress_bars() as watch:
        runner = _runner(on, path, to, limit, sample_seed, seeds, concurrency, None, False, watch)
        found = asyncio.run(rivals.baseline(runner, contender, most=most))
    out.print(rivals.markdown(found), markup=False, soft_wrap=True)


@app.command("structures")
def structures(
    society: SocietyName,
    on: On,
    to: Out,
    path: SetPath = None,
    limit: Limit = None,
    sample_seed: SampleSeed = None,
    seeds: Seeds = 1,
    concurrency: Concurrency = 8,
    rounds: Annotated[int, typer.Option("--rounds", min=1, help="Rounds of questions or debate.")] = 1,
    model: Models = None,
    set: Overrides = None,
    most: Annotated[int, typer.Option("--most", min=1, help="Voters at most.")] = 64,
) -> None:
    """The paper's table: the members of a society in nine structures, each beside a vote of equal cost.

    Example: `nlsom bench structures vqa-democracy --on easy-vqa --limit 60 --sample-seed 0 -o run/`
    """
    made = _contender(society, model, set).society
    table = paper.Structures(paper.Cast.of(made), rounds=rounds, limits=made.limits, task=made.task)
    with progress_bars() as watch:
        runner = _runner(on, path, to, limit, sample_seed, seeds, concurrency, None, False, watch)
        found = asyncio.run(equal_cost.run_all(runner, table, most=most))
    out.print(equal_cost.markdown(found), markup=False, soft_wrap=True)


@app.command("report")
def report(
    runs: Runs,
    to: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Writes it there, instead of printing it."),
    ] = None,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="A table in Markdown.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="A line a sample, as CSV.")] = False,
    fresh: Annotated[
        bool,
        typer.Option("--fresh", help="Draws what the members' leave-one-out needs and no trace holds."),
    ] = False,
) -> None:
    """Makes one self-contained page of runs: scores, costs, rounds, calibration, members, dialogues.

    Example: `nlsom bench report run/ -o report.html`
    """
    every = gather(runs)
    if as_markdown or as_csv:
        text = markdown(every) if as_markdown else csv(every)
    else:
        if to is None:
            raise typer.BadParameter("a page needs a file: -o report.html")
        text = asyncio.run(page([RunFolder(run) for run in runs], every, fresh=fresh))
    if to is None:
        out.print(text, markup=False, soft_wrap=True, end="")
    else:
        to.write_text(text, encoding="utf-8")
        err.print(f"written to {escape(str(to))}")


def _contender(
    name: str, models: Sequence[str] | None, overrides: Sequence[str] | None, bus: str | None = None
) -> Contender:
    society = load(name, models=read_models(models), overrides=overrides or (), bus=reach(bus))
    if bus is None:
        fetch_missing(society)
    told = Entrant(name=society.name, file=name, overrides=tuple(overrides or ()), models=tuple(models or ()))
    return Contender(society, told)


def _runner(
    on: str,
    path: Path | None,
    to: Path,
    limit: int | None,
    sample_seed: int | None,
    seeds: int,
    concurrency: int,
    budget: str | None,
    retry_failed: bool,
    watch: Watch | None,
) -> Runner:
    return Runner(
        load_set(on, path),
        RunFolder(to),
        limit=limit,
        sample_seed=sample_seed,
        seeds=seeds,
        concurrency=concurrency,
        budget=_read_budget(budget),
        retry_failed=retry_failed,
        watch=watch,
    )


def _read_budget(given: str | None) -> int | None:
    if given is None:
        return None
    what, equals, number = given.partition("=")
    if what != "tokens" or not equals or not number.isdecimal() or not int(number):
        raise UsageError(f"--budget {given}: write tokens=N, such as tokens=2000000")
    return int(number)
