"""`nlsom models`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nlsom_agents.local import catalog
from nlsom_serve.cli import servers
from nlsom_serve.cli.fetching import fetch
from nlsom_serve.cli.options import AsJson
from nlsom_serve.cli.screen import escape, out, print_json, table

app = typer.Typer(
    help="Manages embedded models and vLLM servers.\n\nExample: `nlsom models list`",
    no_args_is_help=True,
)
for _command in (servers.up, servers.status, servers.logs, servers.down, servers.plan):
    app.command()(_command)


def _complete(incomplete: str) -> list[str]:
    return [name for name in catalog.CATALOG if name.startswith(incomplete)]


@app.command("list")
def list_models(json: AsJson = False) -> None:
    """Lists the embedded models, and whether they are in the cache.

    Example: `nlsom models list`
    """
    known = catalog.models()
    if json:
        rows = [
            {"model": m.name, "here": m.here, "bytes": m.size, "licence": m.licence, "about": m.about}
            for m in known
        ]
        print_json(rows)
        return
    lines = table()
    for model in known:
        here = "[green]here[/]" if model.here else "[dim]not here[/]"
        size = f"{model.size / 2**20:.0f} MiB"
        lines.add_row(f"[bold]{escape(model.name)}[/]", here, size, model.licence, escape(model.about))
    out.print(lines)


@app.command("pull")
def pull_models(
    names: Annotated[
        list[str],
        typer.Argument(metavar="NAME", help="Models; see `nlsom models list`.", autocompletion=_complete),
    ],
    json: AsJson = False,
) -> None:
    """Downloads models into the cache, unless they are there already.

    Example: `nlsom models pull qwen2.5-coder-1.5b`
    """
    for name in names:
        fetch(name)
    if json:
        print_json([{"model": name, "path": str(catalog.path(name))} for name in names])


@app.command("add")
def add(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A GGUF file.")],
    name: Annotated[str | None, typer.Option("--name", help="Its name; by default the file's.")] = None,
    json: AsJson = False,
) -> None:
    """Registers a GGUF file of your own under a name; the file stays where it is.

    Example: `nlsom models add ~/models/my-model.gguf`
    """
    known = catalog.add(file, name)
    if json:
        print_json({"model": known, "path": str(catalog.path(known))})
    else:
        out.print(f"{escape(known)} is known; in a society: {{embedded: {escape(known)}}}", soft_wrap=True)


@app.command("path")
def path(
    name: Annotated[str, typer.Argument(metavar="NAME", autocompletion=_complete)], json: AsJson = False
) -> None:
    """Prints the path of a model's file.

    Example: `nlsom models path smollm2-135m`
    """
    file = catalog.present(name)
    if json:
        print_json({"model": name, "path": str(file)})
    else:
        out.print(str(file), soft_wrap=True, markup=False)
