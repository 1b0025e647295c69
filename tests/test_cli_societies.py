"""`nlsom societies plan`, `draw` and `show`, within this process."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from nlsom.config import load, shipped
from nlsom.errors import UsageError
from nlsom_serve.cli import app
from nlsom_societies.samples import sample


def nlsom(*arguments: str) -> str:
    done = CliRunner().invoke(app, ["societies", *arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_a_plan_counts_calls_and_pictures_and_names_the_longest_prompt() -> None:
    told = json.loads(
        nlsom(
            "plan", "vqa-democracy", "What animal is this?", "--image", str(sample("cat")), "--json",
            "--choices", "cat,dog", "--set", "models.vlm={scripted: 0}", "--set", "models.llm={scripted: 0}",
        )
    )  # fmt: skip
    assert [(one["phase"], one["asked"], one["calls"], one["pictures"]) for one in told["phases"]] == [
        ("caption", 3, 3, 3),
        ("answer", 6, 6, 3),
        ("ballot", 6, 6, 3),
    ]
    assert told["total"]["longest"] == max(one["longest"] for one in told["phases"])
    assert told["over"] == []


def test_a_plan_that_breaks_a_limit_says_so() -> None:
    assert "may exceed the society's limit of calls" in nlsom("plan", "gedi", "--set", "limits.calls=3")


def test_where_two_phases_share_a_label_show_and_plan_say_what_the_second_is_called(tmp_path: Path) -> None:
    vote = "  - {ask: mind, prompt: {text: Vote.}, as: ballot, form: answer}\n"
    file = tmp_path / "twice.yaml"
    file.write_text(
        "name: twice\nmembers: {mind: {agent: script, says: yes}}\nmindstorm:\n"
        + vote
        + vote
        + vote.replace("form", "name: last vote, form")
    )
    shown = nlsom("show", str(file))
    assert "as 'ballot', form" in shown
    assert "as 'ballot' (the phase 'ballot#2')" in shown
    assert "as 'ballot' (the phase 'last vote')" in shown
    noted = [line for line in nlsom("plan", str(file)).splitlines() if "another phase" in line]
    assert noted == ["ballot#2 is another phase with the label ballot; `name` renames it."]


@pytest.mark.parametrize("name", sorted(shipped()))
def test_every_phase_of_a_shipped_society_has_a_name_of_its_own(name: str) -> None:
    assert not [step.name for step in load(name).program.flat if "#" in step.name]


@pytest.mark.parametrize(("ending", "begins"), [("svg", b"<svg"), ("png", b"\x89PNG")])
def test_a_drawing_is_svg_or_png_by_its_ending(tmp_path: Path, ending: str, begins: bytes) -> None:
    to = tmp_path / f"society.{ending}"
    assert "6 members" in nlsom("draw", "vqa-monarchy", "-o", str(to))
    assert begins in to.read_bytes()[:60]


def test_a_drawing_of_another_kind_or_to_nowhere_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"FILE\.svg or FILE\.png"):
        nlsom("draw", "solo", "-o", str(tmp_path / "society.pdf"))
    with pytest.raises(UsageError, match="No such file"):
        nlsom("draw", "solo", "-o", str(tmp_path / "nowhere" / "society.svg"))


def test_whom_a_member_hears_is_told_by_role_where_that_is_shorter() -> None:
    rows = [line.split() for line in nlsom("show", "artist-critic").splitlines()]
    assert ["critic.1", "…", "critic.50", "critic", "chat", "every", "artist"] in rows
    assert ["artist.1", "…", "artist.78", "artist", "chat", "nobody"] in rows


def test_a_phase_with_its_own_structure_tells_who_hears_whom_in_it(tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    file.write_text(
        "name: own\n"
        "members: {a: {agent: script, says: x}, b: {agent: script, says: y}}\n"
        "mindstorm:\n"
        "  - {ask: everyone, prompt: {text: p}, as: one, wait: 1}\n"
        "  - {ask: everyone, prompt: {text: p}, as: two, structure: chain, order: random}\n"
    )
    told = nlsom("show", str(file))
    assert "as 'one', form text, until 1 replied" in told
    assert "as 'two', form text, random, in a structure of its own:" in told
    assert "  a hears nobody\n  b hears everyone" in told
