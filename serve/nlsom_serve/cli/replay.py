"""`nlsom replay`."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from nlsom.errors import NoVerdict
from nlsom.message import Message, Said
from nlsom.trace import Header, Record
from nlsom.verdict import Verdict
from nlsom_serve.cli.options import AsJson
from nlsom_serve.cli.screen import Dialogue, out, print_json, show_verdict
from nlsom_serve.cli.traces import question_of, read_mindstorm


def replay(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A trace.")],
    id: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="A mindstorm; the beginning of its id is enough.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Shows a mindstorm again, dialogue and verdict, from its trace; no model is loaded.

    Example: `nlsom replay run.sqlite`
    """
    header, records = asyncio.run(read_mindstorm(file, id))
    stored = next((record for record in reversed(records) if record.kind == "verdict"), None)
    verdict = Verdict.model_validate_json(stored.body) if stored else None
    if json:
        print_json(_told(header, records, verdict))
    else:
        out.print(
            f"[bold]{escape(header.society)}[/]: {escape(question_of(header))}  [dim]{header.mindstorm}[/]"
        )
        dialogue = Dialogue()
        for record in records:
            if record.kind == "replied":
                dialogue.message(message_of(record))
        if verdict is not None:
            show_verdict(verdict)
        else:
            out.print(
                "\n[yellow]It did not come to a verdict yet: run the same command again, it goes on.[/]"
            )
    if verdict is None or verdict.answer is None:
        raise typer.Exit(NoVerdict.exit_code)


def message_of(record: Record) -> Message:
    """The message that a stored reply became."""
    return Message(
        said=Said.model_validate_json(record.body),
        sender=record.member,
        label=record.label,
        phase=record.phase,
        round=record.round,
        digest=hashlib.sha256(record.key.encode() + record.body).hexdigest(),
    )


def _told(header: Header, records: list[Record], verdict: Verdict | None) -> dict[str, Any]:
    return {
        "mindstorm": header.mindstorm,
        "society": header.society,
        "task": header.task,
        "seed": header.seed,
        "messages": [message_of(r).model_dump(mode="json") for r in records if r.kind == "replied"],
        "verdict": verdict.model_dump(mode="json") if verdict else None,
    }
