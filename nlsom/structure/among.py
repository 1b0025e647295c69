"""A structure among some of the members only."""

from __future__ import annotations

from collections.abc import Sequence

from nlsom.member import Member
from nlsom.structure.hearing import Hearing, Structure, hearing, hearing_classes, table
from nlsom.structure.seats import Seats
from nlsom.structure.spec import StructureSpec


class Among(StructureSpec):
    """A structure among some members; all others hear everyone and are heard by everyone.

    The others may be members who look at the picture. In a file: `{ring: {neighbours: 2}, among: debater}`.

    Attributes:
        base: The structure.
        among: The members or roles among whom it holds, in the order of their places in it.
    """

    base: StructureSpec
    among: tuple[str, ...]

    def build(self, members: Sequence[Member]) -> Structure:
        """Makes the structure."""
        seats = Seats(members)
        found = [at for i, name in enumerate(self.among) for at in seats.find(name, where=f"among.{i}")]
        seats.check()
        chosen = list(dict.fromkeys(found))
        inner = self.base.build([members[at] for at in chosen])
        among = frozenset(chosen)
        others = [at for at in range(len(members)) if at not in among]
        heard: list[Hearing] = [range(len(members))] * len(members)
        for whom, who in hearing_classes(inner, range(len(chosen))).items():
            wider = hearing(sorted([*others, *(chosen[at] for at in whom)]))
            for at in who:
                heard[chosen[at]] = wider
        return table(heard)
