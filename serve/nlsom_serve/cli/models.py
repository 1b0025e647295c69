"""`nlsom models`."""

from __future__ import annotations

import typer

app = typer.Typer(help="Models: fetched, kept, and served.", no_args_is_help=True)
