"""The paper's three rights, as switches that compile to structure and phases (arXiv 2305.17066, section 3.1).

With all of them off a society stays the monarchy its file describes. Each right changes one thing:

- `know`: those who have it hear each other, beside whom the structure lets them hear;
- `change`: after each phase of a `repeat` that asks them, they are asked again and may change what they said;
- `vote`: instead of one who decides, they and that one vote, and the plurality decides.
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
        of: Who has them: a member or a role.
        know: They hear each other.
        change: They may change an answer once it is heard.
        vote: They vote on the verdict.
    """

    of: str = "expert"
    know: bool = False
    change: bool = False
    vote: bool = False


class Knowing(StructureSpec):
    """A structure in which some members hear each other as well.

    Attributes:
        base: Whom everybody hears without that.
        of: Who hears each other: a member or a role.
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
    """The phase with a chance to change what was said after each that asks `of`, if it is a `repeat`."""
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
    """The phase that decided, and one in which those who have the right vote beside it."""
    vote = {"ask": of, "prompt": "vote", "name": f"{last.label}-{of}", "hears": Hears()}
    return last.model_copy(update=vote), last
