"""Regular structures: whom a member hears is computed, so nothing is stored for any number of members."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isqrt
from typing import Literal

from pydantic import PositiveInt

from nlsom.member import Member
from nlsom.structure.hearing import Hearing, Structure, hearing
from nlsom.structure.spec import StructureSpec

# In no structure here but `Everyone` do two members hear the same, themselves included; so none hears itself.
# Therefore two members who hear each other, and a ring whose neighbours reach all around, become `Everyone`.


@dataclass(frozen=True, slots=True)
class Everyone:
    """Everyone hears everyone."""

    members: int

    def hears(self, at: int) -> Hearing:
        """All members; nobody, if there is only one."""
        del at
        return range(self.members if self.members > 1 else 0)


class Democracy(StructureSpec):
    """Everyone hears everyone: a complete graph."""

    def build(self, members: Sequence[Member]) -> Structure:
        """Makes the structure."""
        return Everyone(len(members))


@dataclass(frozen=True, slots=True)
class _Ring:
    members: int
    neighbours: int
    both: bool

    def hears(self, at: int) -> Hearing:
        reach = self.neighbours
        steps = [*range(-reach, 0), *(range(1, reach + 1) if self.both else ())]
        return hearing(sorted((at + step) % self.members for step in steps))


class Ring(StructureSpec):
    """Members in a circle hear their nearest neighbours (sparse debate, arXiv 2406.11776).

    Attributes:
        neighbours: How many are heard on each side.
        both: Whether both sides are heard, or only the members before (relay of Exchange-of-Thought,
            arXiv 2312.01823).
    """

    neighbours: PositiveInt = 1
    both: bool = True

    def build(self, members: Sequence[Member]) -> Structure:
        """Makes the structure; if neighbours reach all around, everyone hears everyone."""
        if self.neighbours * (2 if self.both else 1) + 1 >= len(members):
            return Everyone(len(members))
        return _Ring(len(members), self.neighbours, self.both)


@dataclass(frozen=True, slots=True)
class _Chain:
    def hears(self, at: int) -> Hearing:
        return range(at - 1, at) if at else range(0)


class Chain(StructureSpec):
    """Each member hears the one before; the first hears nobody (MacNet, arXiv 2406.07155)."""

    def build(self, members: Sequence[Member]) -> Structure:
        """Makes the structure."""
        del members
        return _Chain()


Flow = Literal["both", "up", "down"]


@dataclass(frozen=True, slots=True)
class _Tree:
    members: int
    fan_out: int
    flow: Flow

    def hears(self, at: int) -> Hearing:
        parent = ((at - 1) // self.fan_out,) if at and self.flow != "up" else ()
        first = at * self.fan_out + 1
        end = min(first + self.fan_out, self.members) if self.flow != "down" else first
        return hearing((*parent, *range(first, end)))


class Hierarchy(StructureSpec):
    """A tree, filled level by level in declaration order; the first member is the root.

    Attributes:
        fan_out: Children of each member.
        flow: `both`: parents and children hear each other; `up`: only parents hear; `down`: only children
            hear.
    """

    fan_out: PositiveInt = 2
    flow: Flow = "both"

    def build(self, members: Sequence[Member]) -> Structure:
        """Makes the structure."""
        if len(members) == 2 and self.flow == "both":
            return Everyone(2)
        return _Tree(len(members), self.fan_out, self.flow)


@dataclass(frozen=True, slots=True)
class Lattice:
    """Members in rows hear those to the left, to the right, above and below."""

    members: int
    width: int

    def hears(self, at: int) -> Hearing:
        """Its neighbours, of which there are fewer at the edges."""
        column = at % self.width
        near = (
            at - self.width,
            at - 1 if column else -1,
            at + 1 if column + 1 < self.width else -1,
            at + self.width,
        )
        return hearing([b for b in near if 0 <= b < self.members])


class Grid(StructureSpec):
    """Members in rows, in declaration order, hear those to the left, to the right, above and below.

    Attributes:
        width: Members per row; the last row may be shorter. By default, nearly a square.
    """

    width: PositiveInt | None = None

    def build(self, members: Sequence[Member]) -> Structure:
        """Makes the structure."""
        if len(members) == 2:
            return Everyone(2)
        return Lattice(len(members), self.width or isqrt(max(len(members) - 1, 0)) + 1)
