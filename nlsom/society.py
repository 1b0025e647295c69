"""A society: members, structure and program, ready to be asked."""

from __future__ import annotations

import hashlib
import json
import reprlib
import uuid
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Self

from pydantic import JsonValue, ValidationError

from nlsom.blueprint import Blueprint, Seat
from nlsom.bus import Bus, MemoryBus
from nlsom.compiler import Compiler
from nlsom.errors import NlsomError, Unavailable, UsageError, cause_of
from nlsom.media import MediaStore, Source
from nlsom.member import Member
from nlsom.mindstorm import Mindstorm
from nlsom.phase import Limits
from nlsom.program import Program, Seating
from nlsom.scheduler import Scheduler
from nlsom.task import Task
from nlsom.trace.contract import SCHEMA, Trace
from nlsom.verdict import Verdict

Reach = Callable[["Society"], AbstractAsyncContextManager[Bus]]
"""Makes the bus on which the members of a society are hosted."""


@dataclass
class Society(Blueprint):
    """Members who hold mindstorms, from `nlsom.load` or made in Python.

    As an async context manager, it opens its agents and models, and closes them again. One society may hold
    many mindstorms at once. The attributes of `Blueprint` say what it is made of; those below, how it runs.

    Attributes:
        trace: Where outcomes are kept; whoever made it opens and closes it. None keeps them nowhere.
        bus: A bus on which the members are hosted already, or a function that makes one, which is opened
            and closed with the society. None for a bus within this process, on which the agents of `seats`
            are opened and hosted.
        media: Where its pictures live.
        retry_failed: Whether members that abstained in an earlier run of a mindstorm are asked again.
        source: The file it was read from, with all overrides; None if it was made in Python.

    Raises:
        ConfigError: The declarations are faulty; lists everything that is wrong.
    """

    trace: Trace | None = None
    bus: Bus | Reach | None = None
    media: MediaStore = field(default_factory=MediaStore)
    retry_failed: bool = False
    source: Mapping[str, object] | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        self.program = Compiler(self).program()
        self._built = ""
        self._taken = False
        self._stack: AsyncExitStack | None = None
        self._bus: Bus | None = None

    @property
    def members(self) -> tuple[Member, ...]:
        """Its members, in declaration order."""
        return self.program.members

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            self._take(stack)
            if self.bus is None:
                await _enter(stack, self.seats)
            await self._open(stack)
        return self

    async def __aexit__(self, *_: object) -> None:
        stack, self._stack, self._bus = self._stack, None, None
        if stack is not None:
            await stack.aclose()

    def _take(self, stack: AsyncExitStack) -> None:
        """Marks the society as open until `stack` is closed. Comes first: its parts may be in use."""
        if self._taken:
            raise NlsomError(f"society {self.name!r} is open already")
        self._taken = True
        stack.callback(setattr, self, "_taken", False)

    async def _open(self, stack: AsyncExitStack) -> None:
        """Hosts the agents, which have been opened, and keeps `stack` for closing."""
        if self.bus is None:
            self._bus = MemoryBus()
            stack.push_async_callback(self._bus.close)
            for seat in self.seats:
                await self._bus.host(seat.member.name, seat.agent, limit=seat.limit)
        elif callable(self.bus):
            self._bus = await stack.enter_async_context(self.bus(self))
        else:
            self._bus = self.bus
        # Only now: a model behind a server learns what it is when it is opened.
        identities = tuple(await self._bus.describe(self.program.names))
        self.program = replace(self.program, identities=identities)
        self._built = self._build(self.limits)
        self._stack = stack.pop_all()

    def _build(self, limits: Limits) -> str:
        """What is needed to build this society again (JSON); "" if it was made in Python."""
        if self.source is None:
            return ""
        source = self.source if limits == self.limits else _with_limits(self.source, limits)
        prompts = {
            step.ask.prompt: step.template.source
            for step in self.program.flat
            if isinstance(step.ask.prompt, str)
        }
        identities = dict(zip(self.program.names, self.program.identities, strict=True))
        return json.dumps({"society": source, "prompts": prompts, "identities": identities})

    @asynccontextmanager
    async def hosted(self, bus: Bus, only: Sequence[str] = ()) -> AsyncGenerator[tuple[str, ...]]:
        """Opens agents and hosts them on a bus, as a worker does. The society itself need not be open.

        Args:
            bus: Where they are hosted.
            only: Members, groups or roles to host; all members if empty.

        Yields:
            The names of the members that are hosted.

        Raises:
            UsageError: There is no such member, group or role.
        """
        seating = Seating(self.members, self.groups)
        chosen = {at for one in only or ("everyone",) for at in seating.select(one)}
        seats = [self.seats[at] for at in sorted(chosen)]
        async with AsyncExitStack() as stack:
            await _enter(stack, seats)
            for seat in seats:
                await bus.host(seat.member.name, seat.agent, limit=seat.limit)
            yield tuple(seat.member.name for seat in seats)

    @property
    def cast(self) -> str:
        """SHA-256 (hex) of its name and members: what scheduler and workers have to agree on.

        Prompts, rounds, rule and limits are not part of it: only the scheduler needs them.
        """
        told = [self.name, [(member.name, member.role, member.persona) for member in self.members]]
        return hashlib.sha256(json.dumps(told).encode()).hexdigest()

    async def ask(
        self,
        question: str | Task,
        *,
        images: Sequence[Source] = (),
        choices: Sequence[str] = (),
        context: str = "",
        extra: Mapping[str, JsonValue] | None = None,
        seed: int = 0,
    ) -> Verdict:
        """Holds a mindstorm and returns its verdict.

        Args:
            question: What is asked; or a whole task, which holds everything else but the seed.
            images: Paths, URLs, `data:` URLs, bytes or PIL images.
            choices: The options of a multiple choice; empty for an open question.
            context: What was said before, in plain words.
            extra: Anything else, such as `evidence`, of which members with `sees: share` get their share.
            seed: The run's seed.

        Raises:
            UsageError: The question, or something given with it, cannot be used.
            MediaError: The media gate refuses a picture.
            NoVerdict: A member failed under `on_error: raise`.
            NlsomError: The mindstorm stopped otherwise, such as with `TraceError` or `BusClosed`.
        """
        if isinstance(question, Task) and (images or choices or context or extra):
            raise UsageError("a whole task is given: put images, choices, context and extra into it")
        if not isinstance(question, Task):
            question = await self.make_task(
                question, images=images, choices=choices, context=context, extra=extra
            )
        async with self._scheduler(self._opened(), question, seed) as scheduler:
            return await scheduler.run()

    async def make_task(
        self,
        question: str | None = None,
        *,
        images: Sequence[Source] = (),
        choices: Sequence[str] = (),
        context: str = "",
        extra: Mapping[str, JsonValue] | None = None,
    ) -> Task:
        """Makes a task of the society's kind; its pictures pass the media gate. Takes what `ask` takes.

        Raises:
            UsageError: There is no question, although this kind of task needs one; something given has the
                wrong type; or two choices are the same.
            MediaError: The media gate refuses a picture.
        """
        lists: dict[str, object] = {"images": images, "choices": choices}
        for name, given in lists.items():
            if isinstance(given, str | bytes) or not isinstance(given, Sequence):
                raise UsageError(f"{name}={reprlib.repr(given)}: give a list")
        asked: dict[str, Any] = {"extra": extra or {}} | ({} if question is None else {"question": question})
        if question is None and self.task.model_fields["question"].is_required():
            raise UsageError(f"society {self.name!r} works on {self.task.kind} tasks: give it a question")
        kept = [await self.media.add(image) for image in images]
        try:
            task = self.task(**asked, images=tuple(kept), choices=tuple(choices), context=context)
        except ValidationError as error:
            told = "; ".join(
                f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors(include_url=False)
            )
            raise UsageError(f"this makes no {self.task.kind} task: {told}") from None
        if len(set(task.choices)) < len(task.choices):
            raise UsageError(f"choices={choices!r}: one is there twice, so that no vote could tell which")
        return task

    @asynccontextmanager
    async def mindstorm(
        self, task: Task, *, seed: int = 0, limits: Limits | None = None
    ) -> AsyncGenerator[Mindstorm]:
        """Begins a mindstorm to watch, for an `async with` block; leaving the block cancels it.

        Args:
            task: What is asked; `make_task` makes one.
            seed: The run's seed.
            limits: What it may spend; None for the society's `limits`.
        """
        bus = self._opened()
        async with Mindstorm(self._scheduler(bus, task, seed, limits), bus) as storm:
            yield storm

    def id_of(self, task: Task, *, seed: int = 0, limits: Limits | None = None) -> str:
        """The id of a mindstorm in a trace: the same for equal task, seed and limits."""
        return self._id(self._program(limits), task, seed)

    def _id(self, program: Program, task: Task, seed: int) -> str:
        told = f"{SCHEMA}\x1f{program.digest}\x1f{task.digest}\x1f{seed}"
        return hashlib.sha256(told.encode()).hexdigest()[:16]

    def _program(self, limits: Limits | None) -> Program:
        same = limits is None or limits == self.program.limits
        return self.program if same else replace(self.program, limits=limits)

    def _opened(self) -> Bus:
        if self._bus is None:
            raise NlsomError(f"open the society first: `async with society:` ({self.name!r})")
        return self._bus

    def _scheduler(self, bus: Bus, task: Task, seed: int, limits: Limits | None = None) -> Scheduler:
        if not isinstance(task, self.task):
            given = getattr(task, "kind", type(task).__name__)
            told = f"society {self.name!r} works on {self.task.kind} tasks, not on {given}"
            raise UsageError(f"{told}; `await society.make_task(…)` makes one")
        program = self._program(limits)
        return Scheduler(
            program,
            task,
            mindstorm=uuid.uuid4().hex[:16] if self.trace is None else self._id(program, task, seed),
            seed=seed,
            bus=bus,
            agents=[seat.agent for seat in self.seats],
            media=self.media,
            trace=self.trace,
            retry_failed=self.retry_failed,
            built=self._built if program.limits == self.limits else self._build(program.limits),
        )


