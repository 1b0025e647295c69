"""The command line. Each command is a thin layer over the library; `--json` prints JSON for programs.

Exit codes: 0 success, 1 nlsom or a model failed, 2 wrong usage or faulty file, 3 no verdict, 4 a model or
service is unavailable, 130 interrupted.
"""

from __future__ import annotations

import io
import os
import sys
from typing import Annotated

import typer

import nlsom
from nlsom.errors import NlsomError
from nlsom_serve.cli import agents, ask, bench, doctor, models, replay, serve, societies, traces, worker
from nlsom_serve.cli.screen import fail

app = typer.Typer(
    name="nlsom",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"nlsom {nlsom.__version__}")
        raise typer.Exit


@app.callback()
def _root(  # pyright: ignore[reportUnusedFunction]
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Shows the version.")
    ] = False,
) -> None:
    """Societies of models that think together about pictures.

    Example: `nlsom ask vqa-monarchy "What animal is this?" --image sample:cat`
    """


app.command("ask")(ask.ask)
app.command("caption")(ask.caption)
app.add_typer(societies.app, name="societies")
app.add_typer(agents.app, name="agents")
app.add_typer(models.app, name="models")
app.add_typer(bench.app, name="bench")
app.command("serve")(serve.serve)
app.command("replay")(replay.replay)
app.add_typer(traces.app, name="traces")
app.command("worker")(worker.worker)
app.command("doctor")(doctor.doctor)


def run() -> None:
    """Runs the command line; an `NlsomError` or `OSError` is printed as a message, without a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # "?" for what the terminal's encoding lacks
    try:
        app()
    except NlsomError as error:
        fail(error)
        sys.exit(error.exit_code)
    except OSError as error:
        # Mostly the disk or pipe behind standard output: other files and servers are handled where used.
        message = str(error.strerror or error) or type(error).__name__
        fail(NlsomError(message if error.filename is None else f"{error.filename}: {message}"))
        try:
            sys.stdout.flush()
        except OSError:
            # Python flushes again at exit, and would print this error a second time.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(NlsomError.exit_code)
