"""Options of plugins: checked against the signature of their factory before it is called."""

from __future__ import annotations

import dataclasses
import inspect
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, get_type_hints

from pydantic import AliasChoices, BaseModel, ConfigDict, ValidationError, create_model
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from nlsom.errors import ConfigError, Fault, meant
from nlsom.source import KeyPath, Source, Tree, has, inner

_MISSING = inspect.Parameter.empty


def parameters(factory: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The parameters of a factory by name."""
    return dict(inspect.signature(factory).parameters)


def bind(
    factory: Callable[..., Any],
    values: Mapping[str, object],
    source: Source,
    path: KeyPath,
    given: Iterable[str] = (),
) -> dict[str, Any]:
    """Reads options for a factory, by the types its signature declares.

    Args:
        factory: A class or function with annotated parameters.
        values: The options as they were read.
        source: The file that holds them.
        path: The path, in the file, of the mapping that holds them.
        given: Names of parameters that the caller supplies.

    Raises:
        ConfigError: Options are unknown, missing or of the wrong type; lists all of them.
    """
    skipped = set(given)
    fields: dict[str, Any] = {}
    declared = inspect.isclass(factory) and not dataclasses.is_dataclass(factory)
    hints = get_type_hints(factory.__init__ if declared else factory, include_extras=True)
    for name, parameter in parameters(factory).items():
        if name not in skipped and parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            default = ... if parameter.default is _MISSING else parameter.default
            fields[name] = (hints.get(name, Any), default)
    config = ConfigDict(extra="forbid", arbitrary_types_allowed=True, protected_namespaces=())
    shape = create_model("Options", __config__=config, **fields)
    try:
        read = shape.model_validate(dict(values))
    except ValidationError as error:
        raise ConfigError(faults(error, source, path, {(): shape})) from None
    return {name: getattr(read, name) for name in read.model_fields_set}


def problems(error: ValidationError) -> list[ErrorDetails]:
    """What pydantic found wrong, without problems that only follow from others.

    Pydantic leaves faulty items of a list out, and then also calls the list too short; and where a mapping or
    one of some words may stand, it also reports that a faulty mapping is none of the words.
    """
    found = error.errors(include_url=False)
    within = Counter(one["loc"][:end] for one in found for end in range(len(one["loc"])))

    def follows(one: ErrorDetails) -> bool:
        if one["type"] == "literal_error":
            return not isinstance(one["input"], str) and within[one["loc"][:-1]] > 1
        return one["type"] == "too_short" and within[one["loc"]] > 0

    return [one for one in found if not follows(one)]


def faults(
    error: ValidationError, source: Source, path: KeyPath, shapes: Mapping[KeyPath, type[BaseModel]]
) -> list[Fault]:
    """Pydantic's problems as faults with their places in the file, at most one per place.

    Args:
        error: What pydantic raised.
        source: The file.
        path: The path, in the file, of what was validated.
        shapes: Models by path pattern (`*` stands for a number), for hints at what an unknown key means.
    """
    told: dict[tuple[KeyPath, str], Fault] = {}
    for problem in problems(error):
        # Pydantic puts the branches of unions into the path; they are not part of the file.
        at = path + tuple(step for step in problem["loc"] if not str(step).startswith("<"))
        at = _known(source, at)
        if problem["type"] == "extra_forbidden":
            key = str(problem["loc"][-1])
            place = tuple("*" if isinstance(step, int) else step for step in at[len(path) : -1])
            branch = shapes.get((*place, *map(str, problem["loc"][-2:-1])))
            fault = source.fault((*at[:-1], key), _unknown(key, branch or shapes.get(place)), key=True)
            told.setdefault((at, key), fault)
        else:
            what = _say(problem["type"], problem["msg"], problem.get("input"), str(problem["loc"][-1:]))
            told.setdefault((at, ""), source.fault(at, what))
    return list(told.values())


def _known(source: Source, path: KeyPath) -> KeyPath:
    """The path as far as the file has it; in a mapping, the next step is kept even if it is missing."""
    here: Tree = source.tree
    for number, step in enumerate(path):
        if not has(here, step):
            return path[: number + 1] if isinstance(here, dict) else path[:number]
        here = inner(here, step)
    return path


def _written(name: str, field: FieldInfo) -> str:
    """What a field is called in a file."""
    alias = field.validation_alias
    return str(alias.choices[0]) if isinstance(alias, AliasChoices) else field.alias or name


def _unknown(key: str, shape: type[BaseModel] | None) -> str:
    elsewhere: dict[str, str] = getattr(shape, "meant", {})
    if key in elsewhere:
        return f"unknown key {key!r}: {elsewhere[key]}"
    known = [_written(name, field) for name, field in shape.model_fields.items()] if shape else []
    return f"unknown key {key!r}" + (f"; {meant(key, known)}" if known else "")


_WORDS = {
    "dict_type": "this has to be a mapping, `{key: value}`",
    "model_type": "this has to be a mapping, `{key: value}`",
    "list_type": "this has to be a list, `[a, b]`",
    "sequence_str": "this has to be a list, `[a, b]`",
    "tuple_type": "this has to be a list, `[a, b]`",
    "string_type": "this has to be text",
    "int_parsing": "this has to be a whole number",
    "float_parsing": "this has to be a number",
    "bool_parsing": "this has to be true or false",
    "too_short": "something has to stand here",
    "too_long": "too many stand here",
    "union_tag_not_found": "this is none of the shapes that it may have",
}
"""Messages in the terms of a file, by pydantic's kind of error, where its own are in Python's terms."""


def _say(kind: str, message: str, value: object, last: str) -> str:
    if kind == "missing":
        part = last.strip("(),")
        return f"{f'item {int(part) + 1}' if part.isdecimal() else part} is missing"
    message = _WORDS.get(kind, message).removeprefix("Value error, ")
    shown = f", not {value!r}" if isinstance(value, str) and len(value) < 60 else ""
    return message[:1].lower() + message[1:] + shown
