"""`nlsom replay --without MEMBER | --rule RULE | --rounds N`: counterfactuals of a stored mindstorm."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import typer

from nlsom.counterfactual import Borrowed, ClosedBook, built_from, most_turns, task_of, vary
from nlsom.errors import BusClosed, NoVerdict
from nlsom.event import Asked
from nlsom.media import FolderStore
from nlsom.society import Society
from nlsom.trace import Header, Record, SqliteTrace
from nlsom.turn import Turn
from nlsom.verdict import Verdict
from nlsom_serve.cli.options import fetch_missing
from nlsom_serve.cli.screen import Dialogue, counted, escape, out, print_json, show_outcome, show_verdict


@dataclass(frozen=True, slots=True)
class _Outcome:
    """The result of a counterfactual.

    Attributes:
        verdict: The verdict; None if replies are missing.
        missing: The turns of the first phase that lacks stored replies.
        later: Most turns that may follow them; which ones depends on the replies.
        asked: How many turns were asked now.
        changed: Members whose agent or model has changed since the mindstorm.
    """

    verdict: Verdict | None
    missing: Sequence[Turn] = ()
    later: int = 0
    asked: int = 0
    changed: Sequence[str] = ()


def what_if(
    file: Path,
    header: Header,
    records: Sequence[Record],
    before: Verdict | None,
    without: Sequence[str],
    rule: str | None,
    rounds: int | None,
    *,
    call: bool,
    as_json: bool,
) -> None:
    """Runs a stored mindstorm with a change, and prints the outcome.

    Raises:
        UsageError: The change cannot be made, or the trace lacks the society's source.
        typer.Exit: There is no answer.
    """
    trace = SqliteTrace(file, read_only=not call)
    society = vary(header, without=without, rule=rule, rounds=rounds, media=FolderStore(trace.media))
    society.trace = Borrowed(trace, records, write=call)
    if call:
        fetch_missing(society)
        found = asyncio.run(_ask(trace, society, header, show=not as_json))
    else:
        found = asyncio.run(_replay(trace, society, header))
    if as_json:
        change = {"without": list(without), "rule": rule, "rounds": rounds}
        print_json({"change": change, **_as_json(found, before)})
    else:
        _show(found, before, _change(without, rule, rounds))
    if found.verdict is None or found.verdict.answer is None:
        raise typer.Exit(NoVerdict.exit_code)


async def _replay(trace: SqliteTrace, society: Society, header: Header) -> _Outcome:
    book = ClosedBook(built_from(header).identities)
    society = replace(society, bus=book)
    async with trace, society:
        try:
            return _Outcome(await society.ask(task_of(header), seed=header.seed))
        except BusClosed:
            later = most_turns(society.program) - book.known - len(book.missing)
            return _Outcome(None, book.missing, later)


async def _ask(trace: SqliteTrace, society: Society, header: Header, *, show: bool) -> _Outcome:
    dialogue, asked = Dialogue(), 0
    async with trace, society:
        then = built_from(header).identities
        now = zip(society.program.names, society.program.identities, strict=True)
        changed = [name for name, identity in now if identity != then.get(name)]
        async with society.mindstorm(task_of(header), seed=header.seed) as storm:
            async for event in storm:
                asked += isinstance(event, Asked)
                if show:
                    dialogue.show(event)
            return _Outcome(await storm.verdict(), asked=asked, changed=changed)


def _change(without: Sequence[str], rule: str | None, rounds: int | None) -> str:
    changes = [f"without {' and '.join(without)}"] if without else []
    if rule is not None:
        changes.append(f"by {rule}")
    if rounds is not None:
        changes.append(f"with {counted(rounds, 'round')} at most")
    return ", ".join(changes)


def _show(found: _Outcome, before: Verdict | None, change: str) -> None:
    out.print("\n[bold]The recorded verdict[/]")
    if before is not None:
        show_outcome(before)
    else:
        out.print("[yellow]no verdict yet[/]")
    out.print(f"\n[bold]What if: {escape(change)}[/]", soft_wrap=True)
    for name in found.changed:
        out.print(f"[yellow]{escape(name)} has another agent or model now, and was asked again[/]")
    if found.verdict is not None:
        show_verdict(found.verdict)
        cost = f"turns asked for this: {found.asked}" if found.asked else "nobody had to be asked for this"
        out.print(f"[dim]{cost}[/]")
        return
    out.print(f"no stored reply for {counted(len(found.missing), 'turn')}, which would have to be asked:")
    for (phase, number), members in _by_phase(found.missing).items():
        out.print(f"  {escape(phase)}, round {number}: {escape(', '.join(members))}", soft_wrap=True)
    if found.later:
        out.print(f"then up to {found.later} more, depending on the replies")
    out.print("[dim]--call asks them[/]")


def _by_phase(turns: Sequence[Turn]) -> dict[tuple[str, int], list[str]]:
    by: dict[tuple[str, int], list[str]] = defaultdict(list)
    for turn in turns:
        by[turn.phase, turn.round].append(turn.member.name)
    return by


def _as_json(found: _Outcome, before: Verdict | None) -> dict[str, Any]:
    return {
        "recorded": before.model_dump(mode="json") if before else None,
        "what_if": found.verdict.model_dump(mode="json") if found.verdict else None,
        "missing": [
            {"member": turn.member.name, "phase": turn.phase, "round": turn.round, "key": turn.key}
            for turn in found.missing
        ],
        "later_at_most": found.later,
        "asked": found.asked,
        "changed": list(found.changed),
    }
