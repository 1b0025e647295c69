"""`nlsom traces`."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from nlsom.errors import TraceError, TraceRefused, UsageError
from nlsom.media import FolderStore
from nlsom.trace import Header, Record, SqliteTrace
from nlsom.trace.contract import lines
from nlsom.trace.stored import read_stored
from nlsom.trace.upkeep import Pruned, Summary, compact
from nlsom.verdict import Verdict
from nlsom_serve.cli.options import AsJson
from nlsom_serve.cli.screen import counted, escape, out, print_json

app = typer.Typer(
    help="Lists, shows, exports, prunes and verifies traces written by `--trace FILE`."
    "\n\nExample: `nlsom traces list run.sqlite`",
    no_args_is_help=True,
)

TraceArgument = Annotated[Path, typer.Argument(metavar="FILE", help="A trace written by `--trace FILE`.")]
Id = Annotated[
    str | None,
    typer.Argument(
        metavar="ID",
        help="A mindstorm's id, or the beginning of it; may be left out if there is only one.",
    ),
]


@app.command("list")
def list_traces(file: TraceArgument, json: AsJson = False) -> None:
    """Lists the mindstorms of a trace.

    Example: `nlsom traces list run.sqlite`
    """
    rows = [_row(one) for one in asyncio.run(_summaries(file))]
    if json:
        print_json(rows)
        return
    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in ("id", "begun", "society", "question", "answer"):
        table.add_column(name, no_wrap=name in ("id", "begun"))
    for row in rows:
        answer = "[yellow]not yet[/]" if not row["ended"] else escape(row["answer"] or "none")
        words = (escape(str(row[key])) for key in ("mindstorm", "begun", "society", "question"))
        table.add_row(*words, answer)
    out.print(table)


@app.command("show")
def show(file: TraceArgument, id: Id = None, json: AsJson = False) -> None:
    """Shows the records of a mindstorm: replies, abstentions, early endings, verdict.

    Example: `nlsom traces show run.sqlite 1f3a`
    """
    header, records = asyncio.run(read_mindstorm(file, id))
    if json:
        print_json([header.model_dump(mode="json"), *map(_record, records)])
        return
    out.print(f"[bold]{escape(header.society)}[/]: {escape(question_of(header))}", soft_wrap=True)
    line = f"{header.mindstorm}, seed {header.seed}, begun {_when(header)}, society {header.digest[:12]}"
    out.print(f"[dim]{escape(line)}[/]\n", soft_wrap=True)
    for record in records:
        where = f"{record.phase}, round {record.round}" if record.phase else ""
        body = " ".join(record.body.decode("utf-8", "replace").split())
        shown = body if len(body) < 160 else body[:159] + "…"
        out.print(
            f"[bold]{record.kind:9}[/] [dim]{record.key[:8]:8}[/] {escape(record.member)}"
            f" [dim]{escape(where)}[/] {escape(shown)}",
            soft_wrap=True,
        )


@app.command("export")
def export(
    file: TraceArgument,
    ids: Annotated[list[str] | None, typer.Argument(metavar="ID", help="Mindstorms; all by default.")] = None,
) -> None:
    """Prints mindstorms as JSON lines: a header, then one line per record, reused replies in full.

    Example: `nlsom traces export run.sqlite > run.jsonl`
    """

    async def work() -> None:
        async with SqliteTrace(file, read_only=True) as trace:
            headers = [header async for header in trace.mindstorms()]
            chosen = [_one(file, headers, id) for id in ids] if ids else headers
            for header in chosen:
                records = [record async for record in trace.records(header.mindstorm)]
                for line in lines(header, records):
                    sys.stdout.write(line + "\n")

    asyncio.run(work())


@app.command("prune")
def prune(
    file: TraceArgument,
    ids: Annotated[list[str] | None, typer.Argument(metavar="ID", help="Mindstorms to drop.")] = None,
    older_than: Annotated[
        float | None,
        typer.Option(
            "--older-than", min=0, metavar="DAYS", help="Drops those begun more than this many days ago."
        ),
    ] = None,
    society: Annotated[str | None, typer.Option("--society", help="Drops those of this society.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only shows what would be dropped.")] = False,
    json: AsJson = False,
) -> None:
    """Drops whole mindstorms from a trace: those that match all given ids and options.

    Keeps replies that other mindstorms reuse. Also deletes pictures that no mindstorm refers to any more and
    that were added more than a day ago. Example: `nlsom traces prune run.sqlite --older-than 30`
    """
    if not ids and older_than is None and society is None:
        raise UsageError("say what to drop: ids, --older-than DAYS or --society NAME")

    async def work() -> tuple[list[str], Pruned | None, tuple[int, int]]:
        async with SqliteTrace(file, read_only=dry_run) as trace:
            headers = [header async for header in trace.mindstorms()]
            chosen = [_one(file, headers, id) for id in ids] if ids else headers
            before = time.time() - older_than * 86_400 if older_than is not None else None
            dropped = [
                header.mindstorm
                for header in chosen
                if (before is None or header.started < before)
                and (society is None or header.society == society)
            ]
            if dry_run:
                return dropped, None, (0, 0)
            pruned = await trace.prune(dropped)
            store, referenced = FolderStore(trace.media), await trace.digests()
            pictures = await asyncio.to_thread(store.drop_all_but, referenced, older_than=86_400)
            return dropped, pruned, pictures

    if not file.is_file():
        raise TraceRefused(f"{file}: there is no such trace")
    dropped, pruned, (pictures, young) = asyncio.run(work())
    if pruned is not None and pruned.records:
        compact(file)
    if json:
        kept = pruned.kept if pruned else None
        outcome = {"dropped": dropped, "kept_replies": kept, "dry_run": dry_run}
        print_json({**outcome, "pictures": pictures, "young_pictures": young})
    elif pruned is None:
        out.print(f"would drop {counted(len(dropped), 'mindstorm')}")
    else:
        kept = f"; kept {pruned.kept} of their replies, which others reuse" if pruned.kept else ""
        gone = f"{counted(pruned.mindstorms, 'mindstorm')}, {counted(pruned.records, 'record')}"
        out.print(f"dropped {gone}{kept}")
        if pictures or young:
            kept = f"; kept {young} added within the last day" if young else ""
            out.print(f"dropped {counted(pictures, 'picture')}{kept}")


@app.command("verify")
def verify(file: TraceArgument, json: AsJson = False) -> None:
    """Checks the hash chain of every mindstorm and lists the damaged ones.

    Example: `nlsom traces verify run.sqlite`
    """

    async def work() -> tuple[int, list[str]]:
        async with SqliteTrace(file, read_only=True) as trace:
            return len([header async for header in trace.mindstorms()]), await trace.verify()

    number, damaged = asyncio.run(work())
    if json:
        print_json({"mindstorms": number, "damaged": damaged})
    else:
        for id in damaged:
            out.print(f"[red]damaged[/]  {escape(id)}")
        out.print(f"{counted(number, 'mindstorm')}, {len(damaged)} damaged")
    if damaged:
        raise typer.Exit(TraceError.exit_code)


async def read_mindstorm(file: Path, id: str | None) -> tuple[Header, list[Record]]:
    """Reads one mindstorm of a trace, by the beginning of its id; the only one if `id` is None.

    Raises:
        UsageError: No mindstorm matches, or more than one.
    """
    async with SqliteTrace(file, read_only=True) as trace:
        header = _one(file, [header async for header in trace.mindstorms()], id)
        return header, [record async for record in trace.records(header.mindstorm)]


def question_of(header: Header) -> str:
    """The question of a mindstorm."""
    task = header.task
    return str(task.get("question", "")) if isinstance(task, dict) else ""


def _one(file: Path, headers: list[Header], id: str | None) -> Header:
    found = [header for header in headers if id is None or header.mindstorm.startswith(id)]
    if not found:
        raise UsageError(f"{file}: no mindstorm {id!r}" if id else f"{file}: contains no mindstorm yet")
    if len(found) > 1:
        listed = "\n".join(
            f"  {one.mindstorm}  {_when(one)}  {one.society}: {question_of(one)}" for one in found[:20]
        )
        raise UsageError(f"{file}: {len(found)} mindstorms; say which:\n{listed}")
    return found[0]


async def _summaries(file: Path) -> list[Summary]:
    async with SqliteTrace(file, read_only=True) as trace:
        found: AsyncIterator[Summary] = trace.summaries()
        return [one async for one in found]


def _when(header: Header) -> str:
    return datetime.fromtimestamp(header.started, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _row(summary: Summary) -> dict[str, Any]:
    header = summary.header
    verdict = read_stored(Verdict, summary.verdict) if summary.verdict is not None else None
    return {
        "mindstorm": header.mindstorm,
        "begun": _when(header),
        "society": header.society,
        "question": question_of(header),
        "seed": header.seed,
        "replied": summary.replied,
        "abstained": summary.abstained,
        "ended": verdict is not None,
        "answer": verdict.answer if verdict else None,
    }


def _record(record: Record) -> dict[str, Any]:
    return {
        "kind": record.kind,
        "key": record.key,
        "member": record.member,
        "phase": record.phase,
        "label": record.label,
        "round": record.round,
        "body": record.body.decode("utf-8", "replace"),
    }
