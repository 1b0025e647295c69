"""`nlsom models up | status | logs | down | plan`: vLLM servers on this machine."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import Annotated

import typer

from nlsom.errors import ModelUnavailable, UsageError
from nlsom_serve import vllm
from nlsom_serve.cli.options import AsJson
from nlsom_serve.cli.screen import err, escape, out, print_json, table

Profiles = Annotated[
    list[str],
    typer.Argument(
        metavar="PROFILE",
        help="Shipped profiles, YAML files, or NAME=PROFILE to name the server.",
        autocompletion=vllm.shipped,
    ),
]
Names = Annotated[list[str] | None, typer.Argument(metavar="NAME", help="Servers; all by default.")]
Where = Annotated[
    str | None,
    typer.Option(
        "--vllm", metavar="PATH", envvar="NLSOM_VLLM", help="The virtual environment that has vLLM."
    ),
]


def _show(progress: vllm.Progress) -> None:
    err.print(f"[dim]{progress.seconds:6.1f} s[/]  {escape(progress.name)}: {escape(progress.stage)}")


def up(
    profiles: Profiles,
    detach: Annotated[
        bool, typer.Option("--detach", "-d", help="Keeps them running when this command ends.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Prints configuration and command instead of running it.")
    ] = False,
    where: Where = None,
    json: AsJson = False,
) -> None:
    """Starts vLLM servers and waits until they are ready; Ctrl-C stops them.

    Example: `nlsom models up small-vlm --detach`
    """
    if json and dry_run:
        raise UsageError("--dry-run prints text for a person or a shell: it cannot be used with --json")
    asyncio.run(_up(profiles, detach, dry_run, where, json))


async def _up(profiles: list[str], detach: bool, dry_run: bool, where: str | None, as_json: bool) -> None:
    if dry_run:
        for launch in await vllm.prepared(profiles, vllm=where):
            out.print(f"# {launch.url}, configured by {launch.config_path}", markup=False, soft_wrap=True)
            out.print(launch.config, markup=False, soft_wrap=True)
            out.print(launch.shell, markup=False, soft_wrap=True)
            if launch.command[0] == "vllm":
                err.print(vllm.NO_VLLM, markup=False, soft_wrap=True)
        return
    if detach:
        _print_started(await vllm.up(profiles, vllm=where, progress=_show), as_json)
        return
    async with vllm.serving(profiles, vllm=where, progress=_show) as servers:
        _print_started(servers, as_json)
        ended = await vllm.first_end(servers)
    raise ModelUnavailable(f"the server {ended.name!r} has ended; its log: {ended.log}")


def _print_started(servers: tuple[vllm.Server, ...], as_json: bool) -> None:
    if as_json:
        print_json([server.model_dump(mode="json") for server in servers])
        return
    for server in servers:
        out.print(
            f"[green]up[/]  {escape(server.name)}  {server.url}/v1  {escape(server.model)}", soft_wrap=True
        )


def status(json: AsJson = False) -> None:
    """Shows the servers' health, queues, prefix-cache hits and tokens per second.

    Example: `nlsom models status`
    """
    found = asyncio.run(vllm.status())
    if json:
        print_json([{**asdict(one), "server": one.server.model_dump(mode="json")} for one in found])
        return
    if not found:
        out.print("no server is running; start one with: nlsom models up PROFILE")
        return
    rows = table("server", "state", "model", "url", "running", "waiting", "cache hits", "tokens/s")
    for one in found:
        metrics = one.metrics
        hits = "–" if metrics is None or metrics.hit_rate is None else f"{metrics.hit_rate:.0%}"
        rate = "–" if one.generation_rate is None else f"{one.generation_rate:.0f}"
        queue = ("–", "–") if metrics is None else (str(metrics.running), str(metrics.waiting))
        row = (one.server.name, one.state, one.server.model, one.server.url, *queue, hits, rate)
        rows.add_row(*map(escape, row))
    out.print(rows)


def logs(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A server; see `nlsom models status`.")],
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Prints new lines until the server has ended.")
    ] = False,
) -> None:
    """Prints the log of a server.

    Example: `nlsom models logs small-vlm --follow`
    """

    async def show() -> None:
        async for line in vllm.logs(name, follow=follow):
            out.print(line, markup=False, soft_wrap=True)

    asyncio.run(show())


def down(names: Names = None, json: AsJson = False) -> None:
    """Stops servers with all their processes.

    Example: `nlsom models down small-vlm`
    """
    ended = asyncio.run(vllm.down(names or ()))
    if json:
        print_json([server.name for server in ended])
        return
    for server in ended:
        out.print(f"down  {escape(server.name)}")
    if not ended:
        out.print("no server is running")


def plan(profiles: Profiles, json: AsJson = False) -> None:
    """Estimates the memory that profiles need, and shows the calculation.

    Example: `nlsom models plan middle-vlm`
    """
    found = asyncio.run(vllm.plans(profiles))
    if json:
        print_json([{**asdict(one), "fits": one.fits, "cache_gib": one.cache_gib} for one in found])
        return
    for one in found:
        fits = "[green]fits[/]" if one.fits else "[red]does not fit[/]"
        out.print(f"[bold]{escape(one.profile)}[/]  {fits}")
        for line in one.lines:
            out.print(f"  {escape(line)}", soft_wrap=True)
