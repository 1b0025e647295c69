"""The life of a server: started, watched, stopped, and never outliving whom it must not outlive.

`vllm` here is data/vllm_stand_in.py, a small program that serves on loopback, has a worker process that
ignores SIGTERM, and fails as it is told to. The real vLLM goes through the same in tests/integration.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nlsom.errors import ModelUnavailable, UsageError
from nlsom_serve.vllm import down, find, first_end, logs, ports, prepared, serving, state, status, up
from nlsom_serve.vllm.guard import session_of
from nlsom_serve.vllm.launch import find_vllm
from nlsom_serve.vllm.memory import read_gpus
from nlsom_serve.vllm.profiles import Facts
from nlsom_serve.vllm.state import Server

STAND_IN = Path(__file__).parent / "data" / "vllm_stand_in.py"

Make = Callable[..., str]


@pytest.fixture(autouse=True)
def a_cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("NLSOM_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("nlsom_serve.vllm.guard.GRACE", 1.0)
    yield
    left = state.servers()
    for server in left:
        os.killpg(server.pid, signal.SIGKILL)
    assert not left, "a test left servers behind"


@pytest.fixture
def vllm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "vllm"
    path.write_text(f"#!{sys.executable}\n{STAND_IN.read_text()}")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("NLSOM_VLLM", str(path))
    return path


@pytest.fixture
def make(tmp_path: Path, vllm: Path) -> Make:
    """Writes a profile; returns its path."""

    def write(name: str = "it", mode: str = "", **options: object) -> str:
        path = tmp_path / f"{name}.yaml"
        entry = {"vllm": {"model": "org/model"} | options, "nlsom": {"env": {"MODE": mode}}}
        path.write_text(json.dumps(entry))
        return str(path)

    return write


UP = (
    sys.executable,
    "-c",
    """import asyncio, sys
from nlsom_serve.vllm import up
print(asyncio.run(up([sys.argv[1]]))[0].model_dump_json())""",
)


async def gone(pids: list[int]) -> None:
    """Waits until processes are gone; the test's own limit is the only one."""
    while any(state.birth(pid) is not None for pid in pids):
        await asyncio.sleep(0.05)


async def test_a_server_answers_inside_its_block_and_no_process_of_it_lives_after(make: Make):
    stages: list[str] = []
    async with serving([make()], progress=lambda p: stages.append(p.stage)) as (server,):
        pids = server.pids
        assert len(pids) == 3, "the guard, the server and its worker"
        assert (await find("it")).url == server.url
    assert [pid for pid in pids if state.birth(pid) is not None] == []
    assert stages[0] == "starting"
    assert stages[-1] == "serving"
    assert await status() == ()


async def test_a_detached_server_is_known_to_others_and_stopped_by_name(make: Make):
    (server,) = await up([make()])
    assert server.detached
    (same,) = await up([make()])
    assert same == server, "up again is no new server"
    assert await down(["it"]) == (server,)
    assert server.pids == []
    with pytest.raises(UsageError, match=r"no server 'it' is running \(running: none\)"):
        await down(["it"])


async def test_status_tells_rates_from_two_readings(make: Make):
    async with serving([make()]):
        (seen,) = await status(interval=0.2)
    assert seen.state == "serving"
    assert seen.metrics is not None
    assert seen.metrics.running == 2
    assert seen.generation_rate is not None
    assert seen.generation_rate > 0


async def test_a_server_that_ends_while_starting_gives_its_logs_reason(make: Make):
    with pytest.raises(
        ModelUnavailable, match=r"it ended: ValueError: head_dim 7 is odd\n  its log: .*it\.log"
    ):
        await up([make(mode="broken")])
    assert [line async for line in logs("it")][-1].endswith("See root cause above.")


async def test_a_server_that_never_answers_is_given_up_and_stopped(make: Make):
    with pytest.raises(
        ModelUnavailable, match=r"it was not ready within 1 s; its last stage: loading weights"
    ):
        await up([make(mode="silent")], patience=1)


async def test_a_failure_takes_down_what_the_same_call_started_and_nothing_else(make: Make):
    await up([make("old")])
    with pytest.raises(ModelUnavailable, match="new ended"):
        await up([make("old"), make("first"), make("new", mode="broken")])
    assert [server.name for server in state.servers()] == ["old"]
    await down()


async def test_cancelling_a_start_leaves_nothing(make: Make):
    task = asyncio.create_task(up([make(mode="silent")]))
    while not state.servers():
        await asyncio.sleep(0.05)
    (server,) = state.servers()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert server.pids == []


