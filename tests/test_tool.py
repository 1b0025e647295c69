from __future__ import annotations

from importlib.metadata import EntryPoint

import pytest

from nlsom import plugins
from nlsom.errors import PluginError, UsageError
from nlsom.message import Data, Said
from nlsom.testing.turns import make_message, make_turn
from nlsom.tool import asked, effects, has_effects
from nlsom.turn import Turn
from nlsom_agents.tool import Tool


async def words(turn: Turn) -> str:
    return asked(turn).upper()


async def value(turn: Turn) -> dict[str, int]:
    return {"letters": len(turn.task.question)}


@effects
async def pay(turn: Turn) -> Said | None:
    return Said.words("paid " + turn.key[:4]) if turn.heard else None


def not_async(turn: Turn) -> str:
    return "no"


@pytest.fixture(autouse=True)
def _installed(monkeypatch: pytest.MonkeyPatch) -> None:
    points = {
        name: EntryPoint(name, f"{__name__}:{name}", "nlsom.tools")
        for name in ("words", "value", "pay", "not_async")
    }
    monkeypatch.setattr(plugins, "installed", lambda group: points if group == "tools" else {})
    monkeypatch.setattr(EntryPoint, "load", lambda self: globals()[self.name])


async def test_it_says_the_words_that_the_function_returns() -> None:
    agent = Tool(tool="words")
    said = await agent.speak(make_turn("so?", heard=[make_message("yes")]))
    assert said is not None
    assert said.text == "YES"
    assert not has_effects(agent)
    assert "words" in agent.identity


async def test_a_value_is_told_as_json_and_kept_as_data() -> None:
    said = await Tool(tool="value").speak(make_turn("four"))
    assert said is not None
    assert said.text == '{"letters": 4}'
    assert said.parts[1] == Data(value={"letters": 4})


async def test_effects_are_declared_by_the_function() -> None:
    agent = Tool(tool="pay")
    assert has_effects(agent)
    assert await agent.speak(make_turn("x")) is None


def test_a_tool_that_is_no_async_function_is_refused() -> None:
    with pytest.raises(UsageError, match="not an async function"):
        Tool(tool="not_async")


def test_an_unknown_tool_is_told() -> None:
    with pytest.raises(PluginError, match="did you mean 'words'"):
        Tool(tool="word")
