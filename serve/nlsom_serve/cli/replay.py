"""`nlsom replay`."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import typer

from nlsom.errors import NoVerdict, UsageError
from nlsom.trace import Header, Record
from nlsom.trace.contract import message_of
from nlsom.trace.stored import read_stored
from nlsom.verdict import Verdict
from nlsom_serve.cli.options import AsJson
from nlsom_serve.cli.screen import Dialogue, escape, out, print_json, show_verdict
from nlsom_serve.cli.traces import Id, TraceArgument, question_of, read_mindstorm
from nlsom_serve.cli.whatif import what_if


def replay(
    file: TraceArgument,
    id: Id = None,
    without: Annotated[
        list[str] | None,
        typer.Option("--without", metavar="MEMBER", help="What if this member had been absent; repeatable."),
    ] = None,
    rule: Annotated[
        str | None, typer.Option("--rule", metavar="RULE", help="What if this rule had counted.")
    ] = None,
    rounds: Annotated[
        int | None, typer.Option("--rounds", min=0, metavar="N", help="What if there had been N rounds.")
    ] = None,
    call: Annotated[
        bool, typer.Option("--call", help="With the three above: asks what has no stored reply.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Shows a mindstorm again, dialogue and verdict, from its trace; no model is loaded.

    With --without, --rule or --rounds it says what would have come out, and which turns would have to be
    asked for that; --call asks them, and keeps what is said in the same trace.

    Example: `nlsom replay run.sqlite`, `nlsom replay run.sqlite 1f3a --without eyes.2 --call`
    """
    header, records = asyncio.run(read_mindstorm(file, id))
    stored = next((record for record in reversed(records) if record.kind == "verdict"), None)
    verdict = read_stored(Verdict, stored.body) if stored else None
    if without or rule is not None or rounds is not None:
        what_if(file, header, records, verdict, without or (), rule, rounds, call=call, as_json=json)
        return
    if call:
        raise UsageError("--call goes with --without, --rule or --rounds; a plain replay asks nobody")
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
            out.print()
            show_verdict(verdict)
        else:
            out.print(
                "\n[yellow]It did not come to a verdict yet: run the same command again, it goes on.[/]"
            )
    if verdict is None or verdict.answer is None:
        raise typer.Exit(NoVerdict.exit_code)


def _told(header: Header, records: list[Record], verdict: Verdict | None) -> dict[str, Any]:
    return {
        "mindstorm": header.mindstorm,
        "society": header.society,
        "task": header.task,
        "seed": header.seed,
        "messages": [message_of(r).model_dump(mode="json") for r in records if r.kind == "replied"],
        "verdict": verdict.model_dump(mode="json") if verdict else None,
    }
