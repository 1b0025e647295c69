"""Lets a person answer turns in the terminal: shown on standard error, read from standard input."""

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
    """Asks a person in the terminal, one turn at a time; an answer is one line.

    Args:
        fd: File descriptor to read; standard input by default. At its end, all answers are empty.
        console: Where turns are shown.
    """

    __slots__ = ("_console", "_fd", "_one_at_a_time", "_rest")

    def __init__(self, fd: int | None = None, console: Console = err) -> None:
        super().__init__()
        if fd is None and sys.stdin is not None:  # None if the parent process closed it
            fd = sys.stdin.fileno()
        self._fd = fd
        self._console = console
        self._one_at_a_time = asyncio.Lock()
        self._rest = b""

    async def ask(self, turn: Turn, *, seconds: float | None = None) -> str:
        """Shows the turn and waits for a line, for at most `seconds` after showing it.

        Asks once more if a line that was typed in a terminal cannot be parsed in the turn's form.

        Raises:
            DeadlineExceeded: No line was entered in time.
        """
        async with self._one_at_a_time:
            self._show(turn, seconds)
            try:
                async with asyncio.timeout(seconds):
                    line = await self._line()
                    if line.strip() and self._interactive and (why := _fault(turn.form, line)):
                        self._console.print(
                            f"[yellow]{escape(why)}; try again, or leave it empty[/]\n[bold]>[/] ", end=""
                        )
                        line = await self._line()
                    return line
            except TimeoutError:
                self._console.print("[yellow]too late[/]")
                raise DeadlineExceeded(
                    f"{turn.member.name!r} did not answer within {seconds:g} seconds"
                ) from None

    @property
    def _interactive(self) -> bool:
        """Whether a person types in a terminal, rather than a file or program providing the lines."""
        return self._fd is not None and os.isatty(self._fd)

    def _show(self, turn: Turn, seconds: float | None) -> None:
        within = "" if seconds is None else f", within {seconds:g} seconds"
        self._console.print(f"\n[bold]{escape(turn.member.name)}, it is your turn[/]{within}.")
        for message in turn.heard:
            words = " ".join(message.text.split())
            self._console.print(f"  [dim]{escape(message.sender)}: {escape(words)}[/]", soft_wrap=True)
        asked = "\n".join(part for part in (turn.task.describe(), turn.ask, turn.form.instruct()) if part)
        self._console.print(escape(asked), soft_wrap=True)
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
        """Reads available input, without a thread: one that blocks on a terminal cannot be cancelled."""
        if self._fd is None:
            return b""
        loop = asyncio.get_running_loop()
        readable = asyncio.Event()
        try:
            loop.add_reader(self._fd, readable.set)
        except PermissionError:
            return os.read(self._fd, 65536)  # a regular file, which epoll refuses and which never blocks
        try:
            await readable.wait()
        finally:
            loop.remove_reader(self._fd)
        return os.read(self._fd, 65536)


def _fault(form: Form, text: str) -> str | None:
    """Why a text cannot be parsed in a form; None if it can."""
    reading = form.read(text)
    return reading.why if reading.answer is None and reading.ballot is None else None


def people(society: Society) -> Iterator[Answered]:
    """The agents of a society, and of societies nested in it, whose answers a person gives."""
    for seat in society.seats:
        if isinstance(seat.agent, Answered):
            yield seat.agent
        inner = getattr(seat.agent, "society", None)
        if isinstance(inner, Society):
            yield from people(inner)
