"""Structures given as edges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, cast

from pydantic import Field, GetJsonSchemaHandler, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from nlsom.member import Member
from nlsom.structure.hearing import Hearing, Structure, hearing, table
from nlsom.structure.seats import Seats
from nlsom.structure.spec import StructureSpec


class Edges(StructureSpec):
    """A list of edges: `[a, b]` means that b hears a. A file may give just the list.

    Attributes:
        edges: Pairs of selectors: a member, a role, or `*` for everyone. An edge from a role to itself means
            that its members hear each other.
    """

    edges: Annotated[tuple[tuple[str, str], ...], Field(min_length=1)]

    @model_validator(mode="before")
    @classmethod
    def _list_alone(cls, given: Any) -> Any:
        return {"edges": cast("list[Any]", given)} if isinstance(given, list | tuple) else given

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Tells editors that the list may be given alone."""
        whole = handler.resolve_ref_schema(handler(core_schema))
        return {"anyOf": [whole["properties"]["edges"], {**whole}]}

    def build(self, members: Sequence[Member]) -> Structure:
        """Makes the structure. Members with the same sources share one hearing."""
        seats = Seats(members)
        sources: list[set[str]] = [set() for _ in members]
        for i, (a, b) in enumerate(self.edges):
            seats.find(a, where=f"edges.{i}.0")
            for at in seats.find(b, where=f"edges.{i}.1"):
                sources[at].add(a)
        seats.check()
        made: dict[frozenset[str], Hearing] = {}
        heard: list[Hearing] = []
        for names in map(frozenset, sources):
            if names not in made:
                found = {at for name in names for at in seats.find(name, where="edges")}
                made[names] = hearing(sorted(found))
            heard.append(made[names])
        return table(heard)