async def _enter(stack: AsyncExitStack, seats: Sequence[Seat]) -> None:
    """Opens what seats need, once each: models, which agents may share, then agents.

    Raises:
        Unavailable: One of them raised an error of its own.
    """
    agents: list[Any] = [seat.agent for seat in seats]
    models: list[Any] = [getattr(agent, "model", None) for agent in agents]
    once: dict[int, Any] = {id(part): part for part in [*models, *agents]}
    parts: list[AbstractAsyncContextManager[Any]] = [
        part for part in once.values() if isinstance(part, AbstractAsyncContextManager)
    ]
    for part in parts:
        try:
            await stack.enter_async_context(part)
        except NlsomError:
            raise
        except Exception as error:
            # An agent's or a model's own code, which may raise anything: the error says whose it is.
            raise Unavailable(f"{type(part).__name__} cannot be opened: {cause_of(error)}") from error


def _with_limits(source: Mapping[str, object], limits: Limits) -> Mapping[str, object]:
    """What a society was read from, with other limits."""
    return {**source, "limits": limits.model_dump(mode="json", exclude_none=True)}


def narrowed(society: Society, *, seconds: float | None = None, tokens: int | None = None) -> Society:
    """The same society, not open, with its limits lowered to what is given."""
    limits = society.limits.narrowed(seconds=seconds, tokens=tokens)
    if limits == society.limits:
        return society
    source = None if society.source is None else _with_limits(society.source, limits)
    return replace(society, limits=limits, source=source)


@asynccontextmanager
async def opened_together(societies: Sequence[Society]) -> AsyncGenerator[None]:
    """Opens several societies; models that they share are opened once.

    Raises:
        NlsomError: One of them is open already.
    """
    async with AsyncExitStack() as stack:
        for society in societies:
            society._take(stack)  # pyright: ignore[reportPrivateUsage]
        hosted = [seat for society in societies if society.bus is None for seat in society.seats]
        await _enter(stack, hosted)
        for society in societies:
            async with AsyncExitStack() as own:
                await society._open(own)  # pyright: ignore[reportPrivateUsage]
            stack.push_async_exit(society)
        yield
