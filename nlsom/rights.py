"""The three rights of arXiv 2305.17066, section 3.1, as switches that compile to structure and phases.

With all of them off, a society stays the monarchy that its file describes. Each right changes one thing:

- `know`: those who have it also hear each other;
- `change`: after each phase of a `repeat` that asks them, they are asked again and may change what they said;
- `vote`: they vote together with the one who decided alone before, and the plurality decides.
"""

from __future__ import annotations

from collections.abc import Sequence

from nlsom.member import Member
from nlsom.message import Frozen
from nlsom.phase import Ask, Hears, Phase, Repeat
from nlsom.structure import Hearing, Seats, Structure, StructureSpec, hearing_classes
from nlsom.structure.hearing import hearing, table


class Rights(Frozen):
    """Which rights members have.

    Attributes:
        of: Who has the rights: a member or a role.
        know: They hear each other.
        change: They may change an answer after hearing the others'.
        vote: They vote on the verdict.
    """

    of: str = "expert"
    know: bool = False
    change: bool = False
    vote: bool = False


class Knowing(StructureSpec):
    """A structure in which some members also hear each other.

    Attributes:
        base: The structure without that.
        of: Those who hear each other: a member or a role.
    """

    base: StructureSpec
    of: str

    def build(self, members: Sequence[Member]) -> Structure:
        """Makes the structure."""
        base = self.base.build(members)
        seats = Seats(members)
        knowing = frozenset(seats.find(self.of, where="of"))
        seats.check()
        heard: list[Hearing] = [range(0)] * len(members)
        for whom, who in hearing_classes(base, range(len(members))).items():
            wider = hearing(sorted({*whom, *knowing}))
            for at in who:
                heard[at] = wider if at in knowing else whom
        return table(heard)


def revisable(phase: Phase, of: str) -> Phase:
    """Adds a phase of revision after each phase of a `repeat` that asks `of`."""
    if not isinstance(phase, Repeat):
        return phase
    phases: list[Ask] = []
    for ask in phase.phases:
        phases.append(ask)
        if ask.ask == of:
            again = {
                "prompt": "revise",
                "name": f"{ask.name or ask.label}-revised",
                "hears": Hears(scope="latest"),
            }
            phases.append(ask.model_copy(update=again))
    return phase.model_copy(update={"phases": tuple(phases)})


def votes(last: Ask, of: str) -> tuple[Ask, Ask]:
    """Two phases of voting: one of those who have the right, and the one that decided before."""
    vote = {"ask": of, "prompt": "vote", "name": f"{last.label}-{of}", "hears": Hears()}
    return last.model_copy(update=vote), last
