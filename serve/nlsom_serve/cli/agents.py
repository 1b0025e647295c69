"""`nlsom agents`."""

from __future__ import annotations

import inspect
from typing import Any

import typer

from nlsom import plugins
from nlsom.errors import NlsomError
from nlsom_serve.cli.options import AsJson
from nlsom_serve.cli.screen import escape, out, print_json, table

app = typer.Typer(
    help="The agents that societies can use.\n\nExample: `nlsom agents list`", no_args_is_help=True
)


@app.command("list")
def list_agents(json: AsJson = False) -> None:
    """Lists the installed agents.

    Example: `nlsom agents list`
    """
    rows = [{"agent": name, **_about(name)} for name in sorted(plugins.installed("agents"))]
    if json:
        print_json(rows)
        return
    lines = table()
    for row in rows:
        lines.add_row(f"[bold]{escape(row['agent'])}[/]", escape(row["about"]))
    out.print(lines)


def _about(name: str) -> dict[str, Any]:
    try:
        factory = plugins.load("agents", name)
    except NlsomError as error:
        return {"about": str(error), "available": False}
    summary = (inspect.getdoc(factory) or "").split("\n\n")[0].replace("\n", " ")
    return {"about": summary, "available": True}
