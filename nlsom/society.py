"""A society: members, structure and program, ready to be asked."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import json
import uuid
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Self
from weakref import WeakValueDictionary

from nlsom.agent import Agent
from nlsom.bus import Bus, MemoryBus
from nlsom.errors import ConfigError, Fault, NlsomError, UsageError
from nlsom.media import MediaStore, Source
from nlsom.member import Member
from nlsom.mindstorm import Mindstorm
from nlsom.phase import Ask, Inline, Limits, Phase, Repeat
from nlsom.program import Decision, Program, Rounds, Seating, Step, flatten
from nlsom.rules import TieBreak
from nlsom.scheduler import Scheduler
from nlsom.structure import Democracy, Structure, StructureSpec
from nlsom.task import Task, VqaTask
from nlsom.template import Template, Templates
from nlsom.trace.contract import SCHEMA, Trace
from nlsom.verdict import Rule, SettlingRule, Verdict


@dataclass(frozen=True, slots=True)
class Seat:
    """A member and the agent that speaks for it.

    Attributes:
        member: Who sits there.
        agent: Who speaks for it.
        limit: How many turns of it may run at once; None is without limit.
    """

    member: Member
    agent: Agent
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class VerdictBy:
    """How the verdict comes about.

    Attributes:
        rule: Counts the votes.
        name: What the rule is called in the verdict.
        of: Whose votes count: a member, a group, a role, or `everyone`; None takes all who were asked.
        over: Label of the votes; None takes `ballot` if a phase has it, else the last phase's.
        tie_break: What chooses among tied alternatives.
        competence: Probability that a member is right, by name: its reputation.
    """

    rule: Rule
    name: str
    of: str | None = None
    over: str | None = None
    tie_break: TieBreak = "none"
    competence: Mapping[str, float] = field(default_factory=dict[str, float])


Reach = Callable[["Society"], AbstractAsyncContextManager[Bus]]
"""Makes the bus on which the members of a society are found."""


@dataclass
class Society:
    """Members who hold mindstorms.

    Use it as an async context manager: that opens its agents and models, and closes them again. One society
    may hold many mindstorms at once.

    Attributes:
        name: What it is called.
        seats: Its members and their agents, in declaration order.
        phases: The phases of a mindstorm.
        verdict: How the verdict comes about.
        structure: Whose messages may reach whom: made from the members.
        task: The kind of task it works on.
        limits: What a mindstorm may spend.
        groups: Names that stand for several members, beside roles.
        templates: Where prompts are found by name.
        about: What it is, in a sentence.
        trace: Where outcomes are kept; opened and closed by whoever made it.
        bus: What carries its turns, to members who are hosted on it already, or a function that makes one
            for this society, to be opened and closed with it; if none is given, a bus within this process,
            where the agents of `seats` are opened and hosted.
        media: Where its pictures live.
        retry_failed: Whether members that abstained in an earlier run of a mindstorm are asked again.
        source: What it was read from, with all overrides; None for one made in Python.
    """

    name: str
    seats: Sequence[Seat]
    phases: Sequence[Phase]
    verdict: VerdictBy
    structure: StructureSpec = field(default_factory=Democracy)
    task: type[Task] = VqaTask
    limits: Limits = field(default_factory=Limits)
    groups: Mapping[str, tuple[int, ...]] = field(default_factory=dict[str, "tuple[int, ...]"])
    templates: Templates = field(default_factory=lambda: Templates(()))
    about: str = ""
    trace: Trace | None = None
    bus: Bus | Reach | None = None
    media: MediaStore = field(default_factory=MediaStore)
    retry_failed: bool = False
    source: Mapping[str, object] | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        self.program = _Compiler(self).program()
        self._built = ""
        self._stack: AsyncExitStack | None = None
        self._bus: Bus | None = None
        self._one_at_a_time: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @property
    def members(self) -> tuple[Member, ...]:
        """Its members, in declaration order."""
        return self.program.members

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            if self.bus is None:
                for part in self.parts():
                    await stack.enter_async_context(part)
            await self._open(stack)
        return self

    async def _open(self, stack: AsyncExitStack) -> None:
        """Hosts the agents, which are open by now; the society closes what `stack` holds."""
        if self._stack is not None:
            raise NlsomError(f"society {self.name!r} is open already")
        if self.bus is None:
            self._bus = MemoryBus()
            stack.push_async_callback(self._bus.close)
            for seat in self.seats:
                await self._bus.host(seat.member.name, seat.agent, limit=seat.limit)
        elif callable(self.bus):
            self._bus = await stack.enter_async_context(self.bus(self))
        else:
            self._bus = self.bus
        # Only now: a model behind a server says what it is when it is opened.
        identities = tuple(await self._bus.describe(self.program.names))
        self.program = replace(self.program, identities=identities)
        self._built = self._build(self.limits)
        self._stack = stack.pop_all()

    def _build(self, limits: Limits) -> str:
        """What it takes to build this society again, for the header of its mindstorms."""
        if self.source is None:
            return ""
        source = self.source
        if limits != self.limits:
            source = {**source, "limits": limits.model_dump(mode="json", exclude_none=True)}
        prompts = {
            step.ask.prompt: step.template.source
            for step in self.program.flat
            if isinstance(step.ask.prompt, str)
        }
        identities = dict(zip(self.program.names, self.program.identities, strict=True))
        return json.dumps({"society": source, "prompts": prompts, "identities": identities})

    def parts(self, seats: Sequence[Seat] | None = None) -> list[AbstractAsyncContextManager[Any]]:
        """What is opened with the society, or with some seats: models, which agents may share, and agents."""
        agents: list[Any] = [seat.agent for seat in (self.seats if seats is None else seats)]
        models: list[Any] = [getattr(agent, "model", None) for agent in agents]
        once = {id(part): part for part in [*models, *agents]}
        return [part for part in once.values() if isinstance(part, AbstractAsyncContextManager)]

    @asynccontextmanager
    async def hosted(self, bus: Bus, only: Sequence[str] = ()) -> AsyncGenerator[tuple[str, ...]]:
        """Opens the agents of its members and hosts them on a bus, without a scheduler: a worker.

        Args:
            bus: Where they are hosted.
            only: Members, groups or roles; all members if none is given.

        Yields:
            The names of the members that are hosted.

        Raises:
            UsageError: Nobody is called so.
        """
        seating = Seating(self.members, self.groups)
        chosen = {at for one in only or ("everyone",) for at in seating.select(one)}
        seats = [self.seats[at] for at in sorted(chosen)]
        async with AsyncExitStack() as stack:
            for part in self.parts(seats):
                await stack.enter_async_context(part)
            for seat in seats:
                await bus.host(seat.member.name, seat.agent, limit=seat.limit)
            yield tuple(seat.member.name for seat in seats)

    @property
    def cast(self) -> str:
        """SHA-256 (hex) of its name and members: what the workers that host them have to agree on.

        Prompts, rounds, rule and limits are not in it: they are the scheduler's business.
        """
        told = [self.name, [(member.name, member.role, member.persona) for member in self.members]]
        return hashlib.sha256(json.dumps(told).encode()).hexdigest()

    async def __aexit__(self, *_: object) -> None:
        stack, self._stack, self._bus = self._stack, None, None
        if stack is not None:
            await stack.aclose()

    async def ask(
        self,
        question: str | Task,
        *,
        images: Sequence[Source] = (),
        choices: Sequence[str] = (),
        context: str = "",
        seed: int = 0,
    ) -> Verdict:
        """Holds a mindstorm and returns its verdict.

        Args:
            question: What is asked, or a whole task.
            images: Pictures: paths, URLs, `data:` URLs, bytes or PIL images.
            choices: The options of a multiple choice.
            context: What was said before, in plain words.
            seed: The run's seed.

        Raises:
            NlsomError: The mindstorm stopped without a verdict.
            MediaError: A picture is not let in.
            UsageError: Pictures, choices or a context are given beside a whole task.
        """
        if isinstance(question, Task) and (images or choices or context):
            raise UsageError("a whole task is given: put images, choices and context into it")
        if not isinstance(question, Task):
            question = await self.make_task(question, images=images, choices=choices, context=context)
        async with self._scheduled(question, seed) as scheduler:
            return await scheduler.run()

    async def make_task(
        self,
        question: str | None = None,
        *,
        images: Sequence[Source] = (),
        choices: Sequence[str] = (),
        context: str = "",
    ) -> Task:
        """A task of the society's kind, its pictures let in by the media gate.

        Raises:
            UsageError: There is no question, and the kind of task has none of its own.
            MediaError: A picture is not let in.
        """
        kept = [await self.media.add(image) for image in images]
        asked: dict[str, Any] = {} if question is None else {"question": question}
        if question is None and self.task.model_fields["question"].is_required():
            raise UsageError(f"society {self.name!r} works on {self.task.kind} tasks: give it a question")
        return self.task(**asked, images=tuple(kept), choices=tuple(choices), context=context)

    @asynccontextmanager
    async def mindstorm(
        self, task: Task, *, seed: int = 0, limits: Limits | None = None
    ) -> AsyncGenerator[Mindstorm]:
        """A mindstorm to watch: iterate over it for its events. Leaving the block cancels it.

        Args:
            task: What is asked.
            seed: The run's seed.
            limits: What it may spend; None for what the society's file says.
        """
        async with self._scheduled(task, seed, limits) as scheduler:
            assert self._bus is not None
            async with Mindstorm(scheduler, self._bus, scheduler.id) as storm:
                yield storm

    def id_of(self, task: Task, *, seed: int = 0, limits: Limits | None = None) -> str:
        """The id of a mindstorm that a trace keeps: the same for the same question, seed and limits."""
        return self._id(self._limited(limits), task, seed)

    def _id(self, program: Program, task: Task, seed: int) -> str:
        told = f"{SCHEMA}\x1f{program.digest}\x1f{task.digest}\x1f{seed}"
        return hashlib.sha256(told.encode()).hexdigest()[:16]

    def _limited(self, limits: Limits | None) -> Program:
        same = limits is None or limits == self.program.limits
        return self.program if same else replace(self.program, limits=limits)

    @asynccontextmanager
    async def _scheduled(
        self, task: Task, seed: int, limits: Limits | None = None
    ) -> AsyncGenerator[Scheduler]:
        if self._bus is None:
            raise NlsomError(f"open the society first: `async with society:` ({self.name!r})")
        if not isinstance(task, self.task):
            raise UsageError(f"society {self.name!r} works on {self.task.kind} tasks, not on {task.kind}")
        program = self._limited(limits)
        if self.trace is None:
            yield self._schedule(uuid.uuid4().hex[:16], program, task, seed)
            return
        id = self._id(program, task, seed)
        # The same question with the same seed is the same mindstorm: whoever comes second waits, and then
        # finds every outcome in the trace.
        lock = self._one_at_a_time.setdefault(id, asyncio.Lock())
        async with lock:
            yield self._schedule(id, program, task, seed)

    def _schedule(self, id: str, program: Program, task: Task, seed: int) -> Scheduler:
        assert self._bus is not None
        return Scheduler(
            program,
            task,
            mindstorm=id,
            seed=seed,
            bus=self._bus,
            agents=[seat.agent for seat in self.seats],
            addresses=program.names,
            media=self.media,
            trace=self.trace,
            retry_failed=self.retry_failed,
            built=self._built if program.limits == self.limits else self._build(program.limits),
        )


def narrowed(society: Society, *, seconds: float | None = None, tokens: int | None = None) -> Society:
    """The same society, not open, whose mindstorms may spend no more than what is given."""
    limits = society.limits.narrowed(seconds=seconds, tokens=tokens)
    if limits == society.limits:
        return society
    source = society.source
    if source is not None:
        source = {**source, "limits": limits.model_dump(mode="json", exclude_none=True)}
    return replace(society, limits=limits, source=source)


@asynccontextmanager
async def opened_together(societies: Sequence[Society]) -> AsyncGenerator[None]:
    """Opens several societies; a model that some of them share is opened once.

    Raises:
        NlsomError: One of them is open already.
    """
    async with AsyncExitStack() as stack:
        parts = [part for society in societies if society.bus is None for part in society.parts()]
        for part in {id(part): part for part in parts}.values():
            await stack.enter_async_context(part)
        for society in societies:
            async with AsyncExitStack() as own:
                await society._open(own)  # pyright: ignore[reportPrivateUsage]
            stack.push_async_exit(society)
        yield


class _Compiler:
    """Checks a society's declarations and binds them; tells all faults at once."""

    def __init__(self, society: Society) -> None:
        self._society = society
        self._members = tuple(seat.member for seat in society.seats)
        self._seating = Seating(self._members, society.groups)
        self._faults: list[Fault] = []
        self._where: dict[str, str] = {}

    def program(self) -> Program:
        society = self._society
        self._check_members()
        structure = self._built(society.structure, "structure")
        steps: list[Step | Rounds] = []
        for at, phase in enumerate(society.phases):
            where = f"mindstorm.{at}"
            steps.append(
                self._rounds(phase, where, structure)
                if isinstance(phase, Repeat)
                else self._step(phase, where, structure, rounds=1)
            )
        decision = self._decision(steps)
        self._check_hearing(steps)
        if self._faults:
            raise ConfigError(self._faults)
        return Program(
            name=society.name,
            members=self._members,
            identities=("",) * len(self._members),
            steps=tuple(steps),
            decision=decision,
            limits=society.limits,
        )

    def _built(self, spec: StructureSpec, where: str) -> Structure:
        try:
            return spec.build(self._members)
        except ConfigError as error:
            self._faults += [Fault(f"{where}.{fault.where}", fault.what) for fault in error.faults]
            return Democracy().build(self._members)

    def _fault(self, where: str, what: object) -> None:
        self._faults.append(Fault(where, str(what)))

    def _check_members(self) -> None:
        if not self._members:
            self._fault("members", "a society needs at least one member")
        seen: set[str] = set()
        for member in self._members:
            if member.name in seen:
                self._fault(f"members.{member.name}", "two members have this name")
            if not member.name.strip() or not member.name.isprintable():
                self._fault(f"members.{member.name!r}", "a name needs printable text, on one line")
            seen.add(member.name)

    def _select(self, selector: str, where: str) -> tuple[int, ...]:
        try:
            return self._seating.select(selector)
        except UsageError as error:
            self._fault(where, error)
            return ()

    def _step(self, ask: Ask, where: str, structure: Structure, *, rounds: int) -> Step:
        society = self._society
        name = ask.name or ask.label
        if name in self._where:
            name = next(f"{name}#{n}" for n in itertools.count(2) if f"{name}#{n}" not in self._where)
        self._where[name] = where
        try:
            if isinstance(ask.prompt, Inline):
                template = Template.of(ask.prompt.text)
            else:
                template = society.templates.get(ask.prompt, society.task.kind)
        except UsageError as error:
            self._fault(f"{where}.prompt", error)
            template = Template.of("")
        if unknown := sorted(name for name in template.reads if not _has(society.task, name)):
            told = f"{template.name}: a {society.task.kind} task has no {unknown[0]!r}"
            self._fault(f"{where}.prompt", told)
        if ask.wait != "all" and ask.order != "together":
            self._fault(f"{where}.wait", "`wait` is for members who are asked together, not in turn")
        who = self._select(ask.ask, f"{where}.ask")
        if ask.structure is not None:
            structure = self._built(ask.structure, f"{where}.structure")
        return Step(
            ask=ask,
            name=name,
            who=who,
            template=template,
            structure=structure,
            quorum=society.limits.quorum if ask.quorum is None else ask.quorum,
            on_error=ask.on_error or society.limits.on_error,
            rounds=rounds,
        )

    def _rounds(self, repeat: Repeat, where: str, structure: Structure) -> Rounds:
        steps = tuple(
            self._step(ask, f"{where}.phases.{at}", structure, rounds=repeat.repeat)
            for at, ask in enumerate(repeat.phases)
        )
        until = repeat.until
        of = self._select(until.of, f"{where}.until.of") if until and until.of else ()
        if until is not None and (until.agreement or until.unchanged):
            labels = {step.ask.label for step in steps}
            if until.over not in labels:
                self._fault(f"{where}.until.over", f"no phase of this repeat is labelled {until.over!r}")
        return Rounds(repeat.repeat, steps, until, of)

    def _decision(self, steps: Sequence[Step | Rounds]) -> Decision:
        by = self._society.verdict
        flat = flatten(steps)
        if not flat:
            self._fault("mindstorm", "a mindstorm needs at least one phase")
        labels = [step.ask.label for step in flat]
        over = by.over or ("ballot" if "ballot" in labels else labels[-1] if labels else "ballot")
        if over not in labels:
            self._fault("verdict.over", f"no phase is labelled {over!r}; there are {', '.join(labels)}")
        asked = {at for step in flat if step.ask.label == over for at in step.who}
        of = self._select(by.of, "verdict.of") if by.of is not None else tuple(sorted(asked))
        if never := [self._members[at].name for at in of if at not in asked]:
            self._fault("verdict.of", f"{never[0]!r} is never asked for a {over!r}")
        for step in flat:
            if step.ask.wait == "certain":
                where = f"{self._where[step.name]}.wait"
                if step is not flat[-1] or step.ask.label != over:
                    self._fault(where, "`wait: certain` is for the last phase, the one that is counted")
                elif not isinstance(by.rule, SettlingRule):
                    self._fault(where, f"`wait: certain` cannot be had with the rule {by.name!r}")
        proposals = {step.ask.over for step in flat if step.ask.label == over}
        if len(proposals) > 1:
            self._fault("verdict.over", f"phases labelled {over!r} vote over different things")
        voters = {self._members[at].name for at in of}
        competence = {name: p for name, p in by.competence.items() if name in voters}
        return Decision(by.rule, by.name, over, of, by.tie_break, next(iter(proposals), None), competence)

    def _check_hearing(self, steps: Sequence[Step | Rounds]) -> None:
        """A label that nobody who is asked could ever hear is a slip of the pen."""
        flat = flatten(steps)
        senders: dict[str, set[int]] = {}
        for step in flat:
            senders.setdefault(step.ask.label, set()).update(step.who)
        for step in flat:
            if step.ask.over is not None and step.ask.over not in senders:
                where = f"{self._where[step.name]}.over"
                self._fault(where, f"no phase is labelled {step.ask.over!r}; there are {_names(senders)}")
            for label in step.ask.hears.label or ():
                where = f"{self._where[step.name]}.hears.label"
                if label not in senders:
                    self._fault(where, f"no phase is labelled {label!r}; there are {_names(senders)}")
                    continue
                said = senders[label]
                if (
                    step.who
                    and said
                    and not any(
                        at in said or not said.isdisjoint(step.structure.hears(at)) for at in step.who
                    )
                ):
                    self._fault(
                        where, f"nobody asked here can hear those who say {label!r} in this structure"
                    )


def _has(task: type[Task], name: str) -> bool:
    return name in task.model_fields or hasattr(task, name)


def _names(labels: Iterable[str]) -> str:
    return ", ".join(sorted(labels))


__all__ = ["Seat", "Society", "VerdictBy", "narrowed", "opened_together"]
