"""Structures as files name them: `ring`, or `{ring: {neighbours: 2}}`."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, cast

from pydantic import BeforeValidator, SerializeAsAny, ValidationError, WithJsonSchema

from nlsom.errors import UsageError
from nlsom.structure.custom import Edges
from nlsom.structure.generated import Random, RandomDag, ScaleFree, SmallWorld
from nlsom.structure.regular import Chain, Democracy, Grid, Hierarchy, Ring
from nlsom.structure.social import Groups, Layers, Monarchy, Star
from nlsom.structure.spec import StructureSpec

STRUCTURES: Mapping[str, type[StructureSpec]] = MappingProxyType(
    {
        "monarchy": Monarchy,
        "democracy": Democracy,
        "hierarchy": Hierarchy,
        "star": Star,
        "ring": Ring,
        "chain": Chain,
        "layers": Layers,
        "groups": Groups,
        "grid": Grid,
        "small_world": SmallWorld,
        "scale_free": ScaleFree,
        "random": Random,
        "random_dag": RandomDag,
        "edges": Edges,
    }
)
"""Every structure by the name that a society's file calls it."""


def shape_of(given: str | Mapping[str, Any]) -> tuple[str, type[StructureSpec], object]:
    """The name, the specification and the parameters of a structure as a file gives it.

    Raises:
        UsageError: No structure has that name, or there is not exactly one.
    """
    if not isinstance(given, str) and len(given) != 1:
        raise UsageError("one structure: a name, or `name: {parameter: value}`")
    name, options = (given, None) if isinstance(given, str) else next(iter(given.items()))
    if name not in STRUCTURES:
        near = difflib.get_close_matches(name, STRUCTURES, 1)
        meant = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(STRUCTURES)}"
        raise UsageError(f"no structure is called {name!r}; {meant}")
    return name, STRUCTURES[name], options or {}


def _read(given: object) -> object:
    if not isinstance(given, str | dict):
        return given
    try:
        name, shape, options = shape_of(cast("str | dict[str, Any]", given))
    except UsageError as error:
        raise ValueError(str(error)) from None
    try:
        return shape.model_validate(options)
    except ValidationError as error:
        told = "; ".join(
            f"{'.'.join(map(str, one['loc'])) or name}: {one['msg']}"
            for one in error.errors(include_url=False)
        )
        raise ValueError(told) from None


Named = Annotated[
    SerializeAsAny[StructureSpec],
    BeforeValidator(_read),
    WithJsonSchema({"anyOf": [{"enum": list(STRUCTURES)}, {"type": "object", "maxProperties": 1}]}),
]
"""A structure, given as such or as files name it."""
