"""The life of real vLLM servers: what ends them, and that nothing of them is left."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from nlsom.errors import ModelUnavailable
from nlsom_serve.vllm import first_end, serving, state
from nlsom_serve.vllm.state import Server

pytestmark = pytest.mark.vllm

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


@pytest.mark.usefixtures("a_home")
async def test_a_server_whose_engine_dies_ends_as_a_whole():
    async with serving(["dying=cpu-test"]) as (server,):
        pids = server.pids
        engines = [pid for pid in pids if b"EngineCore" in Path(f"/proc/{pid}/cmdline").read_bytes()]
        os.kill(engines[0], signal.SIGKILL)
        assert await first_end([server]) == server
        await gone(pids)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"max-modl-len": 2048}, "vLLM does not know --max-modl-len 2048"),
        ({"max-model-len": 99999}, r"max_model_len \(99999\) is greater .*lower max-model-len"),
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
