"""`nlsom bench`: sets, run, compare, report, from the command line."""

import json

import pytest
from bench import questions
from typer.testing import CliRunner

from nlsom.errors import UsageError
from nlsom_serve.cli import app

SOCIETY = """\
name: {name}
members:
  ann: {{agent: script, says: "{says}"}}
  bob: {{agent: script, says: "yes"}}
mindstorm:
  - {{ask: everyone, prompt: vote, as: ballot, form: answer}}
verdict: {{rule: plurality, tie_break: first}}
"""


@pytest.fixture
def given(tmp_path):
    """A set, two society files, and what a command needs of them."""
    questions(tmp_path / "set", 9, pictures=2)
    for name, says in (("nodders", "yes"), ("deniers", "no")):
        (tmp_path / f"{name}.yaml").write_text(SOCIETY.format(name=name, says=says), encoding="utf-8")
    return [
        "bench",
        "run",
        str(tmp_path / "nodders.yaml"),
        str(tmp_path / "deniers.yaml"),
        "--on",
        "folder",
        "--path",
        str(tmp_path / "set" / "set.csv"),
        "-o",
        str(tmp_path / "run"),
    ]


def invoke(*command):
    return CliRunner().invoke(app, [str(part) for part in command], catch_exceptions=False)


def test_sets_lists_every_set_and_says_which_layouts_were_read():
    told = json.loads(invoke("bench", "sets", "--json").stdout)
    tried = {one["name"] for one in told if one["tried"]}
    assert {"vqav2", "aokvqa", "textvqa", "pope", "coco-captions", "easy-vqa", "folder"} <= tried
    assert {"mmmu", "gqa", "docvqa"} <= {one["name"] for one in told} - tried
    assert "METEOR" in invoke("bench", "sets").stdout


def test_a_sample_that_fails_is_told_once(given, tmp_path):
    (tmp_path / "one.csv").write_text("image,question,answer\nnone.jpg,Well?,yes\n", encoding="utf-8")
    given[given.index("--path") + 1] = str(tmp_path / "one.csv")
    told = invoke(*given).stderr
    assert told.count("sample 1: MediaError") == 2  # one a society


def test_run_prints_both_columns_and_the_shares(given):
    told = json.loads(invoke(*given, "--json").stdout)
    assert [one["society"] for one in told] == ["nodders", "deniers"]
    assert told[0]["figures"]["answer"] == {"official": pytest.approx(6 / 9), "lenient": pytest.approx(6 / 9)}
    assert (told[0]["samples"], told[0]["unparsable"], told[0]["failed"]) == (9, 0.0, [])


