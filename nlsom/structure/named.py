"""Structures as files name them: `ring`, `{ring: {neighbours: 2}}`, or `{ring: {}, among: debater}`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any, cast

from pydantic import BeforeValidator, SerializeAsAny, ValidationError, WithJsonSchema

from nlsom.errors import UsageError, meant
from nlsom.structure.among import Among
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
"""Every structure by its name in society files."""


Given = str | Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Shape:
    """A structure as a file gives it, its parameters not yet read.

    Attributes:
        name: Its name.
        spec: The class of its specification.
        options: Its parameters.
        among: Members or roles to which it is restricted; empty for all.
    """

    name: str
    spec: type[StructureSpec]
    options: object
    among: tuple[str, ...]

    def made(self) -> StructureSpec:
        """The specification, with its parameters read.

        Raises:
            pydantic.ValidationError: Its parameters are wrong.
        """
        base = self.spec.model_validate(self.options)
        return Among(base=base, among=self.among) if self.among else base


def shape_of(given: Given) -> Shape:
    """Reads a structure as a file gives it, except for its parameters.

    Raises:
        UsageError: No structure has that name, or not exactly one is named.
    """
    rest = {given: None} if isinstance(given, str) else dict(given)
    among = rest.pop("among", None) or ()
    if len(rest) != 1:
        raise UsageError(
            "one structure: a name, or `name: {parameter: value}`, and `among: ROLE` if you like"
        )
    ((name, options),) = rest.items()
    if name not in STRUCTURES:
        raise UsageError(f"no structure is called {name!r}; {meant(name, STRUCTURES)}")
    return Shape(name, STRUCTURES[name], options or {}, (among,) if isinstance(among, str) else tuple(among))


def _read(given: object) -> object:
    if not isinstance(given, str | dict):
        return given
    try:
        shape = shape_of(cast("Given", given))
    except UsageError as error:
        raise ValueError(str(error)) from None
    try:
        return shape.made()
    except ValidationError as error:
        told = "; ".join(
            f"{'.'.join(map(str, one['loc'])) or shape.name}: {one['msg']}"
            for one in error.errors(include_url=False)
        )
        raise ValueError(told) from None


Named = Annotated[
    SerializeAsAny[StructureSpec],
    BeforeValidator(_read),
    WithJsonSchema({"anyOf": [{"enum": list(STRUCTURES)}, {"type": "object", "maxProperties": 2}]}),
]
"""The type of a field for a structure: a specification, or what a file gives."""
