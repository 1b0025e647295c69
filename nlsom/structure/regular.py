"""Structures that answer by rule: nothing is stored, whatever the number of members."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isqrt
from typing import Literal

from pydantic import PositiveInt

from nlsom.member import Member
from nlsom.structure.hearing import Hearing, Structure, hearing
from nlsom.structure.spec import StructureSpec

# Two members share own words only where they hear each other and the same others: never below, once two who
# hear each other, and a ring so wide that it closes on itself, are built as `Everyone`.


@dataclass(frozen=True, slots=True)
class Everyone:
    """Everyone hears everyone."""

    members: int

    def hears(self, at: int) -> Hearing:
        """All members, whoever asks."""
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
    """Members in a circle hear the `neighbours` nearest (sparse debate, arXiv 2406.11776).

    Attributes:
        neighbours: How many on a side are heard.
        both: Whether both sides are heard; otherwise only those before (relay of Exchange-of-Thought,
            arXiv 2312.01823).
    """

    neighbours: PositiveInt = 1
    both: bool = True

    def build(self, members: Sequence[Member]) -> Structure:
        """Makes the structure; where the circle closes, it is one in which everyone hears everyone."""
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
    """A tree, filled level by level in declaration order; the first member is its root.

    Attributes:
        fan_out: Children a member has.
        flow: Who hears: parents and children each other, parents their children only (`up`), or children
            their parent only (`down`).
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
    """Members in rows hear the ones left, right, above and below."""

    members: int
    width: int

    def hears(self, at: int) -> Hearing:
        """The neighbours that there are."""
        column = at % self.width
        near = (
            at - self.width,
            at - 1 if column else -1,
            at + 1 if column + 1 < self.width else -1,
            at + self.width,
        )
        return hearing([b for b in near if 0 <= b < self.members])


class Grid(StructureSpec):
    """Members in rows, in declaration order, hear the ones left, right, above and below.

    Attributes:
        width: Members a row; the last row may be shorter. By default as near to a square as can be.
    """

    width: PositiveInt | None = None

    def build(self, members: Sequence[Member]) -> Structure:
        """Makes the structure."""
        if len(members) == 2:
            return Everyone(2)
        return Lattice(len(members), self.width or isqrt(max(len(members) - 1, 0)) + 1)
