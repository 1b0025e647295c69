from __future__ import annotations

from pathlib import Path

import pytest

from nlsom.config import load
from nlsom.errors import ConfigError
from nlsom.message import Data, Said
from nlsom.society import Society
from nlsom.trace import MemoryTrace

INNER = """
name: inner
models: {llm: {scripted: 1}}
members:
  voter: {agent: chat, model: llm, count: 3}
  shy: {agent: script, says: {other: x}}
mindstorm:
  - {ask: everyone, prompt: give_answer, as: ballot, form: answer}
verdict: {rule: plurality, tie_break: first}
"""
OUTER = """
name: outer
models: {llm: {scripted: 2}}
members:
  panel: {agent: society, society: inner.yaml, role: voter}
  one: {agent: chat, model: llm, role: voter}
mindstorm:
  - {ask: voter, prompt: give_answer, as: ballot, form: answer}
verdict: {rule: plurality, tie_break: first}
"""


@pytest.fixture
def outer(tmp_path: Path) -> Path:
    (tmp_path / "inner.yaml").write_text(INNER)
    (tmp_path / "outer.yaml").write_text(OUTER)
    return tmp_path / "outer.yaml"


async def test_who_abstained_within_stands_in_the_verdict_with_the_cause_also_in_a_replay(
    outer: Path,
) -> None:
    trace = MemoryTrace()
    async with load(outer, trace=trace) as society:
        verdict = await society.ask("Cat or dog?", choices=["cat", "dog"])
        again = await society.ask("Cat or dog?", choices=["cat", "dog"])
    assert [(one.member, one.cause) for one in verdict.abstained] == [("panel/shy", "nothing to say")]
    assert again.abstained == verdict.abstained
    assert again.usage.calls == 0


async def said_by_panel(society: Society, trace: MemoryTrace) -> Said:
    async for header in trace.mindstorms():
        async for record in trace.records(header.mindstorm):
            if record.kind == "replied" and record.member == "panel":
                return Said.model_validate_json(record.body)
    raise AssertionError(f"{society.name}: the panel said nothing")


async def test_a_society_votes_as_a_member_and_tells_usage_and_abstentions_up(outer: Path) -> None:
    trace = MemoryTrace()
    society = load(outer, trace=trace)
    async with society:
        verdict = await society.ask("Cat or dog?", choices=["cat", "dog"])
    assert verdict.usage.calls == 3 + 1
    assert sum(verdict.tally.values()) == 2
    said = await said_by_panel(society, trace)
    assert said.answer in ("cat", "dog")
    assert said.ballot is not None
    assert isinstance(said.parts[1], Data)
    told = said.parts[1].value
    assert isinstance(told, dict)
    assert told["society"] == "inner"
    assert told["abstained"] == [{"member": "shy", "phase": "ballot", "round": 1, "cause": "nothing to say"}]


async def test_it_draws_on_the_budget_of_its_parent(outer: Path) -> None:
    trace = MemoryTrace()
    society = load(outer, overrides=["limits.calls=2"], trace=trace)
    async with society:
        verdict = await society.ask("Cat or dog?", choices=["cat", "dog"])
    assert verdict.usage.calls == 2
    said = await said_by_panel(society, trace)
    assert isinstance(said.parts[1], Data)
    assert isinstance(said.parts[1].value, dict)
    assert said.parts[1].value["cut_short"] == "calls"


async def test_its_own_budget_holds_too(outer: Path) -> None:
    (outer.parent / "inner.yaml").write_text(INNER + "limits: {calls: 1}\n")
    trace = MemoryTrace()
    society = load(outer, trace=trace)
    async with society:
        verdict = await society.ask("Cat or dog?", choices=["cat", "dog"])
    assert verdict.usage.calls == 2
    said = await said_by_panel(society, trace)
    assert isinstance(said.parts[1], Data)
    assert isinstance(said.parts[1].value, dict)
    assert said.parts[1].value["cut_short"] == "calls"


def test_a_society_that_is_a_member_of_itself_is_told_at_load(outer: Path) -> None:
    (outer.parent / "inner.yaml").write_text(OUTER.replace("inner.yaml", "outer.yaml"))
    with pytest.raises(ConfigError, match="member of itself.*outer.yaml.*inner.yaml.*outer.yaml"):
        load(outer)


def test_faults_of_the_inner_file_are_told_with_their_place(outer: Path) -> None:
    (outer.parent / "inner.yaml").write_text(INNER.replace("plurality", "pluralty"))
    with pytest.raises(ConfigError, match=r"inner\.yaml:\d+:\d+: .*did you mean 'plurality'"):
        load(outer)


async def test_another_inner_society_is_another_identity(outer: Path) -> None:
    first = load(outer)
    (outer.parent / "inner.yaml").write_text(INNER.replace("count: 3", "count: 4"))
    second = load(outer)
    async with first, second:
        assert first.program.digest != second.program.digest
