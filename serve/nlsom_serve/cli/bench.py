"""`nlsom bench`."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from nlsom.bench import baseline as rivals
from nlsom.bench import equal_cost
from nlsom.bench import structures as paper
from nlsom.bench.compare import compare_all
from nlsom.bench.folder import Entrant, RunFolder
from nlsom.bench.report import csv, markdown, page
from nlsom.bench.run import Contender, Runner
from nlsom.bench.sets import load_set, set_named, set_names
from nlsom.bench.standing import Column, gather, standings
from nlsom.config import load
from nlsom.errors import UsageError
from nlsom_serve.cli.bench_screen import (
    progress_bars,
    show,
    show_compared,
    told,
    told_baseline,
    told_row,
    told_set,
)
from nlsom_serve.cli.options import (
    AsJson,
    BusUrl,
    Models,
    Overrides,
    SocietyName,
    SocietyNames,
    fetch_missing,
    reach,
    read_models,
    spread,
)
from nlsom_serve.cli.screen import err, escape, out, print_json, table

app = typer.Typer(
    help="Societies over whole sets of questions: official scores, paired comparisons, reports."
    "\n\nExample: `nlsom bench sets`",
    no_args_is_help=True,
)

Runs = Annotated[list[Path], typer.Argument(metavar="RUN", help="Folders of runs.")]
By = Annotated[Column, typer.Option("--by", help="Which score is compared.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What all commands take that run societies over a set."""

    on: Annotated[str, typer.Option("--on", metavar="NAME", help="The set; see `nlsom bench sets`.")]
    to: Annotated[Path, typer.Option("--out", "-o", metavar="RUN/", help="The run's folder.")]
    path: Annotated[
        Path | None,
        typer.Option("--path", metavar="PATH", help="Where the set lies; else it is had by its name."),
    ] = None
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="So many samples; all, if not given.")
    ] = None
    sample_seed: Annotated[
        int | None,
        typer.Option("--sample-seed", help="Draws the samples at random; the first, if not given."),
    ] = None
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="Asks each sample with so many seeds.")] = 1
    concurrency: Annotated[int, typer.Option("--concurrency", "-j", min=1, help="Samples at once.")] = 8
    model: Models = None
    set: Overrides = None
    budget: Annotated[
        str | None,
        typer.Option(
            "--budget",
            metavar="tokens=N",
            help="No new sample is begun once the run has spent so many tokens.",
        ),
    ] = None
    retry_failed: Annotated[
        bool,
        typer.Option(
            "--retry-failed", help="Asks again where a sample failed, was cut short, or a member abstained."
        ),
    ] = False
    json: AsJson = False

    def contender(self, name: str, bus: str | None = None, *, alone: bool = True) -> Contender:
        """A society as a contender.

        Args:
            name: Its name or file.
            bus: Where workers host its members.
            alone: Whether nothing is asked here if they are hosted there.
        """
        made = load(name, models=read_models(self.model), overrides=self.set or (), bus=reach(bus))
        if bus is None or not alone:
            fetch_missing(made)
        told = Entrant(
            name=made.name, file=name, overrides=tuple(self.set or ()), models=tuple(self.model or ())
        )
        return Contender(made, told)

    @contextmanager
    def runner(self) -> Generator[Runner]:
        """The runner, with bars that show how far it is."""
        samples, budget = load_set(self.on, self.path), _read_budget(self.budget)
        with progress_bars(quiet=self.json) as watch:
            yield Runner(
                samples,
                RunFolder(self.to),
                limit=self.limit,
                sample_seed=self.sample_seed,
                seeds=self.seeds,
                concurrency=self.concurrency,
                budget=budget,
                retry_failed=self.retry_failed,
                watch=watch,
            )


@app.command("sets")
def list_sets(json: AsJson = False) -> None:
    """Lists the sets, their scores, and whether their layout was read from real files.

    Example: `nlsom bench sets`
    """
    every = [set_named(name) for name in set_names()]
    if json:
        print_json([told_set(spec) for spec in every])
        return
    rows = table("set", "about", "scorer", "layout from", "had by")
    for spec in every:
        layout = "real files" if spec.tried else "documentation"
        had = "package" if spec.package else "name, --path" if spec.hub else "--path"
        rows.add_row(f"[bold]{escape(spec.name)}[/]", escape(spec.about), escape(spec.scorer), layout, had)
    out.print(rows)
    out.print(
        "\n[dim]Licences, columns and where each is had: --json. METEOR and SPICE are not available: both"
    )
    out.print("[dim]need Java and models of their own.[/]")


@app.command("run")
@spread
def run(societies: SocietyNames, bus: BusUrl = None, *, options: RunOptions) -> None:
    """Runs societies over a set. Run again after a kill, it goes on where it was.

    Example: `nlsom bench run vqa-monarchy solo --on vqav2 --path val/ --limit 200 -o run/`
    """
    with options.runner() as runner:
        asyncio.run(runner.run([options.contender(name, bus) for name in societies]))
    show(standings(runner.folder), options.json)


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
@spread
def baseline(
    society: SocietyName,
    bus: Annotated[
        str | None,
        typer.Option(
            "--bus",
            metavar="nats://HOST:PORT",
            help="Asks the society's members there; its rivals live here.",
        ),
    ] = None,
    most: Annotated[int, typer.Option("--most", min=1, help="Samples of self-consistency at most.")] = 64,
    *,
    options: RunOptions,
) -> None:
    """Runs a society and its rivals of equal cost: single, self-consistency, best member, oracle.

    Example: `nlsom bench baseline vqa-democracy --on vqav2 --path val/ --limit 200 -o run/`
    """
    with options.runner() as runner:
        contender = options.contender(society, bus, alone=False)
        found = asyncio.run(rivals.baseline(runner, contender, most=most))
    if options.json:
        print_json(told_baseline(found))
    else:
        out.print(rivals.markdown(found), markup=False, soft_wrap=True)


@app.command("structures")
@spread
def structures(
    society: SocietyName,
    rounds: Annotated[int, typer.Option("--rounds", min=1, help="Rounds of questions or debate.")] = 1,
    most: Annotated[int, typer.Option("--most", min=1, help="Voters at most.")] = 64,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="NAME", help="Runs this structure; again for more. All by default."),
    ] = None,
    *,
    options: RunOptions,
) -> None:
    """The paper's table: the members of a society in nine structures, each beside a vote of equal cost.

    Example: `nlsom bench structures vqa-democracy --on easy-vqa --limit 60 --sample-seed 0 -o run/`
    """
    with options.runner() as runner:
        made = options.contender(society).society
        table = paper.Structures(
            paper.Cast.of(made), rounds=rounds, limits=made.limits, task=made.task, only=only or ()
        )
        found = asyncio.run(equal_cost.run_all(runner, table, most=most))
    if options.json:
        print_json([told_row(row) for row in found])
    else:
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


def _read_budget(given: str | None) -> int | None:
    if given is None:
        return None
    what, equals, number = given.partition("=")
    if what != "tokens" or not equals or not number.isdecimal() or not int(number):
        raise UsageError(f"--budget {given}: write tokens=N, such as tokens=2000000")
    return int(number)
