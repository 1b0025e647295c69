"""What if a member had been absent, another rule had counted, or there had been fewer rounds."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from nlsom.config import load
from nlsom.counterfactual import vary
from nlsom.errors import ConfigError, UsageError
from nlsom.testing.agents import Saying, panel
from nlsom.trace import MemoryTrace, SqliteTrace
from nlsom_serve.cli import app

SOCIETY = """
name: panel
members:
  ann: {agent: script, says: {intro: hello, answer: [cat, dog], ballot: cat}}
  bob: {agent: script, says: {intro: hello, answer: [cat, cat], ballot: dog}}
  cy: {agent: script, says: {intro: hello, answer: dog, ballot: dog}, role: judge}
mindstorm:
  - {ask: everyone, prompt: say, as: intro, hears: {scope: none}}
  - repeat: 2
    phases:
      - {ask: everyone, prompt: {text: Answer.}, as: answer, hears: {label: answer, scope: latest}}
  - {ask: everyone, prompt: {text: Vote.}, as: ballot, form: answer, hears: {scope: none}}
verdict: {of: judge, rule: decree}
"""


@pytest.fixture
def nlsom(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "say.md").write_text("Say who you are.")
    (tmp_path / "society.yaml").write_text(SOCIETY)

    def run(*words, code=0):
        told = CliRunner().invoke(app, [*words])
        if told.exception is not None and not isinstance(told.exception, SystemExit):
            raise told.exception
        assert told.exit_code == code, told.output
        return told.stdout

    run("ask", "./society.yaml", "What?", "--choices", "cat,dog", "--trace", "run.sqlite", "-q")
    # The trace holds all that is needed: neither the file nor its prompts are read again.
    (tmp_path / "prompts" / "say.md").unlink()
    (tmp_path / "society.yaml").unlink()
    return run


def test_the_only_mindstorm_of_a_trace_is_shown_without_its_id(nlsom):
    (one,) = json.loads(nlsom("traces", "list", "run.sqlite", "--json"))
    assert nlsom("traces", "show", "run.sqlite") == nlsom("traces", "show", "run.sqlite", one["mindstorm"])


def test_another_rule_asks_nobody(nlsom):
    told = json.loads(nlsom("replay", "run.sqlite", "--rule", "borda", "--json"))
    assert told["recorded"]["answer"] == "dog"
    assert told["what_if"]["rule"] == "borda"
    assert told["missing"] == []
    assert "nobody had to be asked" in nlsom("replay", "run.sqlite", "--rule", "borda")


def test_the_recorded_verdict_stands_beside_that_of_the_what_if_each_with_its_name(nlsom):
    told = nlsom("replay", "run.sqlite", "--without", "cy", "--rounds", "1", code=3)
    recorded, changed = told.split("What if: without cy, with 1 round at most")
    assert recorded.split() == ["The", "recorded", "verdict", "dog", "decree:", "dog", "1"]
    assert "no verdict: nobody" in changed
    told = json.loads(nlsom("replay", "run.sqlite", "--rule", "borda", "--json"))
    assert told["change"] == {"without": [], "rule": "borda", "rounds": None}
    assert (told["recorded"]["rule"], told["what_if"]["rule"]) == ("decree", "borda")


def test_fewer_rounds_ask_nobody_where_nothing_later_hears_them(nlsom):
    told = json.loads(nlsom("replay", "run.sqlite", "--rounds", "1", "--json"))
    assert told["what_if"]["rounds"] == 3
    assert told["missing"] == []


def test_an_absent_member_changes_only_what_others_heard_of_it(nlsom):
    told = json.loads(nlsom("replay", "run.sqlite", "--without", "ann", "--json", code=3))
    assert told["what_if"] is None
    assert [(one["member"], one["phase"], one["round"]) for one in told["missing"]] == [
        ("bob", "answer", 2),
        ("cy", "answer", 2),
    ], "the first round heard nobody: its replies stay"
    assert told["later_at_most"] == 2, "the ballots, which in truth hear nobody"
    assert "bob, cy" in nlsom("replay", "run.sqlite", "--without", "ann", code=3)


def test_call_asks_what_is_missing_once_and_keeps_it(nlsom):
    told = json.loads(nlsom("replay", "run.sqlite", "--without", "ann", "--call", "--json"))
    assert told["what_if"]["answer"] == "dog"
    assert told["asked"] == 2
    id = told["recorded"]["mindstorm"]
    again = json.loads(nlsom("replay", "run.sqlite", id, "--without", "ann", "--json"))
    assert again["what_if"]["answer"] == "dog", "now it is known"
    assert again["missing"] == []
    assert len(json.loads(nlsom("traces", "list", "run.sqlite", "--json"))) == 2


def test_without_the_one_who_decides_nothing_is_decided(nlsom):
    told = json.loads(nlsom("replay", "run.sqlite", "--without", "cy", "--rounds", "1", "--json", code=3))
    assert told["missing"] == []
    assert told["what_if"]["answer"] is None


def test_a_change_that_cannot_be_made_is_said(nlsom):
    with pytest.raises(UsageError, match="no member is called 'anne'; there are ann, bob, cy"):
        nlsom("replay", "run.sqlite", "--without", "anne")
    with pytest.raises(UsageError, match="borda"):
        nlsom("replay", "run.sqlite", "--rule", "bord")
    with pytest.raises(UsageError, match="--call goes with"):
        nlsom("replay", "run.sqlite", "--call")


async def test_a_society_that_nlsom_would_build_otherwise_today_is_refused(tmp_path):
    mapping = {
        "name": "two",
        "members": {"ann": {"agent": "script", "says": "cat"}},
        "mindstorm": [{"ask": "ann", "prompt": {"text": "Answer."}, "as": "ballot"}],
    }
    async with SqliteTrace(tmp_path / "run.sqlite") as trace:
        async with load(mapping, trace=trace) as society:
            await society.ask("What?")
        (header,) = [one async for one in trace.mindstorms()]
    assert vary(header).program.names == ("ann",)
    with pytest.raises(UsageError, match="use the version that wrote it"):
        vary(header.model_copy(update={"digest": "0" * 64}))


async def test_a_society_made_in_python_is_said_not_to_be_held():
    trace = MemoryTrace()
    async with panel([Saying("yes")], trace=trace) as society:
        await society.ask("Is it?")
    (header,) = [one async for one in trace.mindstorms()]
    with pytest.raises(UsageError, match="made in Python"):
        vary(header)


async def test_a_member_that_failed_is_not_asked_again_by_a_what_if(tmp_path):
    mapping = {
        "name": "two",
        "members": {
            "ann": {"agent": "script", "says": "cat"},
            "bob": {"agent": "script", "says": {"other": "x"}},
        },
        "mindstorm": [{"ask": "everyone", "prompt": {"text": "Vote."}, "as": "ballot", "form": "answer"}],
    }
    path = tmp_path / "run.sqlite"
    async with SqliteTrace(path) as trace, load(mapping, trace=trace) as society:
        verdict = await society.ask("What?", choices=["cat", "dog"])
    assert [one.member for one in verdict.abstained] == ["bob"]

    def run() -> str:
        return CliRunner().invoke(app, ["replay", str(path), "--rule", "borda", "--json"]).stdout

    import asyncio

    told = json.loads(await asyncio.to_thread(run))
    assert told["missing"] == []
    assert [one["member"] for one in told["what_if"]["abstained"]] == ["bob"]


async def test_a_society_that_names_a_file_says_where_that_is_looked_for(tmp_path, monkeypatch):
    (tmp_path / "inner.yaml").write_text(
        "name: inner\nmembers: {a: {agent: script, says: x}}\nmindstorm: [{ask: a, prompt: {text: Say.}}]\n"
    )
    (tmp_path / "outer.yaml").write_text(
        "name: outer\nmembers: {a: {agent: society, society: inner.yaml}}\n"
        "mindstorm: [{ask: a, prompt: {text: Say.}}]\n"
    )
    trace = MemoryTrace()
    async with load(tmp_path / "outer.yaml", trace=trace) as society:
        await society.ask("What?")
    (header,) = [header async for header in trace.mindstorms() if header.society == "outer"]
    with pytest.raises(ConfigError, match="what its file names by a path is looked for from here"):
        vary(header, rule="borda")
    monkeypatch.chdir(tmp_path)
    assert vary(header, rule="borda").name == "outer"
