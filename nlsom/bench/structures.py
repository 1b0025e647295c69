"""The paper's question: which social structure helps, at equal cost? (arXiv 2305.17066 §2.2 and §3.1).

All societies here are made of the same members and prompts, and differ only in who hears whom, who may
revise, and who decides. The rights are given to all, so that structures differ in nothing else; the
`rights:` of a society file give them to some, beside what its monarchy does. The members that call no model
cost no tokens; they say what they see before anything else, to every structure alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from nlsom.agent import Agent
from nlsom.blueprint import Seat, VerdictBy
from nlsom.errors import UsageError, meant
from nlsom.form import TextForm
from nlsom.member import Member
from nlsom.options import parameters
from nlsom.phase import Ask, Hears, Inline, Limits, Phase, Repeat
from nlsom.rules import Consensus, Decree, Plurality, TieBreak
from nlsom.society import Society
from nlsom.structure import Democracy, Monarchy, Random, Ring, StructureSpec
from nlsom.task import Task, VqaTask

TEMPERATURE = 0.7  # of whoever is asked the same more than once
SEE = "Say what you know about the picture, in one short sentence."
QUESTION = (
    "Ask the others one short question about the picture, whose answer would help most to settle the task."
)
REPLY = "Answer the last question that was asked, from what you know, in one short sentence."
REVISE = "You heard the others. Say once more what you now know about the picture, in one short sentence."
SUMMARY = "Sum up in one short sentence what the others know about the picture."
DECIDE = "Decide from all that was said.\nQuestion: {{ task.question }}"
ANSWER = "Answer from all you know.\nQuestion: {{ task.question }}"


@dataclass(frozen=True, slots=True)
class Cast:
    """Who plays in every structure.

    Attributes:
        minds: Members with a model. The first also speaks for organizer and leader, unless `head` is given,
            and for the single model.
        senses: Members without a model: they say what they see, and cost no tokens.
        head: Speaks for organizer and leader.
        sampled: The first mind's agent at `TEMPERATURE`, for self-consistency.
    """

    minds: tuple[Seat, ...]
    senses: tuple[Seat, ...] = ()
    head: Agent | None = None
    sampled: Agent | None = None

    @classmethod
    def of(cls, society: Society) -> Cast:
        """The members of a society; organizer and leader leave their seats to the head.

        Raises:
            UsageError: No member has a model.
        """
        heads = [seat for seat in society.seats if seat.member.role in ("organizer", "leader")]
        others = [seat for seat in society.seats if seat not in heads]
        minds = [seat for seat in others if _model(seat.agent) is not None]
        senses = [seat for seat in others if _model(seat.agent) is None]
        head = next((seat.agent for seat in reversed(heads)), None)
        if not minds and head is not None:
            minds = [Seat(Member("mind", "expert"), head)]
        if not minds:
            raise UsageError(f"society {society.name!r} has no member with a model: nothing to compare")
        return cls(tuple(minds), tuple(senses), head, sampled(minds[0].agent))


def _model(agent: Agent) -> Any:
    return getattr(agent, "model", None)


def sampled(agent: Agent) -> Agent:
    """The same agent at `TEMPERATURE`; options that it does not keep by name are at their defaults.

    Raises:
        UsageError: It takes no temperature.
    """
    takes = parameters(type(agent))
    if "temperature" not in takes or "model" not in takes:
        raise UsageError(
            f"{type(agent).__name__} takes no temperature: it would say the same again and again"
        )
    kept = {name: getattr(agent, name) for name in takes if name != "temperature" and hasattr(agent, name)}
    return type(agent)(**kept, temperature=TEMPERATURE)  # pyright: ignore[reportCallIssue]


@dataclass(frozen=True, slots=True)
class Structures:
    """Makes the societies of the table.

    Attributes:
        cast: Who plays.
        rounds: Rounds of questions, or of debate.
        limits: Of a mindstorm.
        tie_break: Of every vote.
        task: Kind of the tasks; captions are voted on by consensus, since none is said twice.
        seed: Of the random graph.
        only: Names of the structures to make; all if empty.
    """

    cast: Cast
    rounds: int = 1
    limits: Limits = field(default_factory=Limits)
    tie_break: TieBreak = "random"
    task: type[Task] = VqaTask
    seed: int = 0
    only: Sequence[str] = ()

    def all(self) -> list[Society]:
        """All but self-consistency and votes, whose size depends on what the others cost.

        Raises:
            UsageError: No structure has one of the names in `only`.
        """
        made = [
            self.single(),
            self.monarchy(),
            self.monarchy(know=True),
            self.monarchy(know=True, change=True),
            self.monarchy(know=True, change=True, vote=True),
            self.debate("debate", Democracy()),
            self.debate("sparse-debate", Ring(neighbours=1, both=False)),
            self.debate("random-graph", Random(p=0.5, seed=self.seed)),
        ]
        known = [society.name for society in made]
        for name in self.only:
            if name not in known:
                raise UsageError(f"no structure is called {name!r}; {meant(name, known)}")
        return [society for society in made if not self.only or society.name in self.only]

    def single(self) -> Society:
        """The first mind alone."""
        return self._vote("single", [self.cast.minds[0].agent], 1)

    def self_consistency(self, samples: int) -> Society:
        """So many answers of the first mind, and a vote (Wang et al., arXiv 2203.11171)."""
        agent = self.cast.sampled or sampled(self.cast.minds[0].agent)
        return self._vote(f"self-consistency@{samples}", [agent], samples)

    def vote(self, samples: int) -> Society:
        """So many answers of all minds in turn, and a vote: nobody hears anybody.

        Each answers once as it would alone, and when its turn comes again, at a temperature.
        """
        first = [seat.agent for seat in self.cast.minds]
        again = [sampled(agent) for agent in first] if samples > len(first) else []
        agents = [first[n] if n < len(first) else again[n % len(first)] for n in range(samples)]
        return self._vote(f"vote@{samples}", agents, samples)

    def _vote(self, name: str, agents: Sequence[Agent], samples: int) -> Society:
        senses = [_seated(seat, "sense") for seat in self.cast.senses]
        voters = [Seat(Member(f"answer.{n + 1}", "voter"), agents[n % len(agents)]) for n in range(samples)]
        phases: list[Phase] = [_caption("sense")] if senses else []
        hears = Hears(label=("caption",)) if senses else Hears(scope="none")
        phases.append(
            Ask(ask="voter", prompt=Inline(text=ANSWER), label="ballot", form="answer", hears=hears)
        )
        return self._society(name, [*senses, *voters], phases, Democracy(), self._counted("ballot"))

    def monarchy(self, *, know: bool = False, change: bool = False, vote: bool = False) -> Society:
        """An organizer questions the others and sums up; a leader decides, or all vote.

        Args:
            know: All hear what the others say, not only the organizer.
            change: Once all have answered, all may say once more what they know.
            vote: All decide, by plurality.
        """
        head = self.cast.head or self.cast.minds[0].agent
        seats = [
            Seat(Member("organizer", "organizer"), head),
            Seat(Member("leader", "leader"), head),
            *self._experts(),
        ]
        short = TextForm(max_tokens=32)
        question = Ask(ask="organizer", prompt=Inline(text=QUESTION), label="question", form=short)
        reply = Ask(ask="expert", prompt=Inline(text=REPLY), label="reply", form=short)
        revise = Ask(ask="expert", prompt=Inline(text=REVISE), label="reply", name="revision", form=short)
        summary = Ask(ask="organizer", prompt=Inline(text=SUMMARY), label="summary", form=short)
        last = "expert" if vote else "leader"
        ballot = Ask(ask=last, prompt=Inline(text=DECIDE), label="ballot", form="answer")
        phases: list[Phase] = [
            _caption("expert"),
            Repeat(repeat=self.rounds, phases=(question, reply)),
            *([revise] if change else []),
            summary,
            ballot,
        ]
        verdict = self._counted("ballot") if vote else VerdictBy(Decree(), "decree", of="leader")
        rights = [name for name, given in (("know", know), ("change", change), ("vote", vote)) if given]
        name = "".join(["monarchy", *(f"+{right}" for right in rights)])
        return self._society(name, seats, phases, Democracy() if know else Monarchy(), verdict)

    def debate(self, name: str, structure: StructureSpec) -> Society:
        """All answer, hear those whom the structure lets reach them, and answer again (arXiv 2305.14325)."""
        experts = self._experts()
        minds = tuple(at for at, seat in enumerate(experts) if _model(seat.agent) is not None)
        latest = Hears(scope="latest")
        answer = Ask(ask="minds", prompt=Inline(text=ANSWER), label="answer", form="answer", hears=latest)
        first = answer.model_copy(update={"hears": Hears(scope="none")})
        say = Ask(ask="minds", prompt=Inline(text=REVISE), label="caption", name="said-again", hears=latest)
        say = say.model_copy(update={"form": TextForm(max_tokens=32)})
        again = Repeat(repeat=self.rounds, phases=(say, answer.model_copy(update={"name": "answered-again"})))
        phases: list[Phase] = [_caption("expert"), first, again]
        return self._society(name, experts, phases, structure, self._counted("answer"), {"minds": minds})

    def _experts(self) -> list[Seat]:
        return [_seated(seat, "expert") for seat in (*self.cast.senses, *self.cast.minds)]

    def _counted(self, over: str) -> VerdictBy:
        rule, name = (Consensus(), "consensus") if self.task.kind == "caption" else (Plurality(), "plurality")
        return VerdictBy(rule, name, over=over, tie_break=self.tie_break)

    def _society(
        self,
        name: str,
        seats: Sequence[Seat],
        phases: Sequence[Phase],
        structure: StructureSpec,
        verdict: VerdictBy,
        groups: Mapping[str, tuple[int, ...]] = MappingProxyType({}),
    ) -> Society:
        return Society(
            name=name,
            seats=seats,
            phases=phases,
            verdict=verdict,
            structure=structure,
            task=self.task,
            limits=self.limits,
            groups=groups,
        )


def _seated(seat: Seat, role: str) -> Seat:
    return replace(seat, member=replace(seat.member, role=role))


def _caption(who: str) -> Ask:
    """Each says what it sees, by itself."""
    form, alone = TextForm(max_tokens=32), Hears(scope="none")
    return Ask(ask=who, prompt=Inline(text=SEE), label="caption", form=form, hears=alone)
