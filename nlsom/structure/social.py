"""Structures made of roles and groups: few hearings, shared by many members."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import NonNegativeInt, PositiveInt

from nlsom.member import Member
from nlsom.structure.hearing import Hearing, Structure, hearing, table
from nlsom.structure.seats import Seats
from nlsom.structure.spec import StructureSpec


class Monarchy(StructureSpec):
    """Heads hear everyone; the others hear only the heads (NLSOM, arXiv 2305.17066 §2.1).

    Attributes:
        heads: Members or roles; by default those of `organizer` and `leader` that exist.
    """

    heads: tuple[str, ...] | None = None

    def build(self, members: Sequence[Member]) -> Structure:
        """Makes the structure."""
        seats = Seats(members)
        heads = self.heads
        if heads is None:
            heads = tuple(role for role in ("organizer", "leader") if seats.has(role))
        if not heads:
            seats.fault("heads", "nobody reigns: name members or roles, or have an organizer or a leader")
        found = {at for i, head in enumerate(heads) for at in seats.find(head, where=f"heads.{i}")}
        seats.check()
        return _headed(found, len(members))


class Star(StructureSpec):
    """One member in the centre hears everyone; the others hear only that one.

    Attributes:
        centre: A member, or a role of a single member; by default the member declared first.
    """

    centre: str | None = None

    def build(self, members: Sequence[Member]) -> Structure:
        """Makes the structure."""
        if self.centre is None:
            return _headed({0}, len(members))
        seats = Seats(members)
        found = seats.find(self.centre, where="centre")
        if len(found) > 1:
            seats.fault("centre", f"{self.centre!r} are {len(found)} members; name one (or use `monarchy`)")
        seats.check()
        return _headed(set(found), len(members))


def _headed(heads: set[int], members: int) -> Structure:
    everyone, above = range(members), hearing(sorted(heads))
    return table([everyone if at in heads else above for at in range(members)])


class Layers(StructureSpec):
    """Each layer hears the layer before; the first hears nobody (mixture of agents, arXiv 2406.04692).

    Attributes:
        sizes: Members per layer, in declaration order.
        of: Instead of sizes: members or roles, one per layer. By default each role is a layer, in the order
            in which roles first appear.
    """

    sizes: tuple[PositiveInt, ...] | None = None
    of: tuple[str, ...] | None = None

    def build(self, members: Sequence[Member]) -> Structure:
        """Makes the structure."""
        seats = Seats(members)
        layers: list[Sequence[int]] = []
        if self.sizes is not None:
            if self.of is not None:
                seats.fault("of", "give `sizes` or `of`, not both")
            if sum(self.sizes) != len(members):
                seats.fault("sizes", f"{sum(self.sizes)} seats in layers, but {len(members)} members")
            starts = [sum(self.sizes[:i]) for i in range(len(self.sizes))]
            layers = [range(at, at + size) for at, size in zip(starts, self.sizes, strict=True)]
        else:
            roles = self.of if self.of is not None else tuple(dict.fromkeys(m.role for m in members))
            layers = [seats.find(role, where=f"of.{i}") for i, role in enumerate(roles)]
        seats.check()
        heard: list[Hearing | None] = [None] * len(members)
        before: Hearing = range(0)
        for i, layer in enumerate(layers):
            for at in layer:
                if heard[at] is not None:
                    seats.fault(f"of.{i}", f"{members[at].name!r} is in two layers")
                heard[at] = before
            before = hearing(layer)
        missing = [members[at].name for at, whom in enumerate(heard) if whom is None]
        if missing:
            seats.fault("of", f"in no layer: {', '.join(missing[:8])}{' …' if len(missing) > 8 else ''}")
        seats.check()
        return table([whom for whom in heard if whom is not None])


class Groups(StructureSpec):
    """Members hear their own group; the groups' delegates also hear each other.

    Attributes:
        by: What makes a group: one role, one persona, or a number of members in declaration order.
        delegates: How many members of each group are delegates: those declared first.
    """

    by: PositiveInt | Literal["role", "persona"] = "role"
    delegates: NonNegativeInt = 1

    def build(self, members: Sequence[Member]) -> Structure:
        """Makes the structure."""
        groups: dict[int | str, list[int]] = {}
        for at, member in enumerate(members):
            key = at // self.by if isinstance(self.by, int) else getattr(member, self.by)
            groups.setdefault(key, []).append(at)
        abroad = {at for group in groups.values() for at in group[: self.delegates]}
        heard: list[Hearing] = [range(0)] * len(members)
        for group in groups.values():
            home, wide = hearing(group), hearing(sorted({*group, *abroad}))
            for at in group:
                heard[at] = wide if at in abroad else home
        return table(heard)