@pytest.mark.parametrize("command", ["run", "compare"])
def test_tables_fit_a_terminal_of_80_columns(command, given, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    ran = invoke(*given)
    shown = (ran if command == "run" else invoke("bench", command, given[-1])).stdout
    assert ("abstain fail tokens calls" if command == "run" else "p (Holm) per 1,000") in shown
    assert "…" not in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_run_shows_a_bar_and_a_table(given):
    result = invoke(*given)
    assert result.exit_code == 0
    assert "nodders" in result.stdout
    assert "9/9" in result.stderr


def test_compare_and_report_take_the_run(given, tmp_path):
    invoke(*given)
    (found,) = json.loads(invoke("bench", "compare", tmp_path / "run", "--json").stdout)
    assert (found["one"], found["other"], found["samples"]) == ("deniers", "nodders", 9)
    assert found["interval"][0] <= found["gain"] <= found["interval"][1]
    assert invoke("bench", "compare", tmp_path / "run").exit_code == 0
    assert invoke("bench", "report", tmp_path / "run", "-o", tmp_path / "report.html").exit_code == 0
    assert (tmp_path / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert "| nodders | folder | 9 |" in invoke("bench", "report", tmp_path / "run", "--markdown").stdout
    assert invoke("bench", "report", tmp_path / "run", "--csv").stdout.count("\n") == 19


def test_a_page_needs_a_file(given, tmp_path):
    invoke(*given)
    assert invoke("bench", "report", tmp_path / "run").exit_code == 2


@pytest.mark.parametrize("budget", ["5000", "calls=3", "tokens=many", "tokens=0"])
def test_a_budget_that_cannot_be_read_says_how_to_write_it(given, budget):
    with pytest.raises(UsageError, match="tokens=N"):
        invoke(*given, "--budget", budget)


def test_an_unknown_set_is_refused_with_what_was_meant(given):
    given[given.index("folder")] = "foldr"
    with pytest.raises(UsageError, match="did you mean 'folder'"):
        invoke(*given)


def test_structures_and_baseline_of_members_without_a_model_are_refused(given, tmp_path):
    for command in ("structures", "baseline"):
        with pytest.raises(UsageError, match="no member with a model"):
            invoke("bench", command, given[2], *given[4:])


MINDS = """\
name: minds
models: {llm: {scripted: 1}}
members:
  ann: {agent: chat, model: llm, role: expert}
  bob: {agent: chat, model: llm, role: expert}
  eve: {agent: chat, model: llm, role: expert, persona: A doubter.}
mindstorm:
  - {ask: everyone, prompt: vote, as: ballot, form: answer}
verdict: {rule: plurality, tie_break: first}
"""


@pytest.fixture
def minds(tmp_path):
    questions(tmp_path / "set", 6)
    (tmp_path / "minds.yaml").write_text(MINDS, encoding="utf-8")
    where = ["--on", "folder", "--path", str(tmp_path / "set" / "set.csv"), "-o", str(tmp_path / "run")]
    return [str(tmp_path / "minds.yaml"), *where]


def test_baseline_and_structures_print_what_programs_read(minds):
    told = json.loads(invoke("bench", "baseline", *minds, "--most", 3, "--json").stdout)
    assert told["society"]["society"] == "minds"
    assert {one["society"] for one in told["members"]} == {"alone:ann", "alone:eve"}
    assert told["oracle"]["interval"][0] <= told["oracle"]["lenient"] <= told["oracle"]["interval"][1]
    assert {one["other"] for one in told["comparisons"]} >= {"single"}
    minds[-1] += "-structures"
    rows = json.loads(invoke("bench", "structures", *minds, "--most", 3, "--json").stdout)
    assert rows[0]["society"] == "single"
    assert {row["equal_cost_vote"]["society"].partition("@")[0] for row in rows} == {"vote"}


@pytest.mark.parametrize("command", ["run", "baseline", "structures"])
def test_every_command_that_runs_takes_the_same_options(command, minds):
    given = [
        "--budget",
        "tokens=90000",
        "--retry-failed",
        "--set",
        "limits.tokens=4000",
        "--seeds",
        1,
        "-j",
        2,
    ]
    told = invoke("bench", command, *minds, *given, "--limit", 2, "--sample-seed", 0, "--json")
    assert told.exit_code == 0
    with pytest.raises(UsageError, match="--model llm: write NAME=URL"):
        invoke("bench", command, *minds, "--model", "llm")
    with pytest.raises(UsageError, match="tokens=N"):
        invoke("bench", command, *minds, "--budget", "5")


@pytest.mark.parametrize("command", ["baseline", "structures"])
def test_a_budget_that_ends_before_the_rivals_are_run_says_how_to_go_on(command, minds):
    with pytest.raises(UsageError, match="with a larger --budget to resume it"):
        invoke("bench", command, *minds, "--budget", "tokens=1", "-j", 1)


def test_a_declaration_is_told_with_its_columns():
    told = {one["name"]: one for one in json.loads(invoke("bench", "sets", "--json").stdout)}
    assert told["mmbench"]["columns"]["choices"] == "A B C D"
    assert told["pope"]["hub"] == {"dataset": "lmms-lab/POPE", "files": "data/test-*"}
    assert (told["tara"]["task"], told["tara"]["scorer"], told["tara"]["tried"]) == ("caption", "tara", False)
