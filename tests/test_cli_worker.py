"""`nlsom worker` and `--bus`, as users start them: processes of their own, a real server between them."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from contextlib import asynccontextmanager

import pytest

from nlsom.testing.nats import NatsServer

SOCIETY = """
name: panel
members:
  ann: {agent: script, says: cat, role: expert}
  bob: {agent: script, says: cat, role: expert}
  cy: {agent: script, says: dog, role: judge}
mindstorm:
  - {ask: everyone, prompt: {text: Answer.}, as: answer}
  - {ask: everyone, prompt: {text: Vote.}, as: ballot, form: answer}
"""


@pytest.fixture
def society(tmp_path):
    (tmp_path / "panel.yaml").write_text(SOCIETY)
    return str(tmp_path / "panel.yaml")


def nlsom(*words):
    return asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "nlsom_serve.cli",
        *words,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


@asynccontextmanager
async def worker(*words):
    process = await nlsom("worker", *words)
    try:
        line = await process.stderr.readline()
        assert line.startswith(b"hosting"), line + await process.stderr.read()
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def test_a_society_is_asked_whose_members_are_on_two_workers(society, tmp_path):
    cache = ("--cache", str(tmp_path / "cache"))
    trace = str(tmp_path / "run.sqlite")
    async with NatsServer() as server:
        common = ("--bus", server.url, "--society", society, *cache)
        ask = ("ask", society, "What?", "--choices", "cat,dog", "--bus", server.url, "--json")
        async with worker(*common, "--only", "expert") as experts:
            alone = await nlsom(*ask)
            _, told = await alone.communicate()
            assert alone.returncode == 1
            assert b"'cy'" in told, "who is hosted nowhere is named"
            async with worker(*common, "--only", "judge"):
                whole = await nlsom(*ask, "--trace", trace, "--image", "sample:cat")
                told, wrong = await whole.communicate()
                assert whole.returncode == 0, wrong
                assert json.loads(told)["answer"] == "cat"
                assert json.loads(told)["abstained"] == []
            experts.send_signal(signal.SIGTERM)
            assert await experts.wait() == 0
        other = await nlsom("replay", trace, "--json")
        told, _ = await other.communicate()
        assert len(json.loads(told)["messages"]) == 6


async def test_a_worker_that_finds_no_server_says_so(society, unused_tcp_port):
    process = await nlsom("worker", "--bus", f"nats://127.0.0.1:{unused_tcp_port}", "--society", society)
    _, told = await process.communicate()
    assert process.returncode == 4
    assert b"no NATS server at" in told
    assert b"Traceback" not in told
