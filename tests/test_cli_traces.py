"""`nlsom traces`, as a user types it."""

from __future__ import annotations

import json
import os
import sqlite3

import pytest
from typer.testing import CliRunner

from nlsom.errors import TraceError, UsageError
from nlsom_serve.cli import app

SOCIETY = """
name: panel
members:
  ann: {agent: script, says: [cat, dog]}
  bob: {agent: script, says: cat}
  cy: {agent: script, says: dog}
mindstorm:
  - {ask: everyone, prompt: {text: Answer.}, as: answer}
  - {ask: everyone, prompt: {text: Vote.}, as: ballot, form: answer}
"""


@pytest.fixture
def nlsom(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "panel.yaml").write_text(SOCIETY)

    def run(*words, code=0):
        told = CliRunner().invoke(app, [*words], catch_exceptions=True)
        if told.exception is not None and not isinstance(told.exception, SystemExit):
            raise told.exception
        assert told.exit_code == code, told.output
        return told.stdout

    run("ask", "panel.yaml", "What?", "--choices", "cat,dog", "--trace", "run.sqlite", "-q")
    run("ask", "panel.yaml", "And?", "--choices", "cat,dog", "--trace", "run.sqlite", "-q", "--seed", "1")
    return run


def listed(nlsom):
    return json.loads(nlsom("traces", "list", "run.sqlite", "--json"))


def test_list_shows_question_and_answer(nlsom):
    rows = listed(nlsom)
    assert [(row["question"], row["answer"], row["replied"]) for row in rows] == [
        ("What?", "cat", 6),
        ("And?", "cat", 6),
    ]
    assert "And?" in nlsom("traces", "list", "run.sqlite")


def test_show_tells_every_record(nlsom):
    id = listed(nlsom)[0]["mindstorm"]
    records = json.loads(nlsom("traces", "show", "run.sqlite", id[:6], "--json"))[1:]
    assert [one["kind"] for one in records] == ["replied"] * 6 + ["verdict"]
    assert nlsom("traces", "show", "run.sqlite", id).count("replied") == 6


def test_export_prints_json_lines_for_all_or_for_one(nlsom):
    every = [json.loads(line) for line in nlsom("traces", "export", "run.sqlite").splitlines()]
    assert len(every) == 2 * 8
    id = every[0]["mindstorm"]
    one = [json.loads(line) for line in nlsom("traces", "export", "run.sqlite", id).splitlines()]
    assert one == every[:8]


def test_prune_drops_what_it_is_told_to_and_nothing_on_a_dry_run(nlsom):
    with pytest.raises(UsageError, match="say what to drop"):
        nlsom("traces", "prune", "run.sqlite")
    id = listed(nlsom)[0]["mindstorm"]
    assert "would drop 1" in nlsom("traces", "prune", "run.sqlite", id, "--dry-run")
    assert "would drop 0" in nlsom("traces", "prune", "run.sqlite", "--older-than", "1", "--dry-run")
    assert len(listed(nlsom)) == 2
    assert "dropped 1 mindstorm, 7 records" in nlsom("traces", "prune", "run.sqlite", id)
    assert [row["question"] for row in listed(nlsom)] == ["And?"]
    nlsom("traces", "prune", "run.sqlite", "--society", "panel", "--older-than", "0")
    assert listed(nlsom) == []


def test_prune_drops_the_pictures_that_nobody_speaks_of_unless_they_are_new(nlsom, tmp_path):
    def ask(*pictures):
        words = [word for one in pictures for word in ("--image", f"sample:{one}")]
        nlsom("ask", "panel.yaml", "Who?", "--choices", "cat,dog", "--trace", "run.sqlite", "-q", *words)

    def pictures():
        return {path.name for path in (tmp_path / "run.sqlite.media").glob("*/*")}

    ask("cat")
    (cat,) = pictures()
    ask("cat", "coffee")
    only_cat, both = [row["mindstorm"] for row in listed(nlsom)][-2:]
    assert "kept 1 added within the last day" in nlsom("traces", "prune", "run.sqlite", both)
    assert len(pictures()) == 2
    for path in (tmp_path / "run.sqlite.media").glob("*/*"):
        os.utime(path, (1e9, 1e9))
    nlsom("traces", "prune", "run.sqlite", "--older-than", "99")
    assert pictures() == {cat}, "one is still spoken of"
    ask("cat")  # Adding it again makes it young, also where the mindstorm is only replayed.
    told = json.loads(nlsom("traces", "prune", "run.sqlite", only_cat, "--json"))
    assert (told["pictures"], told["young_pictures"]) == (0, 1)
    assert pictures() == {cat}


def test_verify_says_what_is_damaged_and_fails(nlsom):
    assert "0 damaged" in nlsom("traces", "verify", "run.sqlite")
    with sqlite3.connect("run.sqlite") as forger:
        forger.execute("UPDATE records SET body = x'7b7d' WHERE seq = 9")
    forger.close()
    id = listed(nlsom)[1]["mindstorm"]
    told = json.loads(nlsom("traces", "verify", "run.sqlite", "--json", code=TraceError.exit_code))
    assert told == {"mindstorms": 2, "damaged": [id]}


@pytest.mark.parametrize("words", [["replay", "run.sqlite", "ID"], ["traces", "list", "run.sqlite"]])
def test_what_cannot_be_read_any_more_is_told_and_ends_in_no_traceback(nlsom, words):
    id = listed(nlsom)[0]["mindstorm"]
    with sqlite3.connect("run.sqlite") as forger:
        forger.execute("UPDATE records SET body = x'fffe'")
    forger.close()
    with pytest.raises(TraceError, match="traces verify"):
        nlsom(*[id if word == "ID" else word for word in words])


def test_a_file_that_is_not_there_is_said_and_not_made(nlsom, tmp_path):
    for command in (["list"], ["verify"], ["prune", "--older-than", "1"], ["export"]):
        with pytest.raises(TraceError, match="there is no such trace"):
            nlsom("traces", command[0], "none.sqlite", *command[1:])
    assert not (tmp_path / "none.sqlite").exists()


def test_no_age_below_nothing_drops_what_is_there(nlsom):
    nlsom("traces", "prune", "run.sqlite", "--older-than", "-5", code=2)
    assert len(listed(nlsom)) == 2


@pytest.mark.parametrize("named", ["", ".", "/"])
def test_what_can_be_no_file_is_refused_as_a_trace(nlsom, named):
    with pytest.raises(TraceError, match="is no file"):
        nlsom("ask", "panel.yaml", "What?", "--trace", named)
    with pytest.raises(TraceError, match="is no file"):
        nlsom("replay", named)
