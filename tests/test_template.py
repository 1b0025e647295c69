"""Prompts as templates: sandboxed, and checked before anything runs."""

from __future__ import annotations

import pytest

from nlsom.errors import UsageError
from nlsom.member import Member
from nlsom.task import VqaTask
from nlsom.template import Template, Templates


def rendered(source: str) -> str:
    task = VqaTask(question="What?", choices=("cat", "dog"))
    return Template.of(source).render(
        task=task, member=Member("ann", "critic"), members=("ann", "bob"), round=2, rounds=3, label="answer"
    )


def test_a_prompt_may_name_task_members_round_and_label():
    source = (
        "{{ task.question }} {{ member.name }} {{ members | join('+') }} {{ round }}/{{ rounds }} {{ label }}"
    )
    assert rendered(source) == "What? ann ann+bob 2/3 answer"


def test_a_prompt_that_names_the_member_is_rendered_for_each():
    assert Template.of("{{ member.role }}").personal
    assert not Template.of("{{ members }}").personal


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("{{ quesion }}", "'quesion' is not defined; a prompt may name label, member, members"),
        ("{{ member.nane }}", "a member has no 'nane'; it has id, name, persona, role"),
        ("{{ task.__class__ }}", "'__class__' is out of a prompt's reach"),
        ("{{ ''.__class__.__mro__ }}", "out of a prompt's reach"),
        ("{% include 'x' %}", "cannot include"),
        ("{% extends 'x' %}", "cannot include"),
        ("{% import label as x %}", "cannot include"),
        ("a\n{% if %}", "line 2"),
        ("{{ label | nosuch }}", "nosuch"),
        ("{{ " + "(" * 3000 + ")" * 3000 + " }}", "inline prompt"),
    ],
)
def test_what_is_wrong_is_told_before_anything_runs(source, told):
    with pytest.raises(UsageError, match=told):
        Template.of(source)


@pytest.mark.parametrize(
    "source",
    [
        "{{ 1 / 0 }}",
        "{{ members[9] }}",
        "{{ label + 1 }}",
        "{{ label.nosuch }}",
        "{{ label['__class__'] }}",
        "{{ label | attr('__class__') }}",
        "{{ '{0.__class__.__mro__}'.format(task) }}",
        "{{ member['__init__']['__globals__'] }}",
        "{{ members.append('x') }}",
        "{{ 'x' * 10**9 }}",
        "{{ 10**9 * [round] }}",
        "{{ round + 9 ** 999999999 }}",
        "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    ],
)
def test_what_only_shows_when_it_is_rendered_is_a_plain_error(source):
    with pytest.raises(UsageError, match="inline prompt"):
        rendered(source)


def test_the_folder_of_the_kind_comes_before_the_general_one(tmp_path):
    (tmp_path / "vqa").mkdir()
    (tmp_path / "vqa" / "answer.md").write_text("Special.\n")
    (tmp_path / "answer.md").write_text("General.")
    (tmp_path / "odd.md").write_bytes(b"\xff")
    templates = Templates([tmp_path / "none", tmp_path])
    assert templates.get("answer", "vqa").source == "Special.\n"
    assert templates.get("answer", "caption").source == "General."
    assert templates.names("vqa") == ["answer", "odd"]
    with pytest.raises(UsageError, match="did you mean 'answer'"):
        templates.get("anwser", "vqa")
    with pytest.raises(UsageError, match="there are answer, odd"):
        templates.get("zzz", "vqa")
    with pytest.raises(UsageError, match="no name of a prompt"):
        templates.get("../answer", "vqa")
    with pytest.raises(UsageError, match="not UTF-8"):
        templates.get("odd", "vqa")
