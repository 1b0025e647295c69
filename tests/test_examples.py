"""Every example runs, and prints what its text says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def run(name: str) -> str:
    done = subprocess.run([sys.executable, EXAMPLES / name], capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("own_agent.py", ["8"]),
        ("own_society.py", ["no by plurality", "ocr abstained", "cat {'cat': 2.0"]),
        ("watching.py", ["tag is asked", "verdict: coffee"]),
        ("resume_and_replay.py", ["cut off; asked: [1, 1, 1]", "asked: [0, 0, 1]", "asked: [0, 0, 0]"]),
    ],
)
def test_an_example_runs_and_prints_what_it_promises(name, told):
    printed = run(name)
    for words in told:
        assert words in printed


@pytest.mark.real_model
@pytest.mark.parametrize(("name", "told"), [("first_mindstorm.py", "cat {'cat': 1.0"), ("caption.py", "cup")])
def test_an_example_with_the_embedded_default_runs(name, told):
    assert told in run(name)


def test_no_example_is_left_out():
    tried = Path(__file__).read_text()
    assert all(file.name in tried for file in EXAMPLES.glob("*.py"))
