"""Runs what the documentation shows: Python is executed, societies are loaded, outputs are compared.

The blocks of a page share one folder and one namespace, in order.

- `python`: executed; `await` may stand at the top. `python served` needs a server, and is only compiled.
- `yaml`: a whole society is written to NAME.yaml and loaded; anything less is laid over the first whole one.
- `console run`: each `$ nlsom …` is run, and what follows is what it prints; a line `…` stands for any lines.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import os
import re
import runpy
import shlex
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from typer.testing import CliRunner

from nlsom.config import load, shipped
from nlsom.plugins import Group
from nlsom_serve.cli import app
from nlsom_serve.cli.screen import out

DOCS = Path(__file__).parents[1] / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
BLOCK = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.M | re.S)


def blocks(page: Path) -> list[tuple[str, str, str, int]]:
    """Language, mark, text and line of each fenced block."""
    text = page.read_text(encoding="utf-8")
    return [(m[1], m[2].strip(), m[3], text.count("\n", 0, m.start()) + 1) for m in BLOCK.finditer(text)]


def run_python(code: str, line: int, names: dict[str, Any]) -> None:
    compiled = compile("\n" * line + code, "docs", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    running = eval(compiled, names)
    if inspect.iscoroutine(running):
        asyncio.run(running)


def load_yaml(text: str, first: dict[str, Any]) -> dict[str, Any]:
    """Loads a society, or a piece of one over the first; returns the first."""
    given = yaml.load(text, yaml.BaseLoader)  # every scalar stays text
    if "members" in given:
        Path(f"{given['name']}.yaml").write_text(text, encoding="utf-8")
        load(Path(f"{given['name']}.yaml"))
        return first or given
    assert first, "a piece of a society needs a whole one before it"
    load({**first, **given})
    return first


def run_console(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(out, "_width", 110)
    for command in re.split(r"^\$ ", text, flags=re.M)[1:]:
        line, _, expected = command.partition("\n")
        name, *arguments = shlex.split(line)
        assert name == "nlsom"
        done = CliRunner().invoke(app, arguments)
        printed = [row.rstrip() for row in done.output.strip().splitlines()]
        wanted = [row.rstrip() for row in expected.strip().splitlines()]
        assert matches(wanted, printed), f"$ {line}\n" + "\n".join(printed)


def matches(wanted: list[str], printed: list[str]) -> bool:
    """Whether lines are as wanted; `…` alone stands for any lines, at the end of a line for its rest."""
    if not wanted:
        return not printed
    if wanted[0] == "…":
        return any(matches(wanted[1:], printed[at:]) for at in range(len(printed) + 1))
    if not printed:
        return False
    begins = wanted[0].endswith("…") and printed[0].startswith(wanted[0][:-1].rstrip())
    return (begins or wanted[0] == printed[0]) and matches(wanted[1:], printed[1:])


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(DOCS)) for page in PAGES])
def test_what_a_page_shows_is_so(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "docs"}
    first: dict[str, Any] = {}
    for language, mark, text, line in blocks(page):
        if language == "python" and mark == "served":
            compile(text, "docs", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        elif language == "python":
            run_python(text, line, names)
        elif language == "yaml":
            first = load_yaml(text, first)
        elif language == "console" and mark == "run":
            run_console(text, monkeypatch)


def test_drawings_are_those_of_the_societies_as_they_are_now() -> None:
    drawn = runpy.run_path(str(DOCS / "make_pictures.py"))["pictures"]()
    there = {file.name: file.read_text(encoding="utf-8") for file in (DOCS / "pictures").glob("*.svg")}
    assert there.keys() == drawn.keys(), "run: python docs/make_pictures.py"
    stale = [name for name, svg in drawn.items() if there[name] != svg]
    assert not stale, f"run: python docs/make_pictures.py ({', '.join(stale)})"


def test_every_shipped_society_is_described_with_its_drawing() -> None:
    text = (DOCS / "societies.md").read_text(encoding="utf-8")
    for name in shipped():
        assert f"pictures/{name}.svg" in text
        assert f"### {name}\n" in text


def test_every_kind_of_plugin_is_named() -> None:
    text = (DOCS / "python.md").read_text(encoding="utf-8")
    assert [group for group in get_args(Group) if f"`nlsom.{group}`" not in text] == []


def test_links_between_pages_lead_somewhere() -> None:
    for page in PAGES:
        for link in re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", page.read_text(encoding="utf-8")):
            assert os.path.exists(page.parent / link), f"{page.name}: {link}"
