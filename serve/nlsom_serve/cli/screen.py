"""What the command line shows: dialogue as it happens, verdicts, faults."""

from __future__ import annotations

import json
import re
from typing import Any

from rich import markup
from rich.console import Console
from rich.table import Table
from rich.text import Text

from nlsom.errors import ConfigError, NlsomError
from nlsom.event import Abstained, Asked, Event, Lagged, Spoke, Started
from nlsom.message import Message
from nlsom.verdict import Verdict

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)

# A terminal obeys these, and they may come from a picture, a tool or a model.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_COLOURS = ("cyan", "magenta", "green", "yellow", "blue", "bright_red", "bright_cyan", "bright_magenta")


def tame(text: str) -> str:
    """Text without control characters but line breaks and tabs; each is shown as U+FFFD."""
    return _CONTROL.sub("\ufffd", text)


def escape(text: str) -> str:
    """Text as the screen shows it: neither its markup nor its control characters are obeyed."""
    return markup.escape(tame(text))


def counted(number: int, noun: str) -> str:
    """A number and what it counts: `1 fault`, `2 faults`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def fail(error: NlsomError) -> None:
    """Tells an error on standard error; all faults of a file, a line each."""
    if isinstance(error, ConfigError):
        for fault in error.faults:
            err.print(f"[bold]{escape(fault.where)}[/]: {escape(fault.what)}", soft_wrap=True)
        err.print(f"[red]nlsom: {counted(len(error.faults), 'fault')}[/]")
    else:
        err.print(f"[red]nlsom:[/] {escape(str(error))}", soft_wrap=True)


def print_json(value: Any) -> None:
    """Prints one JSON value, as it is, for programs."""
    print(json.dumps(value, ensure_ascii=out.encoding != "utf-8", indent=2))  # noqa: T201


def table(*columns: str, gap: int = 2) -> Table:
    """A table without lines, its columns some blanks apart; without a head where none is named."""
    return Table(*columns, box=None, show_header=bool(columns), header_style="dim", padding=(0, gap, 0, 0))


class Dialogue:
    """Prints what members say, phase by phase."""

    def __init__(self, console: Console = out) -> None:
        self._console = console
        self._phase: tuple[str, int] | None = None
        self._colours: dict[str, str] = {}

    def show(self, event: Event) -> None:
        """Shows an event."""
        match event:
            case Started():
                self._console.print(f"[bold]{escape(event.society)}[/]: {escape(event.task.question)}")
                for number, choice in enumerate(event.task.choices):
                    self._console.print(
                        f"  {chr(65 + number) if number < 26 else number + 1}. {escape(choice)}"
                    )
            case Asked():
                self._open(event.phase, event.round)
            case Spoke():
                self.message(event.message, again=event.again)
            case Abstained(abstention=abstention):
                self._open(abstention.phase, abstention.round)
                self._console.print(
                    f"  [dim]{escape(abstention.member)} abstains: {escape(abstention.cause)}[/]",
                    soft_wrap=True,
                )
            case Lagged(missed=missed):
                self._console.print(f"  [dim]({missed} events were not shown in time)[/]")
            case _:
                pass

    def message(self, message: Message, *, again: bool = False) -> None:
        """Shows what a member said."""
        self._open(message.phase, message.round)
        colour = self._colours.setdefault(message.sender, _COLOURS[len(self._colours) % len(_COLOURS)])
        said = message.said
        line = Text("  ")
        line.append(tame(message.sender), style=f"bold {colour}")
        line.append(": ")
        line.append(tame(" ".join(said.text.split())) or "(nothing)")
        notes: list[str] = []
        if said.answer is not None and said.answer != said.text.strip():
            notes.append(f"→ {tame(said.answer)}")
        if said.confidence is not None:
            notes.append(f"{said.confidence:.0%} sure")
        if said.why is not None:
            notes.append("no answer" if said.why == said.text else f"no answer: {tame(said.why)}")
        if again:
            notes.append("from the trace")
        if notes:
            line.append(f"  ({', '.join(notes)})", style="dim")
        self._console.print(line, soft_wrap=True)

    def _open(self, phase: str, round: int) -> None:
        if self._phase != (phase, round):
            self._phase = (phase, round)
            self._console.print(f"\n[dim]── {escape(phase)}, round {round}[/]")


def show_outcome(verdict: Verdict, console: Console = out) -> None:
    """Shows the answer of a verdict, or why there is none, and how the votes fell."""
    if verdict.answer is not None:
        sure = f"  [dim]({verdict.confidence:.0%})[/]" if verdict.confidence is not None else ""
        console.print(f"[bold green]{escape(verdict.answer)}[/]{sure}", soft_wrap=True)
    elif verdict.tied:
        console.print(f"[bold yellow]no verdict: tied between {escape(', '.join(verdict.tied))}[/]")
    else:
        console.print("[bold yellow]no verdict: nobody gave an answer that could be counted[/]")
    if len(verdict.tally) > 1:
        tally = ", ".join(f"{name} {score:g}" for name, score in verdict.tally.items() if score)
        console.print(f"[dim]{verdict.rule}: {escape(tally)}[/]", soft_wrap=True)


def show_verdict(verdict: Verdict, console: Console = out) -> None:
    """Shows a verdict: the answer, how it came about, and what it cost."""
    show_outcome(verdict, console)
    if verdict.answer is None or verdict.cut_short:
        for one in verdict.abstained:
            where = f"{escape(one.member)} abstained ({escape(one.phase)}, round {one.round})"
            console.print(f"[dim]{where}: {escape(one.cause)}[/]", soft_wrap=True)
    if verdict.cut_short:
        console.print(f"[yellow]cut short by its limit of {escape(verdict.cut_short)}[/]", soft_wrap=True)
    usage = verdict.usage
    cached = "" if usage.cached_tokens is None else f" ({usage.cached_tokens} cached)"
    console.print(
        f"[dim]{counted(verdict.rounds, 'round')}, {counted(usage.calls, 'model call')},"
        f" {counted(usage.prompt_tokens, 'token')} read{cached},"
        f" {usage.completion_tokens} written, {usage.seconds:.1f} s[/]"
    )
    whole = verdict.usage_total
    if whole.calls > usage.calls:
        told = f"with stored replies: {counted(whole.calls, 'model call')}, {counted(whole.tokens, 'token')}"
        console.print(f"[dim]{told}[/]")
