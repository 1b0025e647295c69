"""`nlsom societies`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from nlsom.config import load, schema, shipped
from nlsom.errors import ConfigError, UsageError
from nlsom.source import read
from nlsom_serve.about import about
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
    told = about(made)
    if json:
        print_json(told)
        return
    out.print(f"[bold]{escape(made.name)}[/]  {escape(made.about)}\n", soft_wrap=True)
    table = Table("member", "role", "speaks by", "hears", box=None, padding=(0, 2, 0, 0), header_style="dim")
    for row in told["members"]:
        hears = "everyone" if row["hears"] is None else ", ".join(row["hears"]) or "nobody"
        table.add_row(*(escape(cell) for cell in (row["name"], row["role"], row["agent"], hears)))
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