async def test_the_end_of_a_server_is_noticed_and_its_worker_goes_with_it(make: Make):
    async with serving([make()]) as (server,):
        pids = server.pids
        reader, writer = await asyncio.open_connection("127.0.0.1", int(server.url.rpartition(":")[2]))
        writer.write(b"GET /end HTTP/1.0\r\n\r\n")
        await reader.read()
        writer.close()
        await writer.wait_closed()
        assert await first_end([server]) == server
    await gone(pids)


KEEPER = """
import asyncio, sys
from nlsom_serve.vllm import guard, serving
guard.GRACE = 1.0
async def main():
    async with serving([sys.argv[1]]) as servers:
        print(servers[0].model_dump_json(), flush=True)
        await asyncio.sleep(60)
asyncio.run(main())
"""


@pytest.mark.parametrize("mode", ["", "strays"])
async def test_killing_the_process_that_asked_ends_every_process_of_the_server(make: Make, mode: str):
    with subprocess.Popen([sys.executable, "-c", KEEPER, make(mode=mode)], stdout=subprocess.PIPE) as keeper:
        assert keeper.stdout is not None
        server = Server.model_validate_json(await asyncio.to_thread(keeper.stdout.readline))
        pids = server.pids
        strays = [pid for pid in all_pids() if command_of(pid) == ["sleep", "61"]]
        assert len(strays) == (mode == "strays")
        keeper.kill()
    await gone(pids + strays)


