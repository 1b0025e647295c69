"""`nlsom societies`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from nlsom.config import load, schema, shipped
from nlsom.errors import ConfigError, UsageError
from nlsom.program import Rounds, Step
from nlsom.society import Society
from nlsom.source import read
from nlsom_serve.cli.options import AsJson, Models, Overrides, SocietyName, read_models
from nlsom_serve.cli.screen import fail, out, print_json

app = typer.Typer(help="Societies: what they are made of, and whether a file is right.", no_args_is_help=True)


@app.command("list")
def list_societies(json: AsJson = False) -> None:
    """Lists the installed societies.

    Example: `nlsom societies list`
    """
    rows = [
        {"society": name, "about": str(read(file.read_text(encoding="utf-8"), name).tree.get("about") or "")}
        for name, file in shipped().items()
    ]
    if json:
        print_json(rows)
        return
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for row in rows:
        table.add_row(f"[bold]{row['society']}[/]", escape(row["about"]))
    out.print(table)


@app.command("show")
def show(society: SocietyName, model: Models = None, set: Overrides = None, json: AsJson = False) -> None:
    """Shows who sits in a society, who hears whom, and what is done.

    Example: `nlsom societies show vqa-monarchy`
    """
    made = load(society, models=read_models(model), overrides=set or ())
    told = _told(made)
    if json:
        print_json(told)
        return
    out.print(f"[bold]{escape(made.name)}[/]  {escape(made.about)}\n", soft_wrap=True)
    table = Table("member", "role", "speaks by", "hears", box=None, padding=(0, 2, 0, 0), header_style="dim")
    for row in told["members"]:
        table.add_row(*(escape(row[key]) for key in ("name", "role", "agent", "hears")))
    out.print(table)
    out.print()
    for line in told["phases"]:
        out.print(escape(line), soft_wrap=True)
    out.print(escape(told["verdict"]), soft_wrap=True)


@app.command("check")
def check(files: Annotated[list[Path], typer.Argument(metavar="FILE…", help="Society files.")]) -> None:
    """Checks society files: everything that is wrong, each with file, line and column.

    Example: `nlsom societies check my-society.yaml`
    """
    faulty = False
    for file in files:
        try:
            load(file)
        except (ConfigError, UsageError) as error:
            faulty = True
            fail(error)
        else:
            out.print(f"{escape(str(file))}: good")
    if faulty:
        raise typer.Exit(UsageError.exit_code)


@app.command("schema")
def print_schema() -> None:
    """Prints the JSON Schema of society files, for editors.

    Example: `nlsom societies schema > society.schema.json`
    """
    print_json(schema())


def _told(society: Society) -> dict[str, Any]:
    program = society.program
    first = next(step for step in program.steps)
    structure = (first.steps[0] if isinstance(first, Rounds) else first).structure
    names = program.names
    members: list[dict[str, str]] = []
    for at, seat in enumerate(society.seats):
        heard = [other for other in structure.hears(at) if other != at]
        told = (
            "everyone"
            if len(heard) == len(names) - 1
            else ", ".join(names[other] for other in heard) or "nobody"
        )
        members.append(
            {
                "name": seat.member.name,
                "role": seat.member.role,
                "agent": type(seat.agent).__name__.lower(),
                "hears": told,
                "persona": seat.member.persona,
            }
        )
    phases: list[str] = []
    for step in program.steps:
        if isinstance(step, Rounds):
            phases.append(f"up to {step.count} rounds of" if step.until else f"{step.count} rounds of")
            phases += [f"  {_line(inner)}" for inner in step.steps]
        else:
            phases.append(_line(step))
    decision = program.decision
    voters = society.verdict.of or f"all who gave a {decision.over}"
    return {
        "name": society.name,
        "about": society.about,
        "members": members,
        "phases": phases,
        "verdict": f"verdict by {decision.name} over {decision.over!r}, of {voters}",
    }


def _line(step: Step) -> str:
    ask = step.ask
    prompt = ask.prompt if isinstance(ask.prompt, str) else "its own prompt"
    hears = "" if ask.hears.label is None else f", hearing {', '.join(ask.hears.label)} ({ask.hears.scope})"
    order = "" if ask.order == "together" else f", {ask.order.replace('_', ' ')}"
    form = ask.form if isinstance(ask.form, str) else ask.form.kind
    return f"ask {ask.ask} ({len(step.who)}) by {prompt!r}, as {ask.label!r}, form {form}{hears}{order}"
