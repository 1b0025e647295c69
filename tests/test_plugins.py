"""Third-party plugins: found by entry point, imported when named; a broken one does not affect others."""

from __future__ import annotations

import json

import pytest

import nlsom
from nlsom import plugins
from nlsom.bench.scores import scorer
from nlsom.bench.sets import load_set, set_names
from nlsom.errors import ConfigError, ExtraMissing, PluginError

CODE = """
from dataclasses import dataclass
from nlsom.message import Said
from nlsom.task import VqaTask
from nlsom.verdict import Count

class Parrot:
    def __init__(self, *, word: str = "polly") -> None:
        self.word, self.identity = word, f"parrot/1 {word}"
    async def speak(self, turn):
        return Said.words(self.word)

@dataclass(frozen=True)
class Mindful:
    model: object
    async def speak(self, turn):
        return Said.words(self.model.text)

class Fixed:
    identity = "fixed/1"
    def __init__(self, text: str) -> None:
        self.text = text

class Riddle(VqaTask):
    kind = "riddle"

@dataclass(frozen=True)
class FirstWins:
    def __call__(self, votes, alternatives):
        names = [vote.ballot.choice for vote in votes if vote.ballot]
        return Count(winners=tuple(names[:1]), tally=dict.fromkeys(names, 1.0), cast=len(names))

from nlsom.bench.scores import Score
from nlsom.bench.scores.contract import PerSample
from nlsom.bench.sets import Files, Question, Spec

RIDDLES = Spec(
    name="riddles", about="Riddles.", scorer="strict", licence="yours", source="a friend",
    layouts=(Files("riddles.jsonl"),), convert=Question(id="key", ask="riddle", answers="answers[].text"),
)

def strict():
    def judge(said, sample):
        return Score(float(said == sample.answers[0]), 0.0, said, "as it is")
    return PerSample("strict", judge)

class Fussy:
    def __init__(self) -> None:
        raise KeyError("no such thing")

def counted():
    return 7
"""
POINTS = """
[nlsom.agents]
parrot = stranger:Parrot
mindful = stranger:Mindful
fussy = stranger:Fussy
broken = stranger_broken:Agent
leaving = stranger_leaving:Agent
absent = stranger_gone:Agent
extra = stranger_gone:Agent [birds]
wrong = stranger:NoSuchThing
number = stranger:CODE
[nlsom.models]
fixed = stranger:Fixed
[nlsom.tasks]
riddle = stranger:Riddle
notask = stranger:Parrot
[nlsom.rules]
first_wins = stranger:FirstWins
counted = stranger:counted
[nlsom.sets]
riddles = stranger:RIDDLES
noset = stranger:Parrot
[nlsom.scorers]
strict = stranger:strict
[nlsom.societies]
stranger = stranger_societies
"""


@pytest.fixture(autouse=True)
def _installed(tmp_path, monkeypatch):
    (tmp_path / "stranger.py").write_text(CODE + "\nCODE = 7\n")
    (tmp_path / "stranger_broken.py").write_text("1 / 0")
    (tmp_path / "stranger_leaving.py").write_text("raise SystemExit(9)")
    package = tmp_path / "stranger_societies"
    (package / "prompts").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "prompts" / "squawk.md").write_text("Squawk.")
    (package / "birds.yaml").write_text(
        "name: birds\ntask: riddle\nmembers: {a: {agent: parrot}}\nmindstorm: [{ask: a, prompt: squawk}]\n"
        "verdict: {rule: first_wins}\n"
    )
    info = tmp_path / "stranger-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: stranger\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(POINTS)
    (tmp_path / "odd-1.0.dist-info").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    plugins.installed.cache_clear()
    yield
    plugins.installed.cache_clear()


async def test_a_strangers_society_runs_with_its_agents_rules_tasks_and_prompts():
    async with nlsom.load("birds") as society:
        assert society.task.kind == "riddle"
        verdict = await society.ask("Who is it?")
    assert (verdict.answer, verdict.rule) == ("polly", "first_wins")


async def test_a_strangers_model_is_found_by_its_key():
    spec = {
        "name": "x",
        "models": {"llm": {"fixed": "hello"}},
        "members": {"a": {"agent": "mindful", "model": "llm"}},
        "mindstorm": [{"ask": "a", "prompt": {"text": "Go."}}],
    }
    async with nlsom.load(spec) as society:
        assert (await society.ask("What?")).answer == "hello"


@pytest.mark.parametrize(
    ("name", "error", "told"),
    [
        ("parot", PluginError, "did you mean 'parrot'"),
        ("broken", PluginError, "ZeroDivisionError"),
        ("leaving", PluginError, "SystemExit: 9"),
        ("absent", PluginError, "needs the module 'stranger_gone'"),
        ("extra", ExtraMissing, r"pip install 'nlsom\[birds\]'"),
        ("wrong", PluginError, "NoSuchThing"),
    ],
)
def test_what_is_wrong_with_a_plugin_is_told(name, error, told):
    with pytest.raises(error, match=told):
        plugins.load("agents", name)


@pytest.mark.parametrize("name", ["broken", "absent", "extra", "wrong", "fussy", "number"])
def test_a_broken_plugin_is_a_fault_of_the_file_that_names_it_and_of_no_other(name):
    def spec(agent):
        return {
            "name": "x",
            "members": {"a": {"agent": agent}},
            "mindstorm": [{"ask": "a", "prompt": {"text": "Go."}}],
        }

    with pytest.raises(ConfigError, match=r"members\.a|society"):
        nlsom.load(spec(name))
    assert nlsom.load(spec("parrot")).name == "x"


def test_a_task_that_is_none_is_told():
    spec = {
        "name": "x",
        "task": "notask",
        "members": {"a": {"agent": "parrot"}},
        "mindstorm": [{"ask": "a", "prompt": {"text": "Go."}}],
    }
    with pytest.raises(ConfigError, match="no subclass of nlsom.Task"):
        nlsom.load(spec)


def test_a_plugin_that_makes_no_rule_is_told():
    spec = {
        "name": "x",
        "members": {"a": {"agent": "parrot"}},
        "mindstorm": [{"ask": "a", "prompt": {"text": "Go."}}],
        "verdict": {"rule": "counted"},
    }
    with pytest.raises(ConfigError, match="'counted' .of rules. makes no rule, but 7"):
        nlsom.load(spec)


def test_nothing_is_imported_before_it_is_named():
    import sys

    sys.modules.pop("stranger", None)
    assert "parrot" in plugins.installed("agents")
    assert "stranger" not in sys.modules


def test_a_set_and_a_scorer_of_a_package_are_used_by_name(tmp_path):
    line = {"key": "r1", "riddle": "What has hands?", "image": "https://example.org/1.png"}
    (tmp_path / "riddles.jsonl").write_text(json.dumps(line | {"answers": [{"text": "a clock"}]}))
    (sample,) = load_set("riddles", tmp_path)
    assert (sample.id, sample.task.question, sample.answers) == ("r1", "What has hands?", ("a clock",))
    totals = scorer(load_set("riddles", tmp_path).spec.scorer).total(["a clock"], [sample])
    assert totals.figures["strict"].official == 1
    assert "riddles" in set_names()


def test_a_set_that_is_none_is_told():
    with pytest.raises(PluginError, match="'noset' .of sets. is type, not a Spec"):
        load_set("noset")
