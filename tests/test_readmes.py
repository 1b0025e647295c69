"""The READMEs are correct: societies load, Python runs, commands and targets exist."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from nlsom.config import load

ROOT = Path(__file__).parents[1]
GROUPS = ("agents", "bench", "models", "societies", "traces")
BLOCK = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```$", re.M | re.S)


def blocks(page: str, language: str) -> list[str]:
    text = (ROOT / page).read_text(encoding="utf-8")
    return [match[2] for match in BLOCK.finditer(text) if match[1] == language]


def test_the_society_of_the_readme_loads(tmp_path):
    (text,) = blocks("README.md", "yaml")
    (tmp_path / "society.yaml").write_text(text)
    society = load(tmp_path / "society.yaml")
    assert [member.name for member in society.members] == ["eyes", "mind.1", "mind.2", "judge"]


def test_the_python_of_the_readme_prints_what_it_shows(tmp_path):
    (code,) = blocks("README.md", "python")
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    shown = [sorted(text.splitlines()) for text in blocks("README.md", "text")]
    assert sorted(done.stdout.splitlines()) in shown, done.stdout


def test_every_target_and_command_that_is_shown_exists():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    commands: set[tuple[str, ...]] = set()
    for page in ("README.md", "CONTRIBUTING.md", "serve/README.md"):
        for text in blocks(page, "console"):
            for target in re.findall(r"^(?:\$ )?make ([a-z-]+)", text, re.M):
                assert target in targets, f"{page}: make {target}"
            for words in re.findall(r"^(?:\$ )?nlsom ([a-z ]+)", text, re.M):
                top, *rest = words.split()
                commands.add((top, *rest[:1]) if top in GROUPS else (top,))
    for command in commands:
        words = [sys.executable, "-m", "nlsom_serve", *command, "--help"]
        assert subprocess.run(words, capture_output=True, timeout=120).returncode == 0, command


def test_links_lead_somewhere():
    for page in (
        "README.md",
        "CONTRIBUTING.md",
        "agents/README.md",
        "societies/README.md",
        "serve/README.md",
    ):
        for link in re.findall(r"\]\((?!https?:|#)([^)#\s]+)", (ROOT / page).read_text(encoding="utf-8")):
            assert ((ROOT / page).parent / link).exists(), f"{page}: {link}"


def test_the_agent_of_the_agents_readme_sits_in_a_society(tmp_path, monkeypatch: pytest.MonkeyPatch):
    (code,) = blocks("agents/README.md", "python")
    (toml,) = blocks("agents/README.md", "toml")
    (text,) = blocks("agents/README.md", "yaml")
    (tmp_path / "my_agents.py").write_text(code)
    info = tmp_path / "my_agents-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-agents\nVersion: 1\n")
    points = toml.replace('project.entry-points."nlsom.agents"', "nlsom.agents").replace('"', "")
    (info / "entry_points.txt").write_text(points)
    (tmp_path / "doubtful.yaml").write_text(text)
    ask = "import nlsom, asyncio\nasync def main():\n    async with nlsom.load('doubtful.yaml') as society:\n"
    ask += "        print((await society.ask('Is it?')).answer)\nasyncio.run(main())"
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, '.')\n{ask}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout == "never\n", done.stderr


def test_the_tests_that_rule_out_known_faults_exist():
    text = (ROOT / "docs" / "pains.md").read_text(encoding="utf-8")
    places = [*(ROOT / "tests").glob("*.py"), *(ROOT / "nlsom" / "testing").glob("*.py")]
    known = "\n".join(file.read_text(encoding="utf-8") for file in places)
    for name in re.findall(r"`(test_\w+)`", text):
        assert f"def {name}(" in known, name
    for file in re.findall(r"`(tests/\w+\.py)`", text):
        assert (ROOT / file).is_file(), file
