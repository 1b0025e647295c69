"""The examples of the server's documentation, unchanged except for the port."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

from serving import Process

from nlsom_societies.samples import sample

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.M | re.S)


def blocks(page, language, *, containing):
    """Blocks of a page in a language that contain a text."""
    found = BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))
    return [text for name, _, text in found if name == language and containing in text]


def run(command, url, folder):
    """What a command prints, asked of the server at `url`."""
    there = [word.replace("http://127.0.0.1:8800", url) for word in command]
    done = subprocess.run(there, capture_output=True, text=True, timeout=300, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def squeezed(text):
    """A text without what is only layout: how lines are broken and indented."""
    return re.sub(r"\n *", "", text).strip()


def assert_shown(shown, told):
    """What is shown is so; `…` stands for anything."""
    pieces = [re.escape(piece) for piece in squeezed(shown).split("…")]
    assert re.fullmatch(".*?".join(pieces), squeezed(told), re.S), told


def test_the_curl_of_the_page_on_serving_gets_what_is_shown(tmp_path):
    (curl,) = blocks("docs/serving.md", "sh", containing="curl")
    (shown,) = blocks("docs/serving.md", "text", containing='"id":"chatcmpl-')
    with Process(tmp_path) as server:
        assert_shown(shown, run(["bash", "-c", curl], server.url, tmp_path))


def test_the_python_of_the_page_on_serving_prints_what_is_shown(tmp_path):
    (code,) = blocks("docs/serving.md", "python", containing="from openai import OpenAI")
    (shown,) = blocks("docs/serving.md", "text", containing="[caption, round 1]\nanna")
    shutil.copy(sample("cat"), tmp_path / "photo.jpg")
    with Process(tmp_path) as server:
        assert run([sys.executable, "-c", code], server.url, tmp_path).strip() == shown.strip()


def test_the_curl_of_the_readme_gets_what_is_shown(tmp_path):
    (console,) = blocks("README.md", "console", containing="$ curl")
    (shown,) = blocks("README.md", "text", containing='"id":"chatcmpl-')
    serve, _, curl = console.removeprefix("$ ").partition("\n$ ")
    assert serve == "nlsom serve examples/own_society.yaml --port 8800 &"
    with Process(tmp_path, society=ROOT / "examples" / "own_society.yaml") as server:
        assert_shown(shown, run(["bash", "-c", curl], server.url, ROOT))
