"""`nlsom societies`."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from nlsom import plugins
from nlsom.config import load, shipped
from nlsom.drawing import draw, draw_png
from nlsom.errors import ConfigError, UsageError
from nlsom.planning import Plan, plan
from nlsom.society import Society
from nlsom.source import read
from nlsom.spec import schema
from nlsom_serve.about import about, rows, structure_of
from nlsom_serve.cli.options import (
    AsJson,
    Choices,
    Extras,
    Images,
    Models,
    Overrides,
    SocietyName,
    picture,
    read_choices,
    read_extra,
    read_models,
)
from nlsom_serve.cli.screen import escape, fail, out, print_json

app = typer.Typer(
    help="Societies: what they are made of, and whether a file is right.\n\nExample: `nlsom societies list`",
    no_args_is_help=True,
)


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
    else:
        table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
        for row in rows:
            table.add_row(f"[bold]{escape(row['society'])}[/]", escape(row["about"]))
        out.print(table)
    for fault in plugins.sound("societies")[1]:
        fail(fault)


@app.command("show")
def show(society: SocietyName, model: Models = None, set: Overrides = None, json: AsJson = False) -> None:
    """Shows who sits in a society, who hears whom, and what is done.

    Example: `nlsom societies show vqa-monarchy`
    """
    made = load(society, models=read_models(model), overrides=set or ())
    told, models = about(made), _models(made)
    if json:
        print_json({**told, "models": models})
        return
    out.print(f"[bold]{escape(made.name)}[/]  {escape(made.about)}\n", soft_wrap=True)
    table = Table("member", "role", "speaks by", "hears", box=None, padding=(0, 2, 0, 0), header_style="dim")
    for row in rows(told):
        table.add_row(*(escape(row[key]) for key in ("name", "role", "agent", "hears")))
    out.print(table)
    out.print()
    for name, of in models.items():
        what = ", ".join(f"{key} {value}" for key, value in of.items() if key != "optional")
        out.print(escape(f"model {name}: {what or f'none; --model {name}=URL gives one'}"), soft_wrap=True)
    if models:
        out.print()
    for line in told["phases"]:
        out.print(escape(line), soft_wrap=True)
    out.print(escape(told["verdict"]), soft_wrap=True)


def _models(society: Society) -> dict[str, dict[str, Any]]:
    """The models that a society's file names, by the names that `--model` takes."""
    found: Any = (society.source or {}).get("models")
    return found or {}


@app.command("plan")
def plan_society(
    society: SocietyName,
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="What would be asked.")] = "",
    image: Images = None,
    choices: Choices = None,
    model: Models = None,
    set: Overrides = None,
    extra: Extras = None,
    json: AsJson = False,
) -> None:
    """Tells what a mindstorm costs at most: calls, tokens, pictures, the longest prompt. Runs no model.

    Example: `nlsom societies plan vqa-monarchy "What animal is this?" --image sample:cat`
    """
    made = load(society, models=read_models(model), overrides=set or ())

    async def work() -> Plan:
        asked = question or ("Is it so?" if made.task.model_fields["question"].is_required() else None)
        pictures = [picture(one) for one in image or ()]
        task = await made.make_task(
            asked, images=pictures, choices=read_choices(choices), extra=read_extra(extra)
        )
        return await plan(made, task)

    found = asyncio.run(work())
    lines = [*found.phases, found.total]
    if json:
        phases = [{key: value for key, value in asdict(row).items() if key != "prompts"} for row in lines]
        print_json({"society": made.name, "phases": phases[:-1], "total": phases[-1], "over": found.over})
        return
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="dim")  # all columns fit a terminal of 80
    table.add_column("phase", no_wrap=True)
    for name in ("asked", "calls", "pictures", "read", "longest", "written", "shared"):
        table.add_column(name, justify="right")
    for row in lines:
        name = row.phase if row is lines[-1] else f"{row.phase}, round {row.round}"
        figures = (
            row.asked,
            row.calls,
            row.pictures,
            row.read,
            row.longest,
            row.written,
            f"{row.shared:.0%}",
        )
        table.add_row(escape(name), *map(str, figures), style="bold" if row is lines[-1] else None)
    out.print(table)
    out.print(
        "[dim]Tokens read, of the longest prompt, and written; the share of the prompts that they have in "
        "common.\nAt most, and estimated: rounds may end early, and replies be shorter.[/]"
    )
    for step in made.program.flat:
        if "#" in step.name.removeprefix(step.ask.label):
            told = f"{step.name} is another phase whose words are called {step.ask.label}; `name` renames it."
            out.print(f"[dim]{escape(told)}[/]", soft_wrap=True)
    for name in found.over:
        out.print(f"[yellow]That may be more {name} than its limits allow.[/]")


@app.command("draw")
def draw_society(
    society: SocietyName,
    to: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="FILE.svg or FILE.png.")],
    model: Models = None,
    set: Overrides = None,
    json: AsJson = False,
) -> None:
    """Draws who sits in a society and who hears whom.

    Example: `nlsom societies draw vqa-monarchy -o monarchy.svg`
    """
    made = load(society, models=read_models(model), overrides=set or ())
    structure = structure_of(made)
    match to.suffix.lower():
        case ".svg":
            data = draw(made.members, structure, title=made.name).encode()
        case ".png":
            data = draw_png(made.members, structure, title=made.name)
        case _:
            raise UsageError(f"{to}: a drawing is FILE.svg or FILE.png")
    try:
        to.write_bytes(data)
    except OSError as error:
        raise UsageError(f"{to}: {error.strerror or error}") from None
    if json:
        print_json({"society": made.name, "file": str(to), "members": len(made.members)})
    else:
        out.print(f"{escape(str(to))}: {len(made.members)} members", soft_wrap=True)


@app.command("check")
def check(
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="Society files.")], json: AsJson = False
) -> None:
    """Checks society files: everything that is wrong, each with file, line and column.

    Example: `nlsom societies check my-society.yaml`
    """
    found: dict[Path, UsageError | None] = {}
    for file in files:
        try:
            load(file if file.exists() else str(file))  # it may be the name of an installed one
        except UsageError as error:
            found[file] = error
        else:
            found[file] = None
    if json:
        print_json([{"file": str(file), "faults": _faults(file, error)} for file, error in found.items()])
    else:
        for file, error in found.items():
            if error is not None:
                fail(error)
            else:
                out.print(f"{escape(str(file))}: good", soft_wrap=True)
    if any(found.values()):
        raise typer.Exit(UsageError.exit_code)


def _faults(file: Path, error: UsageError | None) -> list[dict[str, str]]:
    match error:
        case None:
            return []
        case ConfigError():
            return [asdict(fault) for fault in error.faults]
        case _:
            return [{"where": str(file), "what": str(error)}]


@app.command("schema")
def print_schema() -> None:
    """Prints the JSON Schema of society files, for editors.

    Example: `nlsom societies schema > society.schema.json`
    """
    print_json(schema())
