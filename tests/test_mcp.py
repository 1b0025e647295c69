from __future__ import annotations

import asyncio
import socket
import sys
from pathlib import Path

import pytest

from nlsom.errors import ExtraMissing, ModelError, ModelUnavailable, UsageError
from nlsom.message import Text
from nlsom.testing.turns import make_message, make_turn
from nlsom_agents.mcp import Mcp

SERVER = str(Path(__file__).parent / "data" / "mcp_server.py")
COMMAND = (sys.executable, SERVER)


async def test_a_tool_over_stdio_is_called_with_what_was_said_last() -> None:
    async with Mcp(tool="shout", command=COMMAND) as agent:
        said = await agent.speak(make_turn(heard=[make_message("one"), make_message("two")]))
        alone = await agent.speak(make_turn("what?"))
        assert not agent.effects
        assert "shout" in agent.identity
        assert SERVER not in agent.identity
    assert said is not None
    assert said.text == "TWO!"
    assert isinstance(said.parts[0], Text)
    assert alone is not None
    assert alone.text == "WHAT?!"


async def test_fixed_arguments_are_given_in_every_call() -> None:
    async with Mcp(tool="shout", command=COMMAND, argument="text", arguments={"mark": "?"}) as agent:
        said = await agent.speak(make_turn("so"))
    assert said is not None
    assert said.text == "SO?"


async def test_a_tool_that_fails_is_an_error_and_the_next_call_works() -> None:
    async with Mcp(tool="fail", command=COMMAND) as agent:
        assert agent.effects
        for _ in range(2):
            with pytest.raises(ModelError, match="failed.*cannot jump"):
                await agent.speak(make_turn("jump"))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"tool": "shot"}, "has no tool 'shot'; it has shout, fail, two"),
        ({"tool": "two"}, "say which `argument` takes the words: a, b"),
        ({"tool": "two", "argument": "c", "arguments": {"a": "1"}}, "has no argument 'c'"),
    ],
)
async def test_what_does_not_fit_the_server_is_told_when_it_is_opened(options: dict, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        async with Mcp(command=COMMAND, **options):
            pass


async def test_a_server_that_cannot_be_started_is_unavailable() -> None:
    with pytest.raises(ModelUnavailable, match="cannot be had"):
        async with Mcp(tool="shout", command=("/nonexistent-program",)):
            pass


async def test_a_server_that_never_answers_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nlsom_agents.mcp.STARTS", 0.2)
    with pytest.raises(ModelUnavailable, match="did not answer within 0.2 seconds"):
        async with Mcp(tool="x", command=(sys.executable, "-c", "import sys; sys.stdin.read()")):
            pass


async def test_what_a_server_prints_beside_the_protocol_is_told_in_a_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    code = f"print('Welcome!', flush=True); import runpy; runpy.run_path({SERVER!r}, run_name='__main__')"
    async with Mcp(tool="shout", command=(sys.executable, "-c", code)) as agent:
        assert await agent.speak(make_turn("so")) is not None
    (told,) = (record for record in caplog.records if record.name == "mcp.client.stdio")
    assert told.exc_info is None


async def test_without_the_sdk_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    with pytest.raises(ExtraMissing, match=r"nlsom\[mcp\]"):
        async with Mcp(tool="shout", command=COMMAND):
            pass


def test_command_or_url_has_to_be_given() -> None:
    with pytest.raises(UsageError, match="`command` or `url`"):
        Mcp(tool="shout")
    with pytest.raises(UsageError, match="`command` or `url`"):
        Mcp(tool="shout", command=("a",), url="http://127.0.0.1:1/mcp")


async def test_a_tool_over_http() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = await asyncio.create_subprocess_exec(
        sys.executable, SERVER, str(port), stderr=asyncio.subprocess.DEVNULL
    )
    try:
        while process.returncode is None:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.1)
            else:
                writer.close()
                await writer.wait_closed()
                break
        async with Mcp(tool="shout", url=f"http://127.0.0.1:{port}/mcp") as agent:
            said = await agent.speak(make_turn("hello"))
    finally:
        process.terminate()
        await process.wait()
    assert said is not None
    assert said.text == "HELLO!"
