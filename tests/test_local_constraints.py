"""Constraints: what reaches the engine, and what is refused before it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nlsom.errors import ModelError
from nlsom.form import ChoiceForm, Constraint, NumberForm, RankingForm, ScoresForm
from nlsom_agents.local.constraints import grammar_for


def test_a_choice_becomes_a_grammar_with_its_options_quoted() -> None:
    assert grammar_for(Constraint(choice=("yes", 'say "no"\n'))) == {
        "grammar": 'root ::= "yes" | "say \\"no\\"\\n"'
    }


@pytest.mark.parametrize("choice", [(), ("a", "")])
def test_a_choice_of_nothing_is_refused(choice: tuple[str, ...]) -> None:
    with pytest.raises(ModelError, match="option"):
        grammar_for(Constraint(choice=choice))


def test_the_forms_of_the_core_pass() -> None:
    options = tuple(f"option {n}" for n in range(30))
    for form in (
        NumberForm(),
        NumberForm(decimals=True),
        RankingForm(options=options),
        ScoresForm(options=options),
    ):
        assert "regex" in grammar_for(form.constraint() or Constraint())
    assert "grammar" in grammar_for(ChoiceForm(options=options).constraint() or Constraint())


@pytest.mark.parametrize("pattern", ["([", "(?=a)b", "(?!a)b", r"(a)\1", r"\bcat", r"(?P<n>a)", "*"])
def test_a_regular_expression_the_engine_cannot_read_is_refused(pattern: str) -> None:
    with pytest.raises(ModelError, match=r"regular expression|does not support"):
        grammar_for(Constraint(regex=pattern))


@pytest.mark.parametrize("pattern", ["(?:a|b)+", r"\\1", r"\d{1,3}", r"[^\n]+"])
def test_a_regular_expression_the_engine_can_read_passes(pattern: str) -> None:
    assert grammar_for(Constraint(regex=pattern)) == {"regex": pattern}


def test_objects_allow_only_the_properties_they_name() -> None:
    inner = {"type": "object", "properties": {"b": {"type": "string"}}}
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {"a": {"type": "array", "items": inner}, "free": {"type": "object"}},
        "$defs": {"d": inner},
    }
    closed = json.loads(grammar_for(Constraint(schema=schema))["json_schema"])
    assert closed["additionalProperties"] is False
    assert closed["properties"]["a"]["items"]["additionalProperties"] is False
    assert closed["$defs"]["d"]["additionalProperties"] is False
    assert "additionalProperties" not in closed["properties"]["free"]
    assert "additionalProperties" not in schema


@pytest.mark.parametrize(
    ("schema", "what"),
    [
        ({"type": "nonsense"}, "type 'nonsense'"),
        ({"type": "object", "properties": {"a": {"type": "int"}}}, r"schema\.properties\.a: type 'int'"),
        ({"enum": []}, "enum"),
        ({"properties": {"a": {"$ref": "#/nope"}}}, "points to nothing"),
        ({"$ref": "other.json"}, "points to nothing"),
        ({"type": "integer", "minimum": 5, "maximum": 1}, "minimum is above maximum"),
        ({"type": "string", "pattern": "(["}, "regular expression"),
        ({"items": 3}, r"schema\.items: is not a schema"),
        ({"properties": []}, "properties is not an object"),
        ({"properties": {"a": False}}, "is not a schema"),
        ({"anyOf": []}, "anyOf"),
    ],
)
def test_a_schema_that_cannot_work_is_refused_with_the_place(schema: dict[str, Any], what: str) -> None:
    with pytest.raises(ModelError, match=what):
        grammar_for(Constraint(schema=schema))


def test_references_inside_a_schema_pass() -> None:
    schema: dict[str, Any] = {"$defs": {"d": {"type": "string"}}, "properties": {"a": {"$ref": "#/$defs/d"}}}
    assert "$ref" in grammar_for(Constraint(schema=schema))["json_schema"]
