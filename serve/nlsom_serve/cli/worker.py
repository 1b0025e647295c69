"""`nlsom worker`."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import Annotated

import typer

from nlsom.bus.nats import NatsBus
from nlsom.config import load
from nlsom.home import home
from nlsom.media import FolderStore
from nlsom_serve.cli.options import Models, Overrides, complete_society, fetch_missing, read_models
from nlsom_serve.cli.screen import err, escape


def worker(
    society: Annotated[
        str,
        typer.Option(
            "--society",
            metavar="SOCIETY",
            help="An installed society, or a YAML file.",
            autocompletion=complete_society,
        ),
    ],
    bus: Annotated[
        str,
        typer.Option(
            "--bus",
            metavar="nats://HOST:PORT",
            help="The NATS server; separate several with commas.",
            envvar="NATS_URL",
        ),
    ],
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="MEMBER", help="Hosts only this member, group or role; repeatable."),
    ] = None,
    model: Models = None,
    set: Overrides = None,
    cache: Annotated[
        Path | None, typer.Option("--cache", metavar="FOLDER", help="Where pictures are stored.")
    ] = None,
    grace: Annotated[
        float,
        typer.Option("--grace", metavar="SECONDS", help="Time for turns to finish when stopped."),
    ] = 30.0,
) -> None:
    """Hosts members of a society for schedulers on other machines, until Ctrl-C or SIGTERM.

    Workers that host the same member share its turns. Give all workers, and `nlsom ask --bus`, the same
    file, --model and --set.

    Example: `nlsom worker --bus nats://10.0.0.1:4222 --society vqa-monarchy --only expert`
    """
    made = load(society, models=read_models(model), overrides=set or ())
    fetch_missing(made)

    async def work() -> None:
        stop = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        media = FolderStore(cache or home() / "media")
        async with (
            NatsBus(bus, society=made.name, digest=made.cast, media=media) as hub,
            made.hosted(hub, only or ()) as names,
        ):
            err.print(f"[dim]hosting {escape(', '.join(names))} of {escape(made.name)} at {hub.id}[/]")
            gone = asyncio.create_task(hub.gone())
            stopped = asyncio.create_task(stop.wait())
            await asyncio.wait((gone, stopped), return_when=asyncio.FIRST_COMPLETED)
            stopped.cancel()
            if gone.done():
                gone.result()
            gone.cancel()
            await hub.leave(grace)

    asyncio.run(work())
