"""People at the terminal: their turns are shown on standard error, and answered on standard input."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator

from rich.console import Console

from nlsom.answers import Answered, Answers
from nlsom.errors import DeadlineExceeded
from nlsom.form import Form
from nlsom.society import Society
from nlsom.turn import Turn
from nlsom_serve.cli.screen import err, escape


class Terminal(Answers):
    """Where a person answers who sits at the terminal: one turn after the other, a line each.

    Args:
        fd: What is read; standard input by default. At its end, nothing more is said.
        console: Where turns are shown.
    """

    __slots__ = ("_console", "_fd", "_one_at_a_time", "_rest")

    def __init__(self, fd: int | None = None, console: Console = err) -> None:
        super().__init__()
        if fd is None and sys.stdin is not None:  # None where whoever began this process closed it
            fd = sys.stdin.fileno()
        self._fd = fd
        self._console = console
        self._one_at_a_time = asyncio.Lock()
        self._rest = b""

    async def ask(self, turn: Turn, *, seconds: float | None = None) -> str:
        """Shows the turn and waits for a line; the time runs from when it is shown.

        Somebody at a keyboard who typed what cannot be read in the turn's form is asked once more.

        Raises:
            DeadlineExceeded: Nothing was typed in time.
        """
        async with self._one_at_a_time:
            self._show(turn, seconds)
            try:
                async with asyncio.timeout(seconds):
                    line = await self._line()
                    if line.strip() and self._typed and (why := _unread(turn.form, line)):
                        self._console.print(
                            f"[yellow]{escape(why)}; once more, or nothing[/]\n[bold]>[/] ", end=""
                        )
                        line = await self._line()
                    return line
            except TimeoutError:
                self._console.print("[yellow]too late[/]")
                raise DeadlineExceeded(
                    f"{turn.member.name!r} did not answer within {seconds:g} seconds"
                ) from None

    @property
    def _typed(self) -> bool:
        """Whether somebody types; what a file or another program writes is a line a turn."""
        return self._fd is not None and os.isatty(self._fd)

    def _show(self, turn: Turn, seconds: float | None) -> None:
        within = "" if seconds is None else f", within {seconds:g} seconds"
        self._console.print(f"\n[bold]{escape(turn.member.name)}, it is your turn[/]{within}.")
        for message in turn.heard:
            words = " ".join(message.text.split())
            self._console.print(f"  [dim]{escape(message.sender)}: {escape(words)}[/]", soft_wrap=True)
        told = "\n".join(part for part in (turn.task.describe(), turn.ask, turn.form.instruct()) if part)
        self._console.print(escape(told), soft_wrap=True)
        self._console.print("[bold]>[/] ", end="")

    async def _line(self) -> str:
        while b"\n" not in self._rest:
            data = await self._read()
            if not data:
                line, self._rest = self._rest, b""
                return line.decode(errors="replace")
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        return line.decode(errors="replace")

    async def _read(self) -> bytes:
        """Reads what is there, without a thread: one that waits for a key could never be ended."""
        if self._fd is None:
            return b""
        loop = asyncio.get_running_loop()
        there = asyncio.Event()
        try:
            loop.add_reader(self._fd, there.set)
        except PermissionError:
            return os.read(self._fd, 65536)  # a file: it never keeps anybody waiting
        try:
            await there.wait()
        finally:
            loop.remove_reader(self._fd)
        return os.read(self._fd, 65536)


def _unread(form: Form, text: str) -> str | None:
    """Why no answer can be read out of a text; None where one can."""
    reading = form.read(text)
    return reading.why if reading.answer is None and reading.ballot is None else None


def people(society: Society) -> Iterator[Answered]:
    """The members that a person speaks for, of a society and of those nested in it."""
    for seat in society.seats:
        if isinstance(seat.agent, Answered):
            yield seat.agent
        inner = getattr(seat.agent, "society", None)
        if isinstance(inner, Society):
            yield from people(inner)
