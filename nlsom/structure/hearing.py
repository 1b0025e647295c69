"""Who hears whom: the contract of a structure, and functions for any structure."""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

Hearing = range | tuple[int, ...]
"""Places of members, ascending: a range if they are consecutive, else a tuple."""


class Structure(Protocol):
    """Says whom each member hears. Members are given by their places in declaration order, from 0."""

    def hears(self, at: int) -> Hearing:
        """Places of the members that member `at` hears, ascending; equal for members who hear the same.

        Contains `at` itself exactly if another member would then hear the same, itself included. Own words
        then stay in the transcript that both share; otherwise they come in the tail of the member's prompt.
        """
        ...


@dataclass(frozen=True, slots=True)
class Table:
    """A structure as a table: one hearing per member, shared by members who hear the same."""

    hearings: tuple[Hearing, ...]

    def hears(self, at: int) -> Hearing:
        """Looks the hearing up."""
        return self.hearings[at]


def hearing(ascending: Sequence[int]) -> Hearing:
    """The hearing of these places, in its one canonical form."""
    if not ascending:
        return range(0)
    first, end = ascending[0], ascending[-1] + 1
    return range(first, end) if end - first == len(ascending) else tuple(ascending)


def table(heard: Sequence[Hearing]) -> Table:
    """Makes a structure from whom each member hears, and decides where own words go (`Structure.hears`).

    Time and memory depend on the distinct objects in `heard`, which members who hear the same should share:
    a role of 5,000 that hears another of 5,000 is one tuple.

    Args:
        heard: One hearing per member; whether it contains the member itself makes no difference.
    """
    once: dict[Hearing, Hearing] = {}

    def one(whom: Sequence[int]) -> Hearing:
        """One object for the same places."""
        found = hearing(whom)
        return once.setdefault(found, found)

    # A set of members is represented by the sum of 128 pseudo-random bits per member. So n sets that differ
    # only in the member who hears them can be compared without being written out.
    bits = [_bits(at) for at in range(len(heard))]
    distinct = {id(whom): whom for whom in heard}
    plain = {key: one(whom) for key, whom in distinct.items()}
    sums = {key: sum(bits[b] for b in whom) for key, whom in distinct.items()}
    inside = [_holds(whom, at) for at, whom in enumerate(heard)]
    with_own = [
        sums[id(whom)] + (0 if own else bits[at])
        for at, (whom, own) in enumerate(zip(heard, inside, strict=True))
    ]
    sharing = Counter(with_own)
    shared: dict[int, Hearing] = {}
    out: list[Hearing] = []
    for at, (whom, own, key) in enumerate(zip(heard, inside, with_own, strict=True)):
        if sharing[key] > 1:
            if key not in shared:
                shared[key] = plain[id(whom)] if own else one(_with(whom, at))
            out.append(shared[key])
        else:
            out.append(one([b for b in whom if b != at]) if own else plain[id(whom)])
    return Table(tuple(out))


def _bits(at: int) -> int:
    return int.from_bytes(hashlib.blake2b(at.to_bytes(8), digest_size=16).digest())


def _holds(whom: Hearing, at: int) -> bool:
    if isinstance(whom, range):
        return at in whom
    place = bisect_left(whom, at)
    return place < len(whom) and whom[place] == at


def _with(whom: Hearing, at: int) -> Hearing:
    place = bisect_left(whom, at)
    return hearing((*whom[:place], at, *whom[place:]))


def hearing_classes(structure: Structure, who: Iterable[int]) -> dict[Hearing, list[int]]:
    """Groups members by what they hear: a democracy has one class, a ring one per member."""
    # Members of a class usually share one object. Comparing by identity saves hashing 10,000 places for each
    # of them; the object is kept with its class, so that its identity cannot pass to another.
    seen: dict[int, tuple[Hearing, list[int]]] = {}
    classes: dict[Hearing, list[int]] = {}
    for at in who:
        whom = structure.hears(at)
        if (found := seen.get(id(whom))) is None:
            found = seen[id(whom)] = (whom, classes.setdefault(whom, []))
        found[1].append(at)
    return classes


def edges(structure: Structure, members: int) -> Iterator[tuple[int, int]]:
    """Every edge (a, b), where b hears a, without self-loops. Lazily, as there may be n² edges."""
    for b in range(members):
        for a in structure.hears(b):
            if a != b:
                yield a, b


def generations(structure: Structure, members: int) -> list[tuple[int, ...]] | None:
    """A topological order: each member after all that it hears (as in MacNet, arXiv 2406.07155).

    Args:
        structure: Who hears whom.
        members: Number of members.

    Returns:
        Groups of places; members of one group can speak at the same time. None if there is a cycle.
    """
    classes = list(hearing_classes(structure, range(members)).items())
    hearers: list[list[int]] = [[] for _ in range(members)]
    waits = [len(whom) for whom, _ in classes]
    for number, (whom, _) in enumerate(classes):
        for a in whom:
            hearers[a].append(number)
    out: list[tuple[int, ...]] = []
    ready = [number for number, wait in enumerate(waits) if not wait]
    while ready:
        speakers = sorted(at for number in ready for at in classes[number][1])
        out.append(tuple(speakers))
        ready = list[int]()
        for a in speakers:
            for number in hearers[a]:
                waits[number] -= 1
                if not waits[number]:
                    ready.append(number)
    return out if sum(map(len, out)) == members else None
