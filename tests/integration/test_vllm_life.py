"""The life of real vLLM servers: what ends them, and that nothing of them is left.

These come first by name, before the servers that the other files share are up: two at a time at most.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
import yaml

from nlsom.errors import ModelUnavailable
from nlsom.form import TextForm
from nlsom.model import Settings
from nlsom.testing.models import prompt_of
from nlsom_serve.vllm import Metrics, first_end, serving, state
from nlsom_serve.vllm.model import ProfileModel
from nlsom_serve.vllm.state import Server

pytestmark = pytest.mark.vllm

NLSOM = str(Path(sys.executable).parent / "nlsom")
KEEPER = """
import asyncio
from nlsom_serve.vllm import serving
async def main():
    async with serving(["keeper=cpu-test"]) as servers:
        print(servers[0].model_dump_json(), flush=True)
        await asyncio.sleep(3600)
asyncio.run(main())
"""


async def gone(pids: list[int]) -> None:
    while any(state.birth(pid) is not None for pid in pids):
        await asyncio.sleep(0.1)


@pytest.mark.usefixtures("a_home")
async def test_killing_nlsom_ends_the_server_and_its_engine():
    with subprocess.Popen([sys.executable, "-c", KEEPER], stdout=subprocess.PIPE) as keeper:
        assert keeper.stdout is not None
        server = Server.model_validate_json(await asyncio.to_thread(keeper.stdout.readline))
        pids = server.pids
        assert len(pids) >= 4, "the guard, the HTTP server, the engine and its worker"
        keeper.kill()
    await gone(pids)
    assert state.servers() == []


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"max-modl-len": 2048}, "vLLM does not know --max-modl-len: correct"),
        ({"max-model-len": 30000}, r"max_model_len \(30000\) is greater .*lower max-model-len"),
        ({"model": "no-org/no-model"}, "the model is not on this machine, and the hub cannot be reached"),
    ],
    ids=["unknown option", "context longer than the model's", "a model that is not there"],
)
async def test_a_start_that_fails_gives_vllms_own_reason(
    a_home: Path, options: dict[str, object], reason: str
):
    path = a_home / "failing.yaml"
    vllm = {
        "model": str(a_home / "test-vllm" / "smollm2"),
        "dtype": "bfloat16",
        "enforce-eager": True,
    } | options
    facts = {"device": "cpu", "env": {"HF_HUB_OFFLINE": "1", "VLLM_CPU_KVCACHE_SPACE": "1"}}
    path.write_text(yaml.safe_dump({"vllm": vllm, "nlsom": facts}))
    with pytest.raises(ModelUnavailable, match=reason):
        async with serving([str(path)]):
            pass
    assert state.servers() == []


SOCIETY = """
name: eyes
task: vqa
models: {vlm: {profile: seen}}
members:
  eyes: {agent: vision, model: vlm, role: expert, count: 3, temperature: 0.7}
  leader: {agent: vision, model: vlm, role: leader}
structure: democracy
mindstorm:
  - {ask: expert, prompt: introduce, as: caption, form: {text: {max_tokens: 16}}}
  - {ask: leader, prompt: choose, as: ballot, form: answer}
verdict: {rule: decree, of: leader}
limits: {seconds: 3600, on_error: raise}
"""


async def nlsom(*arguments: str) -> str:
    """What a command prints; it has to succeed."""
    process = await asyncio.create_subprocess_exec(
        NLSOM, *arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    printed, complained = await process.communicate()
    assert process.returncode == 0, f"{printed.decode()}{complained.decode()}"
    return printed.decode()


async def test_the_command_line_serves_a_society_until_it_is_interrupted(a_home: Path):
    society = a_home / "eyes.yaml"
    society.write_text(SOCIETY)
    process = await asyncio.create_subprocess_exec(
        NLSOM, "models", "up", "seen=cpu-test", stdout=asyncio.subprocess.PIPE, start_new_session=True
    )
    try:
        assert process.stdout is not None
        assert b"/v1  llava-tiny" in await process.stdout.readline()
        (server,) = state.servers()
        pids = server.pids

        (told,) = json.loads(await nlsom("models", "status", "--json"))
        assert (told["state"], told["server"]["name"]) == ("serving", "seen")
        asked = ("What is it?", "--image", "sample:cat", "--choices", "cat,dog,bird", "--json")
        verdict = json.loads(await nlsom("ask", str(society), *asked))
        assert verdict["answer"] in {"cat", "dog", "bird"}
        assert verdict["usage"]["calls"] == 4
    finally:
        process.send_signal(signal.SIGINT)
        assert await process.wait() == 130
    assert [pid for pid in pids if state.birth(pid) is not None] == []


async def metrics_of(server: Server) -> Metrics:
    async with httpx.AsyncClient(trust_env=False, timeout=300) as http:
        return Metrics.read((await http.get(f"{server.url}/metrics")).text)


async def test_a_server_whose_engine_dies_ends_as_a_whole_and_the_other_replica_takes_over(
    pair: tuple[Server, ...],
):
    dying, staying = pair
    pids = dying.pids
    engines = [pid for pid in pids if b"EngineCore" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    form = TextForm(max_tokens=1500)

    async with ProfileModel([dying.name, staying.name]) as model:

        async def ask(n: int) -> str:
            said = await model.complete(prompt_of(f"Question {n}."), form=form, settings=Settings(), seed=n)
            return said.text

        numbers = itertools.count()
        calls: list[asyncio.Task[str]] = []
        while not (await metrics_of(dying)).running:
            if all(call.done() for call in calls):  # a small model may have answered before anybody looked
                calls = [asyncio.create_task(ask(next(numbers))) for _ in range(16)]
        os.kill(engines[0], signal.SIGKILL)
        assert len(await asyncio.gather(*calls)) == 16
        assert (await metrics_of(staying)).generated_tokens > 0
        assert await first_end(pair) == dying
        await gone(pids)

        for pid in staying.pids:
            os.kill(pid, signal.SIGKILL)
        with pytest.raises(ModelUnavailable):
            await ask(99)
