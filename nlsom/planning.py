"""What a mindstorm would cost, before anything runs.

The program itself is run, by the real scheduler, with members that say nothing worth reading at the greatest
length that they may: so every prompt is laid out as it would be, and what is counted is the most that can
come. Conditions that end rounds early are left out of account.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from nlsom.agent import Agent
from nlsom.budget import Cost, Priced
from nlsom.form import (
    ApprovalForm,
    ChoiceForm,
    GrammarForm,
    JsonForm,
    NumberForm,
    RankingForm,
    ScoresForm,
    TextForm,
    YesNoForm,
)
from nlsom.message import Said
from nlsom.model.prompt import render
from nlsom.phase import Limits, Phase, Repeat
from nlsom.society import Society
from nlsom.task import Task
from nlsom.turn import Turn

LETTERS = 3.5
"""Letters a token, in English: a little fewer than most tokenizers manage, so that the estimate is high."""
PICTURE = 600
"""Tokens a picture, of those who see it."""


@dataclass(slots=True)
class Planned:
    """One phase in one round.

    Attributes:
        phase: Its name.
        round: From 1.
        asked: Members asked.
        calls: Calls of models.
        pictures: Pictures sent.
        read: Tokens of all prompts, estimated.
        longest: Tokens of the longest prompt.
        written: Tokens of all replies, at most.
        shared: Share of the prompts' text in which they begin alike; 1 where one member is asked.
    """

    phase: str
    round: int
    asked: int = 0
    calls: int = 0
    pictures: int = 0
    read: int = 0
    longest: int = 0
    written: int = 0
    shared: float = 1.0
    prompts: list[str] = field(default_factory=list[str], repr=False)


@dataclass(frozen=True, slots=True)
class Plan:
    """What a mindstorm comes to at most.

    Attributes:
        phases: In order; one entry a phase and round.
        over: The limits of the society that it would break, by name.
    """

    phases: tuple[Planned, ...]
    over: tuple[str, ...]

    @property
    def total(self) -> Planned:
        """All phases together."""
        whole = Planned("total", 0)
        for one in self.phases:
            whole.asked += one.asked
            whole.calls += one.calls
            whole.pictures += one.pictures
            whole.read += one.read
            whole.written += one.written
            whole.longest = max(whole.longest, one.longest)
        letters = [sum(map(len, one.prompts)) for one in self.phases]
        if sum(letters):
            alike = sum(one.shared * n for one, n in zip(self.phases, letters, strict=True))
            whole.shared = alike / sum(letters)
        return whole


async def plan(society: Society, task: Task) -> Plan:
    """Plans a mindstorm. Opens nothing: neither models nor servers are needed.

    Args:
        society: Any society, open or not.
        task: What it would be asked.
    """
    phases: dict[tuple[str, int], Planned] = {}
    seats = [
        replace(seat, agent=await _stand_in(seat.agent, task, phases), limit=None) for seat in society.seats
    ]
    rehearsed = replace(
        society,
        seats=seats,
        phases=[_whole(phase) for phase in society.phases],
        limits=Limits(quorum=0),
        trace=None,
        bus=None,
    )
    async with rehearsed:
        await rehearsed.ask(task)
    for one in phases.values():
        one.shared = shared(one.prompts)
    total = Plan(tuple(phases.values()), ()).total
    limits = society.limits
    over = [
        name
        for name, most, limit in (
            ("calls", total.calls, limits.calls),
            ("tokens", total.read + total.written, limits.tokens),
        )
        if limit is not None and most > limit
    ]
    return Plan(tuple(phases.values()), tuple(over))


def shared(prompts: Sequence[str]) -> float:
    """The share of all their letters in which prompts begin alike; 1 for one prompt."""
    if len(prompts) < 2:
        return 1.0
    first, last = min(prompts), max(prompts)  # what these two share, all between them share
    differ = (at for at, (a, b) in enumerate(zip(first, last, strict=False)) if a != b)
    alike = next(differ, min(len(first), len(last)))
    return alike * len(prompts) / sum(map(len, prompts))


def _whole(phase: Phase) -> Phase:
    """The phase without what may end it early."""
    if isinstance(phase, Repeat):
        phases = tuple(ask.model_copy(update={"wait": "all", "seconds": None}) for ask in phase.phases)
        return phase.model_copy(update={"until": None, "phases": phases})
    return phase.model_copy(update={"wait": "all", "seconds": None})


async def _stand_in(agent: Agent, task: Task, phases: dict[tuple[str, int], Planned]) -> _StandIn:
    inner = getattr(agent, "society", None)
    if not isinstance(inner, Society):
        return _StandIn(agent, Cost(), phases)
    asked = inner.task(question=task.question, images=task.images, choices=task.choices, extra=task.extra)
    total = (await plan(inner, asked)).total
    return _StandIn(agent, Cost(total.calls, total.read + total.written), phases)


@dataclass(slots=True)
class _StandIn:
    """Says as much as the member's agent may say, and notes what that would have cost."""

    agent: Agent
    nested: Cost
    phases: dict[tuple[str, int], Planned]

    async def speak(self, turn: Turn) -> Said | None:
        key = (turn.phase, turn.round)
        noted = self.phases.setdefault(key, Planned(*key))
        noted.asked += 1
        noted.calls += self.nested.calls
        noted.read += self.nested.tokens
        form = turn.form
        if not isinstance(self.agent, Priced):
            return Said.words(_most(turn, 60))
        prompt = render(turn)
        pictures = len(prompt.images) if getattr(self.agent, "sees", False) else 0
        tokens = int(len(prompt.text) / LETTERS) + PICTURE * pictures
        noted.prompts.append(prompt.text)
        noted.calls += 1
        noted.pictures += pictures
        noted.read += tokens
        noted.longest = max(noted.longest, tokens)
        noted.written += form.max_tokens
        return Said.words(_most(turn, form.max_tokens))


def _most(turn: Turn, tokens: int) -> str:
    """A reply in the form, of so many tokens where it is free text; unlike what others say."""
    form = turn.form
    match form:
        case ChoiceForm():
            return form.labels[0]
        case YesNoForm():
            return "no"
        case NumberForm():
            return "1"
        case ApprovalForm():
            return ", ".join(form.labels)
        case RankingForm():
            return " > ".join(form.labels)
        case ScoresForm():
            return ", ".join(f"{label}={form.high}" for label in form.labels)
        case JsonForm():
            return "[]"
        case TextForm() | GrammarForm():
            words = "word " * max(1, int(tokens * LETTERS / 5))
            return f"{turn.member.name} {words}".strip()
