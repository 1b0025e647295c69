"""What a mindstorm would cost, before anything runs.

The real scheduler runs the program with stand-ins for the members, each of which replies at the greatest
length it may. So every prompt is laid out as it would be, and the counts are upper bounds. Conditions that
end phases or rounds early are ignored.
"""

from __future__ import annotations

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
"""Letters per token of English: slightly fewer than with most tokenizers, so that estimates are high."""
PICTURE = 600
"""Tokens per picture, for members that see it."""


@dataclass(slots=True)
class Prompts:
    """Counts prompts and what they share. They may be many and long, so at most two of them are kept.

    Attributes:
        number: How many prompts.
        letters: Length of all of them together, in characters.
    """

    number: int = 0
    letters: int = 0
    _first: str = field(default="", repr=False)
    _last: str = field(default="", repr=False)

    def add(self, text: str) -> None:
        """Adds a prompt."""
        # A beginning that the first and the last in alphabetical order share is shared by all in between.
        self._first = min(self._first, text) if self.number else text
        self._last = max(self._last, text)
        self.number += 1
        self.letters += len(text)

    @property
    def shared(self) -> float:
        """The part of their text that is a common beginning, from 0 to 1; 1 for a single prompt."""
        if self.number < 2:
            return 1.0
        pairs = zip(self._first, self._last, strict=False)
        differ = (at for at, (a, b) in enumerate(pairs) if a != b)
        alike = next(differ, min(len(self._first), len(self._last)))
        return alike * self.number / self.letters


@dataclass(slots=True)
class Planned:
    """The estimate for one phase in one round.

    Attributes:
        phase: Its name.
        round: From 1.
        asked: Members asked.
        calls: Calls of models.
        pictures: Pictures sent.
        read: Tokens of all prompts, estimated.
        longest: Tokens of the longest prompt.
        written: Tokens of all replies, at most.
        shared: Part of the prompts' text that is a common beginning, from 0 to 1.
        prompts: The prompts, counted.
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
    prompts: Prompts = field(default_factory=Prompts, repr=False)


@dataclass(frozen=True, slots=True)
class Plan:
    """The most that a mindstorm can cost.

    Attributes:
        phases: One entry per phase and round, in order.
        over: Names of the society's limits that this exceeds.
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
        if letters := sum(one.prompts.letters for one in self.phases):
            whole.shared = sum(one.shared * one.prompts.letters for one in self.phases) / letters
        return whole


async def plan(society: Society, task: Task) -> Plan:
    """Plans a mindstorm. Opens nothing, so needs neither models nor servers.

    Args:
        society: The society, open or not.
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
        one.shared = one.prompts.shared
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


def _whole(phase: Phase) -> Phase:
    """The phase without anything that may end it early."""
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
    """Says as much as the member's agent may say, and notes what that would cost."""

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
        noted.prompts.add(prompt.text)
        noted.calls += 1
        noted.pictures += pictures
        noted.read += tokens
        noted.longest = max(noted.longest, tokens)
        noted.written += form.max_tokens
        return Said.words(_most(turn, form.max_tokens))


def _most(turn: Turn, tokens: int) -> str:
    """A reply in the form; free text has that many tokens, and differs from member to member."""
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
