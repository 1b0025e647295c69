"""`nlsom worker` and `--bus`, as users start them: processes of their own, a real server between them."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
import yaml
from bench import questions

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
        "nlsom_serve",
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


MINDS = """
name: minds
models: {llm: {scripted: 1}}
members:
  ann: {agent: chat, model: llm}
  bob: {agent: chat, model: llm, persona: A doubter.}
mindstorm:
  - {ask: everyone, prompt: {text: Vote.}, as: ballot, form: answer}
verdict: {rule: plurality, tie_break: first}
"""


async def test_a_baseline_asks_the_society_on_its_workers_and_its_rivals_here(tmp_path):
    questions(tmp_path / "set", 4)
    (tmp_path / "minds.yaml").write_text(MINDS)
    society = str(tmp_path / "minds.yaml")
    bench = ["bench", "baseline", society, "--on", "folder", "--path", str(tmp_path / "set" / "set.csv")]
    async with NatsServer() as server:
        bus = ("--bus", server.url)
        nobody = await nlsom(*bench, "-o", str(tmp_path / "nobody"), *bus, "--json")
        _, wrong = await nobody.communicate()
        assert nobody.returncode == 1
        assert b"no agent is hosted at 'ann'" in wrong
        async with worker(*bus, "--society", society, "--cache", str(tmp_path / "cache")):
            hosted = await nlsom(*bench, "-o", str(tmp_path / "hosted"), *bus, "--most", "2", "--json")
            told, wrong = await hosted.communicate()
            assert hosted.returncode == 0, wrong
    here = await nlsom(*bench, "-o", str(tmp_path / "here"), "--most", "2", "--json")
    same, wrong = await here.communicate()
    assert here.returncode == 0, wrong
    told, same = (json.loads(one.replace(b'"hosted"', b'"here"')) for one in (told, same))
    assert told["society"]["society"] == "minds"
    assert {one["society"] for one in told["members"]} == {"alone:ann", "alone:bob"}
    assert told == same


async def test_a_worker_that_finds_no_server_says_so(society, unused_tcp_port):
    process = await nlsom("worker", "--bus", f"nats://127.0.0.1:{unused_tcp_port}", "--society", society)
    _, told = await process.communicate()
    assert process.returncode == 4
    assert b"no NATS server at" in told
    assert b"Traceback" not in told


KEY = "a-key-of-many-characters"
COMPOSE = Path(__file__).parents[1] / "examples" / "nats" / "compose.yaml"


async def test_the_commands_of_the_compose_file_make_a_society_that_answers(society, tmp_path):
    """In a shell: no container engine is needed to see that the commands work together."""
    told = yaml.safe_load(COMPOSE.read_text())
    services = told["services"]
    for service in services.values():
        assert set(service.get("depends_on", ())) <= set(services)
        assert {one.partition(":")[0] for one in service.get("volumes", ())} <= set(told["volumes"])
        assert set(service.get("secrets", ())) <= set(told["secrets"])
    keys = tmp_path / told["secrets"]["keys"]["file"]
    keys.write_text(KEY + "\n")
    places = {"vqa-democracy": society, "/cache": str(tmp_path / "cache"), "/data": str(tmp_path / "data")}
    places |= {"/run/secrets/keys": str(keys), "0.0.0.0": "127.0.0.1"}
    assert services["nats"]["command"] == ["-js", "-sd", "/data"]
    async with NatsServer() as server:  # Given -js and -sd too.

        def words(service):
            program, *rest = services[service]["command"]
            assert program == "nlsom"
            return [places.get(word, word.replace("nats://nats:4222", server.url)) for word in rest]

        command, *rest = words("experts")
        assert command == "worker"
        async with worker(*rest), worker(*rest):
            port = free_port()
            serving = await nlsom(*words("serve"), "--port", str(port))
            try:
                async with httpx.AsyncClient(
                    headers={"Authorization": "Bearer a-key-of-many-characters"}
                ) as client:
                    url = f"http://127.0.0.1:{port}"
                    answer = await once_there(serving, client.get, f"{url}/v1/models")
                    assert [one["id"] for one in answer.json()["data"]] == ["society/panel"]
                    asked = {"model": "society/panel", "messages": [{"role": "user", "content": "What?"}]}
                    answer = await client.post(f"{url}/v1/chat/completions", json=asked, timeout=60)
                    assert "cat" in answer.json()["choices"][0]["message"]["content"]
            finally:
                if serving.returncode is None:
                    serving.terminate()
                await serving.communicate()


async def once_there(process, get, url):
    """The answer of a server that may still be starting."""
    while True:
        assert process.returncode is None, await process.stderr.read()
        try:
            return await get(url)
        except httpx.ConnectError:
            await asyncio.sleep(0.1)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