def all_pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def command_of(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0")[:-1]
    except (FileNotFoundError, ProcessLookupError):
        return []


async def test_a_server_that_cannot_fit_is_refused_with_the_arithmetic(tmp_path: Path, vllm: Path):
    shape = {"parameters": 1e9, "layers": 16, "kv_heads": 8, "head_dim": 64, "context": 4096}
    facts = {"device": "cpu", "shape": shape, "env": {"VLLM_CPU_KVCACHE_SPACE": "100000"}}
    path = tmp_path / "huge.yaml"
    path.write_text(json.dumps({"vllm": {"model": "org/model"}, "nlsom": facts}))
    with pytest.raises(
        ModelUnavailable, match=r"huge needs .* GiB, of which .* GiB are free\n  weights   1\.00 B"
    ):
        await up([str(path)])
    assert state.servers() == []


async def test_a_port_in_use_is_told_before_anything_starts(make: Make):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(UsageError, match=rf"port {port} is in use on 127\.0\.0\.1: stop what listens"):
            await up([make(port=port)])


def test_a_port_that_a_server_is_about_to_listen_on_is_not_free():
    with ports.reserve("127.0.0.1", 0) as kept:
        port = kept.getsockname()[1]
        assert not ports.is_free("127.0.0.1", port)
        with pytest.raises(UsageError, match=f"port {port} is in use"):
            ports.reserve("127.0.0.1", port)
        with socket.create_server(("127.0.0.1", port)) as server:
            assert server.getsockname()[1] == port, "the server itself can take it"
    assert ports.is_free("127.0.0.1", port)


def test_a_port_with_connections_that_are_over_is_free():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as client:
            accepted, _ = server.accept()
            accepted.close()
            assert client.recv(1) == b""
    assert ports.is_free("127.0.0.1", port, lingering=True)


def test_a_stranger_that_listens_on_the_port_is_not_taken_for_the_server():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert ports.listens(port, [os.getpid()])
        assert not ports.listens(port, [os.getppid()])
    assert not ports.listens(port, [os.getpid()])


async def test_servers_that_are_starting_do_not_get_the_same_port(make: Make):
    async def started(name: str) -> Server:
        task = asyncio.create_task(up([make(name, mode="silent")]))
        try:
            while not any(server.name == name for server in state.servers()):
                await asyncio.sleep(0.02)
            return next(server for server in state.servers() if server.name == name)
        finally:
            starts.append(task)

    starts: list[asyncio.Task[tuple[Server, ...]]] = []
    one, two = await started("one"), await started("two")
    assert one.url != two.url
    for task in starts:
        task.cancel()
    await asyncio.gather(*starts, return_exceptions=True)


async def test_one_name_started_twice_at_once_is_one_server(make: Make):
    path = make()
    ups = [await asyncio.create_subprocess_exec(*UP, path, stdout=asyncio.subprocess.PIPE) for _ in range(4)]
    told = [(await process.communicate())[0] for process in ups]
    assert len({Server.model_validate_json(line).pid for line in told}) == 1
    assert len(state.servers()) == 1
    await down()


async def test_names_started_at_once_get_ports_of_their_own(make: Make):
    started = await asyncio.gather(*(up([make(name)]) for name in ("a", "b", "c")))
    assert len({server.url for (server,) in started}) == 3
    await down()


async def test_whoever_keeps_others_from_starting_is_named():
    async with state.alone():
        with pytest.raises(ModelUnavailable, match=f"process {os.getpid()} has been starting a server for 0"):
            async with state.alone(patience=0):
                pass
    async with state.alone(patience=0):
        pass


async def test_servers_of_one_call_get_ports_of_their_own(make: Make):
    path = make()
    one, two = await prepared([f"a={path}", f"b={path}"])
    assert one.url != two.url
    assert not one.config_path.exists(), "a dry run writes nothing"


async def test_the_same_name_twice_is_refused(make: Make):
    with pytest.raises(UsageError, match="named twice: it"):
        await prepared([make(), make()])


async def test_a_name_that_is_up_with_another_configuration_is_refused(make: Make):
    await up([make()])
    with pytest.raises(
        UsageError, match="it is running with another configuration: nlsom models down it first"
    ):
        await up([make(**{"max-model-len": 99})])
    await down()


async def test_a_missing_model_folder_is_told_before_anything_starts(make: Make, tmp_path: Path):
    with pytest.raises(UsageError, match=f"it: no model at {tmp_path}/nowhere"):
        await up([make(model=f"{tmp_path}/nowhere")])


async def test_no_vllm_says_how_to_get_one(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("NLSOM_VLLM", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(ModelUnavailable, match=r"vLLM is not installed.*python -m venv"):
        await up(["small-vlm"])
    (launch,) = await prepared(["small-vlm"])
    assert launch.command[:2] == ("vllm", "serve"), "what it would run can be seen all the same"


async def test_what_was_named_as_vllm_has_to_be_one(tmp_path: Path):
    with pytest.raises(UsageError, match=r"--vllm: .* is neither a virtual environment nor a Python"):
        await find_vllm(str(tmp_path))
    with pytest.raises(ModelUnavailable, match=r"no vLLM in .*: .* -m pip install vllm"):
        await find_vllm(sys.executable)


async def test_a_society_that_names_a_server_that_is_not_up_learns_how_to_start_it():
    with pytest.raises(
        ModelUnavailable, match="the server 'small-vlm' is not running: nlsom models up small-vlm"
    ):
        await find("small-vlm")


async def test_logs_of_an_unknown_server_are_an_error():
    with pytest.raises(UsageError, match="no log of 'nobody'"):
        async for _ in logs("nobody"):
            pass


def test_a_state_file_of_another_process_with_the_same_pid_is_stale():
    assert state.birth(os.getpid()) is not None
    server = Server(
        name="it",
        model="m",
        url="http://127.0.0.1:1",
        pid=os.getpid(),
        born="another boot/1",
        since=time.time(),
        log="",
        detached=True,
        config="",
        facts=Facts(),
    )
    state.write(server)
    assert state.servers() == []
    assert not state.path_of("it").exists()


async def test_a_stale_state_file_stays_while_a_server_is_started_that_may_write_it_anew():
    state.folder().mkdir(parents=True)
    state.path_of("it").write_text("{half")
    async with state.alone():
        assert state.servers() == []
        assert state.path_of("it").exists()
    assert state.servers() == []
    assert not state.path_of("it").exists()


def test_a_state_file_that_cannot_be_read_is_removed():
    state.folder().mkdir(parents=True)
    state.path_of("it").write_text("{half")
    assert state.servers() == []
    assert not state.path_of("it").exists()


def test_a_name_cannot_leave_the_folder_of_state_files():
    with pytest.raises(UsageError, match="is no valid name of a server"):
        state.path_of("../../etc/passwd")


def test_a_session_that_is_over_has_no_processes():
    process = subprocess.Popen(["sleep", "60"], start_new_session=True)
    assert session_of(process.pid) == [process.pid]
    process.kill()
    process.wait()
    assert session_of(process.pid) == []


def test_the_least_of_the_visible_gpus_counts():
    said = "20480, 24576\n1024, 81920\n40960, 49152\n"
    assert read_gpus(said, "") == (1.0, 24.0)
    assert read_gpus(said, "0,2") == (20.0, 24.0)
    assert read_gpus("", "") == (None, None)


async def test_a_server_that_cannot_be_written_down_is_not_left_running(make: Make, monkeypatch):
    begun: list[Server] = []

    def full(server: Server) -> None:
        begun.append(server)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("nlsom_serve.vllm.state.write", full)
    with pytest.raises(OSError, match="No space left"):
        await up([make()], patience=20)
    (server,) = begun
    assert not session_of(server.pid)


def test_programs_read_what_came_up_and_what_went_down(make: Make):
    def models(*words: str) -> object:
        command = [sys.executable, "-m", "nlsom_serve", "models", *words, "--json"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    try:
        came_up = models("up", make(), "--detach")
        assert [(one["name"], one["model"], one["detached"]) for one in came_up] == [
            ("it", "org/model", True)
        ]
        assert [one["server"]["url"] for one in models("status")] == [one["url"] for one in came_up]
    finally:
        assert models("down") == ["it"]
