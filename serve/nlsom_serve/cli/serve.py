"""`nlsom serve`."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from nlsom.config import load
from nlsom.errors import ExtraMissing
from nlsom.model.contract import Model
from nlsom_serve.cli.options import (
    BusUrl,
    Models,
    Overrides,
    SocietyNames,
    fetch_missing,
    reach,
    read_models,
)


def serve(
    societies: SocietyNames,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 8800,
    api_key_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Accepted keys, one per line: KEY or NAME KEY.")
    ] = None,
    data: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Where mindstorms and pictures are stored.")
    ] = Path("nlsom-data"),
    model: Models = None,
    set: Overrides = None,
    bus: BusUrl = None,
    at_once: Annotated[int, typer.Option(min=1, help="Mindstorms that run concurrently.")] = 16,
    queue: Annotated[int, typer.Option(min=0, help="Mindstorms that wait; more are refused with 429.")] = 64,
    max_body: Annotated[int, typer.Option(min=1, metavar="MB", help="Largest request body.")] = 32,
    max_pictures: Annotated[int, typer.Option(min=0, help="Most pictures per request.")] = 8,
    max_pixels: Annotated[
        int, typer.Option(min=1, metavar="MP", help="Largest picture, in megapixels.")
    ] = 50,
    max_seconds: Annotated[float, typer.Option(min=0.1, help="Longest mindstorm, in seconds.")] = 600.0,
    max_tokens: Annotated[int | None, typer.Option(min=1, help="Most tokens per mindstorm.")] = None,
    key_tokens: Annotated[int | None, typer.Option(min=1, help="Most tokens per key and hour.")] = None,
    fetch_pictures: Annotated[
        bool, typer.Option("--fetch-pictures", help="Fetches pictures by http(s) URL, from public addresses.")
    ] = False,
    cors_origin: Annotated[
        list[str] | None, typer.Option(metavar="ORIGIN", help="A web origin that may call from browsers.")
    ] = None,
    drain_seconds: Annotated[int, typer.Option(min=0, help="Seconds to finish requests when stopped.")] = 30,
) -> None:
    """Serves societies as an OpenAI-compatible endpoint, with a web page to watch mindstorms.

    Example: `nlsom serve vqa-monarchy --model vlm=http://127.0.0.1:8000/v1`
    """
    try:
        from nlsom_serve import server
        from nlsom_serve.app import Keys, Settings, read_keys
        from nlsom_serve.app.guard import local_hosts
    except ModuleNotFoundError as error:
        raise ExtraMissing("`nlsom serve`", "serve") from error
    keys = Keys(read_keys(api_key_file) if api_key_file else None, tokens=key_tokens)
    server.check_address(host, keys)
    settings = Settings(
        at_once=at_once,
        queue=queue,
        body_bytes=max_body * 2**20,
        bodies_bytes=max(256, 2 * max_body) * 2**20,
        pictures=max_pictures,
        pixels=max_pixels * 1_000_000,
        seconds=max_seconds,
        tokens=max_tokens,
        fetch=fetch_pictures,
        origins=tuple(cors_origin or ()),
        hosts=local_hosts([host]) if keys.open else (),
    )
    shared: dict[str, Model] = {}
    made = [
        load(name, models=read_models(model), overrides=set or (), shared=shared, bus=reach(bus))
        for name in societies
    ]
    for one in made:
        if one.bus is None:
            fetch_missing(one)
    sock = server.listen(host, port)
    asyncio.run(
        server.serve(made, sock, data=data, settings=settings, keys=keys, drain_seconds=drain_seconds)
    )
