"""Translates a form's constraint for the engine, and refuses unsupported ones.

An invalid constraint makes the engine's next step fail for all requests. What is not refused here is handled
by `batch`, which then has to restart the other requests.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, cast

from nlsom.errors import ModelError
from nlsom.form import Constraint

Grammar = dict[str, str]
"""The engine's configuration: one of `{"regex": …}`, `{"json_schema": …}`, `{"grammar": …}` (EBNF)."""

_TYPES = {"string", "number", "integer", "boolean", "null", "object", "array"}
_UNREADABLE = (
    (re.compile(r"\(\?(?!:)"), "groups that begin with `(?` other than `(?:`"),
    (re.compile(r"\\[1-9]"), "backreferences"),
    (re.compile(r"\\[bBAZ]"), "word and text boundaries"),
)


def grammar_for(constraint: Constraint) -> Grammar:
    """The engine's configuration for a constraint.

    Raises:
        ModelError: The engine does not support it.
    """
    if constraint.choice is not None:
        if not constraint.choice or "" in constraint.choice:
            raise ModelError("a choice needs options, none of them empty")
        return {"grammar": "root ::= " + " | ".join(_quoted(option) for option in constraint.choice)}
    if constraint.regex is not None:
        _check_regex(constraint.regex, "the form")
        return {"regex": constraint.regex}
    if constraint.grammar is not None:
        return {"grammar": constraint.grammar}
    return {"json_schema": json.dumps(_closed(constraint.schema, (), constraint.schema))}


def _quoted(text: str) -> str:
    """An EBNF literal, whose escapes include those of JSON."""
    return json.dumps(text, ensure_ascii=False)


def _check_regex(pattern: str, where: str) -> None:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ModelError(f"invalid regular expression {pattern!r} in {where}: {error}") from error
    plain = re.sub(r"\\\\", "", pattern)
    for unreadable, what in _UNREADABLE:
        if unreadable.search(plain):
            raise ModelError(f"the embedded engine does not support {what}: {pattern!r} in {where}")


def _closed(schema: object, at: tuple[str, ...], root: object) -> object:
    """Checks a schema, and returns a copy that allows only the properties it names.

    Otherwise small models invent properties until they run out of tokens.
    """
    where = "schema" + "".join(f".{step}" for step in at)

    def wrong(what: str) -> ModelError:
        return ModelError(f"unusable JSON Schema: {where}: {what}")

    if schema is True:
        return True
    if not isinstance(schema, Mapping):
        raise wrong("is not a schema (must be an object)")
    fields = dict(cast(Mapping[str, Any], schema))
    kinds = fields.get("type", [])
    for kind in cast(list[Any], kinds) if isinstance(kinds, list) else [kinds]:
        if kind not in _TYPES:
            raise wrong(f"type {kind!r} is none of {', '.join(sorted(_TYPES))}")
    if "enum" in fields and not (isinstance(fields["enum"], list) and fields["enum"]):
        raise wrong("enum has no values")
    if isinstance(fields.get("pattern"), str):
        _check_regex(fields["pattern"], where)
    for low, high in (("minimum", "maximum"), ("minLength", "maxLength"), ("minItems", "maxItems")):
        if low in fields and high in fields and fields[low] > fields[high]:
            raise wrong(f"{low} is above {high}")
    if "$ref" in fields and not _resolves(fields["$ref"], root):
        raise wrong(f"$ref {fields['$ref']!r} points to nothing in this schema")
    for name in ("properties", "$defs", "definitions"):
        if name in fields:
            if not isinstance(fields[name], Mapping):
                raise wrong(f"{name} is not an object")
            inside = cast(Mapping[str, Any], fields[name])
            fields[name] = {key: _closed(value, (*at, name, key), root) for key, value in inside.items()}
    for name in ("anyOf", "oneOf", "prefixItems"):
        if name in fields:
            if not isinstance(fields[name], list) or not fields[name]:
                raise wrong(f"{name} is not a list of schemas")
            inner = enumerate(cast(list[Any], fields[name]))
            fields[name] = [_closed(value, (*at, name, str(n)), root) for n, value in inner]
    if "items" in fields and fields["items"] is not False:
        fields["items"] = _closed(fields["items"], (*at, "items"), root)
    if "properties" in fields:
        fields.setdefault("additionalProperties", False)
    return fields


def _resolves(reference: object, root: object) -> bool:
    if not isinstance(reference, str) or not reference.startswith("#"):
        return False
    at = root
    for step in reference[1:].strip("/").split("/") if reference != "#" else ():
        if not isinstance(at, Mapping) or step not in at:
            return False
        at = cast(Mapping[str, Any], at)[step]
    return True
