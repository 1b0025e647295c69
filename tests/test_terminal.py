from __future__ import annotations

import asyncio
import io
import os
import pty
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from nlsom.config import load
from nlsom.errors import DeadlineExceeded
from nlsom.form import ChoiceForm
from nlsom.testing.turns import make_message, make_turn
from nlsom_serve.cli.terminal import Terminal, people

TABLE = {
    "name": "table",
    "models": {"llm": {"scripted": "1"}},
    "members": {
        "ann": {"agent": "human", "role": "voter", "seconds": "0.2"},
        "mind": {"agent": "chat", "model": "llm", "role": "voter", "count": "3"},
    },
    "mindstorm": [{"ask": "voter", "prompt": "give_answer", "as": "ballot", "form": "answer"}],
}


@pytest.fixture
def keyboard() -> Iterator[tuple[int, int]]:
    read, write = os.pipe()
    yield read, write
    os.close(read)
    if write in (int(fd) for fd in os.listdir("/proc/self/fd")):
        os.close(write)


def shown() -> tuple[Console, io.StringIO]:
    text = io.StringIO()
    return Console(file=text, width=200), text


async def test_one_person_and_three_models_are_a_society(keyboard: tuple[int, int]) -> None:
    read, write = keyboard
    console, text = shown()
    society = load(TABLE)
    (person,) = people(society)
    person.answers = Terminal(read, console)
    os.write(write, b"B\n")
    async with society:
        verdict = await society.ask("Cat or dog?", choices=["cat", "dog"])
    assert sum(verdict.tally.values()) == 4
    assert "ann, it is your turn" in text.getvalue()
    assert "B. dog" in text.getvalue()


async def test_a_person_who_is_too_late_abstains_and_the_others_go_on(keyboard: tuple[int, int]) -> None:
    society = load(TABLE)
    (person,) = people(society)
    person.answers = Terminal(keyboard[0], shown()[0])
    async with society:
        verdict = await society.ask("Cat or dog?", choices=["cat", "dog"])
    assert sum(verdict.tally.values()) == 3
    assert [(one.member, "did not answer" in one.cause) for one in verdict.abstained] == [("ann", True)]


async def test_turns_are_answered_one_after_the_other(keyboard: tuple[int, int]) -> None:
    read, write = keyboard
    terminal = Terminal(read, shown()[0])
    os.write(write, b"first\nsec")
    one = asyncio.ensure_future(terminal.ask(make_turn("a")))
    two = asyncio.ensure_future(terminal.ask(make_turn("b")))
    assert await one == "first"
    os.write(write, "ond ünï\n".encode())
    assert await two == "second ünï"


async def test_what_was_heard_is_shown_and_markup_in_it_is_text(keyboard: tuple[int, int]) -> None:
    read, write = keyboard
    console, text = shown()
    os.write(write, b"ok\n")
    heard = [make_message("I see [red]a cat[/red]", sender="eyes")]
    await Terminal(read, console).ask(
        make_turn("What?", heard=heard, form=ChoiceForm(options=("cat", "dog")))
    )
    assert "eyes: I see [red]a cat[/red]" in text.getvalue()


async def test_at_the_end_of_input_nothing_is_said(keyboard: tuple[int, int]) -> None:
    read, write = keyboard
    os.close(write)
    assert await Terminal(read, shown()[0]).ask(make_turn("a")) == ""


async def test_where_there_is_no_input_at_all_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)  # as Python has it where it was closed
    assert await Terminal(console=shown()[0]).ask(make_turn("a")) == ""


@pytest.mark.parametrize(("typed", "taken"), [(b"7\ndog\n", "dog"), (b"7\n8\n", "8"), (b"\n", "")])
async def test_who_mistypes_an_answer_is_asked_once_more(typed: bytes, taken: str) -> None:
    ours, theirs = pty.openpty()
    console, text = shown()
    try:
        os.write(ours, typed)
        turn = make_turn("What?", form=ChoiceForm(options=("cat", "dog")))
        assert (await Terminal(theirs, console).ask(turn)).strip() == taken
    finally:
        os.close(ours)
        os.close(theirs)
    assert ("once more" in text.getvalue()) == (len(typed) > 1)


async def test_answers_may_come_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "answers").write_text("yes\nno\n")
    fd = os.open(tmp_path / "answers", os.O_RDONLY)
    try:
        terminal = Terminal(fd, shown()[0])
        assert [await terminal.ask(make_turn(q)) for q in "abc"] == ["yes", "no", ""]
    finally:
        os.close(fd)


async def test_a_deadline_is_told(keyboard: tuple[int, int]) -> None:
    with pytest.raises(DeadlineExceeded, match="within 0.01 seconds"):
        await Terminal(keyboard[0], shown()[0]).ask(make_turn("a"), seconds=0.01)
