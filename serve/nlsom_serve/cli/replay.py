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
        typer.Option("--without", metavar="MEMBER", help="What if this member were absent? Repeatable."),
    ] = None,
    rule: Annotated[
        str | None, typer.Option("--rule", metavar="RULE", help="What if this rule decided?")
    ] = None,
    rounds: Annotated[
        int | None, typer.Option("--rounds", min=0, metavar="N", help="What if there were N rounds at most?")
    ] = None,
    call: Annotated[
        bool, typer.Option("--call", help="With the three above: asks members where no reply is stored.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Shows the dialogue and verdict of a mindstorm from its trace, without loading a model.

    With --without, --rule or --rounds, shows the verdict that would have resulted, or which turns have no
    stored reply; --call asks those, and stores the replies in the same trace.

    Example: `nlsom replay run.sqlite`, `nlsom replay run.sqlite 1f3a --without eyes.2 --call`
    """
    header, records = asyncio.run(read_mindstorm(file, id))
    stored = next((record for record in reversed(records) if record.kind == "verdict"), None)
    verdict = read_stored(Verdict, stored.body) if stored else None
    if without or rule is not None or rounds is not None:
        what_if(file, header, records, verdict, without or (), rule, rounds, call=call, as_json=json)
        return
    if call:
        raise UsageError("--call needs --without, --rule or --rounds; a plain replay asks no member")
    if json:
        print_json(_as_json(header, records, verdict))
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
            out.print("\n[yellow]No verdict yet: run the command that began it again, to continue.[/]")
    if verdict is None or verdict.answer is None:
        raise typer.Exit(NoVerdict.exit_code)


def _as_json(header: Header, records: list[Record], verdict: Verdict | None) -> dict[str, Any]:
    return {
        "mindstorm": header.mindstorm,
        "society": header.society,
        "task": header.task,
        "seed": header.seed,
        "messages": [message_of(r).model_dump(mode="json") for r in records if r.kind == "replied"],
        "verdict": verdict.model_dump(mode="json") if verdict else None,
    }
