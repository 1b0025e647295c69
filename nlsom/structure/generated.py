"""Random structures; the same seed gives the same structure."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, PositiveInt

from nlsom.errors import ConfigError, Fault
from nlsom.member import Member
from nlsom.structure.hearing import Structure, hearing, table
from nlsom.structure.spec import StructureSpec

if TYPE_CHECKING:
    import networkx as nx

Probability = Annotated[float, Field(ge=0, le=1)]


class SmallWorld(StructureSpec):
    """A ring with some edges rewired (Watts and Strogatz, Nature 393, 1998); both ends hear each other.

    Attributes:
        k: Neighbours in the ring, half on each side; an odd number counts as the even one below.
        p: Probability that an edge is rewired.
        seed: Seed of the draws. They are over places, so one member more changes who hears whom.
    """

    k: Annotated[int, Field(ge=2)] = 4
    p: Probability = 0.1
    seed: int = 0

    def build(self, members: Sequence[Member]) -> Structure:
        """Makes the structure."""
        n = len(members)
        if self.k >= n:
            raise ConfigError([Fault("k", f"{self.k} neighbours need more than {n} members")])
        return _drawn(n, lambda nx: nx.watts_strogatz_graph(n, self.k, self.p, seed=self.seed))


class ScaleFree(StructureSpec):
    """A few members are heard by many (Barabási and Albert, Science 286, 1999); both ends hear each other.

    Attributes:
        m: Edges that each new member brings.
        seed: Seed of the draws. They are over places, so one member more changes who hears whom.
    """

    m: PositiveInt = 2
    seed: int = 0

    def build(self, members: Sequence[Member]) -> Structure:
        """Makes the structure."""
        n = len(members)
        if self.m >= n:
            raise ConfigError([Fault("m", f"{self.m} edges a member need more than {n} members")])
        return _drawn(n, lambda nx: nx.barabasi_albert_graph(n, self.m, seed=self.seed))


def _drawn(members: int, draw: Callable[[Any], nx.Graph[int]]) -> Structure:
    import networkx

    graph = draw(networkx)
    return table([hearing(sorted(graph.adj[at])) for at in range(members)])


class Random(StructureSpec):
    """Each two members hear each other with probability `p` (Erdős and Rényi).

    Whether they do depends on the seed and their names only, not on other members or on the order of
    declaration. This takes a draw for each two members, n² / 2 in all.

    Attributes:
        p: Probability that two members hear each other.
        seed: Seed of the draws.
    """

    p: Probability
    seed: int = 0

    def build(self, members: Sequence[Member]) -> Structure:
        """Makes the structure."""
        heard: list[list[int]] = [[] for _ in members]
        for b, before in enumerate(_lots(members, self.p, self.seed)):
            for a in before:
                heard[a].append(b)
            heard[b].extend(before)
        return table([hearing(whom) for whom in heard])


class RandomDag(StructureSpec):
    """Each member hears each member declared before it with probability `p` (MacNet, arXiv 2406.07155).

    As in `Random`, draws depend on the seed and the two names only.

    Attributes:
        p: Probability that a member hears one before it.
        seed: Seed of the draws.
    """

    p: Probability
    seed: int = 0

    def build(self, members: Sequence[Member]) -> Structure:
        """Makes the structure."""
        return table([hearing(before) for before in _lots(members, self.p, self.seed)])


def _lots(members: Sequence[Member], p: float, seed: int) -> Iterator[list[int]]:
    """Yields for each member the places before it that are drawn, ascending."""
    import numpy as np

    digests = [hashlib.sha256(f"{seed}:{member.name}".encode()).digest() for member in members]
    lots = np.frombuffer(b"".join(digest[:8] for digest in digests), dtype="<u8").astype(np.uint64)
    for b in range(len(members)):
        # The finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014) over the sum of both digests.
        x = lots[:b] + lots[b]
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x ^= x >> np.uint64(31)
        drawn = (x >> np.uint64(11)).astype(np.float64) * 2.0**-53 < p
        yield np.flatnonzero(drawn).tolist()
