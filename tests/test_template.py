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
        ("{% include 'x' %}", "a prompt has no include"),
        ("{% extends 'x' %}", "a prompt has no extends"),
        ("{% import label as x %}", "a prompt has no import"),
        ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "a prompt has no macro"),
        ("{{ round + 9 ** 999999999 }}", "line 1: a prompt has no pow"),
        ("{{ lipsum() }}", "'lipsum' is not defined"),
        ("{{ 'x' | center(10**9) }}", "a prompt has no pow"),
        ("{{ 'x' | center(1000000000) }}", "center"),
        ("{{ '%1000000000d' | format(1) }}", "format"),
        ("{{ [2, 1] | random }}", "random"),
        ("{% set a = [1] %}{% set b = [a, a] %}{{ b }}", "a list may not hold 'a'"),
        ("{% for a in members %}" * 30 + "{% endfor %}" * 30, "too deeply nested"),
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
        "{{ 'x'.center(10000000000) }}",
        "{{ 'x'.ljust(10000000000) }}",
        "{{ 'x'.zfill(10000000000) }}",
        "{{ 'x'.expandtabs(10000000000) }}",
        "{{ '{:>1000000000}'.format(1) }}",
        "{{ '%1000000000d' % 1 }}",
        "{{ 'x' * 10 }}",
        "{{ range(1000000000) | list }}",
        "{{ (label * 1000000).replace('x', 'y') }}",
        "{{ label" + " | replace('', label)" * 9 + " }}",
        "{{ (range(99999) | join('xxxxxxxxxxxxxxxxxxxx')) }}",
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
        "{% for a in range(9999) %}{{ range(999) | list }}{% endfor %}",
        "{% set x = 'xx' %}" + "{% set x = x ~ x %}" * 40,
        "{% set x = [1] %}" + "{% set x = x + x %}" * 40,
        "{% set x = 99 %}" + "{% set x = x * x %}" * 60,
    ],
)
def test_what_only_shows_when_it_is_rendered_is_a_plain_error(source):
    with pytest.raises(UsageError, match="inline prompt"):
        rendered(source)


def test_a_width_makes_no_text_before_it_is_counted():
    with pytest.raises(UsageError, match="'format' of 'str' object is unsafe"):
        rendered("{{ '{:>1000000000}'.format(1) }}")


def test_values_conditions_and_loops_are_all_there():
    source = """{% for name in members if name != member.name %}
    {{ loop.index }} of {{ loop.length }}: {{ name ~ '!' | upper }}{{ ' and no more' if loop.last }}
    {% else %}alone{% endfor %}
    {% set rest = task.choices | reject('eq', 'cat') | list %}
    {{ rest | join(', ', ) }} {{ 2 * 3 + 7 // 2 - 10 % 4 }} {{ task.extra.get('x', [1, round])[0] }}
    {{- task.describe() | replace('?', '!') }}"""
    assert rendered(source).split() == [
        "1",
        "of",
        "1:",
        "bob!",
        "and",
        "no",
        "more",
        "dog",
        "7",
        "1Question:",
        "What!",
    ]


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
