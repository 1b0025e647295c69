"""The scheduler: runs a program over a task. All control flow of a mindstorm is here.

A phase is a superstep: every turn is computed from the transcript, all run in one task group, and what they
said is appended in declaration order. So a transcript is a function of outcomes, never of timing.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from nlsom.agent import Agent
from nlsom.budget import Budget, Cost, Priced, spending
from nlsom.bus.contract import Bus
from nlsom.errors import BusClosed, MemberFailed, NlsomError
from nlsom.event import Abstained, Asked, Decided, Event, RoundClosed, Spoke, Started, Stopped
from nlsom.form import Form, TextForm
from nlsom.media import MediaStore
from nlsom.message import Message, Said, Usage
from nlsom.minutes import Minutes
from nlsom.program import Program, Rounds, Step
from nlsom.task.base import Task
from nlsom.trace.contract import SCHEMA, Header, History, Record, Trace
from nlsom.turn import Turn
from nlsom.verdict import Abstention, Verdict
from nlsom.voting import decide, form_of, is_over, settled

_LIMIT = "limit of seconds"
_LATE = "seconds of the phase"
_REFUSED = b"over the budget of "


@dataclass(slots=True)
class _Spent:
    """Running totals, in plain numbers: a value object an addition would cost more than a fast turn."""

    calls: int = 0
    prompt: int = 0
    cached: int | None = None
    completion: int = 0

    def add(self, usage: Usage) -> None:
        self.calls += usage.calls
        self.prompt += usage.prompt_tokens
        self.completion += usage.completion_tokens
        if usage.cached_tokens is not None:
            self.cached = (self.cached or 0) + usage.cached_tokens

    def usage(self, seconds: float) -> Usage:
        return Usage(
            calls=self.calls,
            prompt_tokens=self.prompt,
            cached_tokens=self.cached,
            completion_tokens=self.completion,
            seconds=round(seconds, 6),
        )


@dataclass(slots=True)
class _Superstep:
    """One phase under way: its turns, what came of them, and whether it was closed early."""

    step: Step
    round: int
    form: Form
    turns: list[tuple[int, Turn]]
    outcomes: dict[int, Record | None] = field(default_factory=dict[int, "Record | None"])
    messages: dict[int, Message] = field(default_factory=dict[int, Message])
    replied: int = 0
    tasks: dict[int, asyncio.Task[None]] = field(default_factory=dict[int, "asyncio.Task[None]"])
    closed: str | None = None
    failed: NlsomError | None = None

    def close(self, reason: str) -> None:
        """Ends the phase: whoever has not answered is cancelled."""
        if self.closed is None:
            self.closed = reason
            for task in self.tasks.values():
                task.cancel()

    def fail(self, error: NlsomError) -> None:
        """Ends the mindstorm with an error."""
        if self.failed is None:
            self.failed = error
            self.close("failed")


class Scheduler:
    """One mindstorm: a program, a task and a seed."""

    def __init__(
        self,
        program: Program,
        task: Task,
        *,
        mindstorm: str,
        seed: int,
        bus: Bus,
        agents: Sequence[Agent],
        media: MediaStore,
        addresses: Sequence[str],
        trace: Trace | None = None,
        retry_failed: bool = False,
    ) -> None:
        self._program, self._task, self._seed = program, task, seed
        self.id = self._id = mindstorm
        self._bus, self._agents, self._media = bus, agents, media
        self._addresses, self._trace, self._retry = addresses, trace, retry_failed
        limits = program.limits
        self._budget = Budget(limits.calls, limits.tokens, spending.get())
        self._minutes = Minutes(len(program.members))
        self._rounds: dict[str, int] = {}
        self._closed_rounds = 0
        self._abstained: list[Abstention] = []
        self._now, self._total = _Spent(), _Spent()
        self._saved = 0
        self._cut: str | None = None
        self._history = History()
        self._seeds = f"{seed}\x1f".encode()
        self._began = time.perf_counter()
        self._deadline: float | None = None

    async def run(self) -> Verdict:
        """Runs the mindstorm to its verdict.

        Raises:
            MemberFailed: A member failed and the society's file says `on_error: raise`.
            TraceError: The trace cannot be written; what it holds already stays.
        """
        ended = "cancelled"
        token = spending.set(self._budget)
        try:
            verdict = await self._run()
            ended = ""
            self._emit_last(Decided(mindstorm=self._id, verdict=verdict))
            return verdict
        except NlsomError as error:
            ended = str(error)
            raise
        finally:
            spending.reset(token)
            if ended:
                self._emit_last(Stopped(mindstorm=self._id, reason=ended))
            if self._trace is not None:
                self._trace.leave(self._id)

    async def _run(self) -> Verdict:
        loop = asyncio.get_running_loop()
        limits = self._program.limits
        if limits.seconds is not None:
            self._deadline = loop.time() + limits.seconds
        if self._trace is not None:
            self._history = await self._trace.open(self._header())
        if self._bus.observed:
            names = self._program.names
            self._bus.publish(
                Started(
                    mindstorm=self._id,
                    society=self._program.name,
                    members=names,
                    task=self._task,
                    seed=self._seed,
                )
            )
        for step in self._program.steps:
            await (self._repeat(step) if isinstance(step, Rounds) else self._ask(step))
            if self._cut is not None:
                break
        verdict = self._decide()
        if self._trace is not None and not self._history.decided:
            self._trace.append(Record(self._id, "verdict", body=verdict.model_dump_json().encode()))
            await self._trace.durable()
        return verdict

    def _header(self) -> Header:
        program = self._program
        return Header(
            mindstorm=self._id,
            society=program.name,
            digest=program.digest,
            members=tuple((member.name, member.role) for member in program.members),
            kind=self._task.kind,
            task=self._task.model_dump(mode="json"),
            seed=self._seed,
            started=time.time(),
            frozen=program.decision.frozen,
        )

    async def _repeat(self, rounds: Rounds) -> None:
        for _ in range(rounds.count):
            for step in rounds.steps:
                await self._ask(step)
                if self._cut is not None:
                    return
            if rounds.until is not None and is_over(rounds.until, rounds.of, self._minutes, self._task):
                return

    async def _ask(self, step: Step) -> None:
        """Runs a phase once. One that asks nobody, since their seats are empty, is left out."""
        if not step.who:
            return
        number = self._rounds[step.name] = self._rounds.get(step.name, 0) + 1
        form = form_of(step.ask, self._task, self._minutes)
        if form is None:
            self._cut = f"quorum: nobody said a {step.ask.over!r} that phase {step.name!r} could vote on"
            return
        replied = 0
        for group in self._order(step, number):
            superstep = _Superstep(step, number, form, self._turns(step, number, form, group))
            await self._superstep(superstep)
            replied += superstep.replied
            if superstep.closed is not None and self._cut is not None:
                break
        if self._trace is not None:
            await self._trace.durable()
        self._closed_rounds += 1
        if self._bus.observed:
            usage = self._now.usage(time.perf_counter() - self._began)
            self._bus.publish(
                RoundClosed(
                    mindstorm=self._id,
                    phase=step.name,
                    round=number,
                    asked=len(step.who),
                    replied=replied,
                    usage=usage,
                )
            )
        wanted = min(step.quorum, len(step.who))
        if self._cut is None and replied < wanted:
            self._cut = f"quorum: {replied} of {wanted} replied in phase {step.name!r}, round {number}"

    def _order(self, step: Step, number: int) -> Iterable[Sequence[int]]:
        """Who is asked together, and in which order."""
        order = step.ask.order
        if order == "together":
            return [step.who]
        who = list(step.who)
        if order == "random":
            names = self._program.names
            who.sort(key=lambda at: self._draw(names[at], step.name, number, "order"))
        elif order == "confidence":
            who.sort(key=lambda at: -self._sureness(at))
        return [[at] for at in who]

    def _sureness(self, at: int) -> float:
        said = self._minutes.of(at)
        return (said[-1].said.confidence or 0.0) if said else 0.0

    def _draw(self, name: str, phase: str, number: int, use: str = "") -> int:
        """A number from run seed, name, phase and round only: removing a member shifts no one else's."""
        told = f"{name}\x1f{phase}\x1f{number}\x1f{use}".encode()
        return int.from_bytes(hashlib.sha256(self._seeds + told).digest()[:4]) >> 1

    def _turns(self, step: Step, number: int, form: Form, group: Sequence[int]) -> list[tuple[int, Turn]]:
        """The turns of a superstep. What members share is computed once for all of them."""
        program, task, ask = self._program, self._task, step.ask
        shared = f"{SCHEMA}\x1f{task.digest}\x1f{form.model_dump_json()}\x1f".encode()
        text = None
        turns: list[tuple[int, Turn]] = []
        for at in group:
            member = program.members[at]
            heard, own = self._minutes.heard(step.structure, at, ask.hears)
            if text is None or step.template.personal:
                text = step.template.render(
                    task=task,
                    member=member,
                    members=program.names,
                    round=number,
                    rounds=step.rounds,
                    label=ask.label,
                )
            seed = self._draw(member.name, step.name, number)
            owned = "".join(message.digest for message in own)
            told = f"{program.member_digests[at]}{heard.digest}{owned}\x1f{seed}\x1f{text}"
            turn = Turn(
                task=task,
                ask=text,
                form=form,
                heard=heard,
                own=own,
                member=member,
                phase=step.name,
                round=number,
                seed=seed,
                key=hashlib.sha256(shared + told.encode("utf-8", "surrogatepass")).hexdigest(),
                media=self._media,
            )
            turns.append((at, turn))
        return turns

    async def _superstep(self, superstep: _Superstep) -> None:
        """Asks what has no outcome yet, waits as the phase says, and appends in declaration order."""
        asked = await self._recall(superstep)
        asked = [(at, turn) for at, turn in asked if self._reserve(superstep, at, turn)]
        if asked and superstep.closed is None:
            await self._ask_all(superstep, asked)
        if superstep.failed is not None:
            raise superstep.failed
        for at, _ in superstep.turns:
            message = superstep.messages.get(at)
            if message is not None:
                self._minutes.add(at, message)

    async def _recall(self, superstep: _Superstep) -> list[tuple[int, Turn]]:
        """Takes the outcomes that are known already; returns the turns that have none."""
        if self._trace is None:
            return superstep.turns
        step, number = superstep.step, superstep.round
        closed = self._history.closed.get((step.name, number))
        counted: set[str] | None = set(json.loads(closed.body)["counted"]) if closed else None
        open_turns: list[tuple[int, Turn]] = []
        for at, turn in superstep.turns:
            record = self._history.outcomes.get(turn.key)
            if counted is not None and turn.member.name not in counted:
                superstep.outcomes[at] = record
            elif record is None or (self._retry and record.kind != "replied"):
                open_turns.append((at, turn))
            else:
                if record.kind == "abstained" and record.body.startswith(_REFUSED):
                    self._cut = record.body.removeprefix(_REFUSED).decode()
                self._settle(superstep, at, turn, record, again=True)
        if open_turns:
            found = await self._trace.find([turn.key for _, turn in open_turns])
            for at, turn in list(open_turns):
                if (reply := found.get(turn.key)) is not None:
                    open_turns.remove((at, turn))
                    self._append("reused", superstep, turn, b"")
                    self._settle(superstep, at, turn, reply, again=True)
        if closed:
            superstep.closed = json.loads(closed.body)["reason"]
            if superstep.closed == _LIMIT:
                self._cut = "seconds"
        return open_turns

    def _reserve(self, superstep: _Superstep, at: int, turn: Turn) -> bool:
        """Takes the most that a turn can cost from the budget; a refused turn is recorded."""
        agent = self._agents[at]
        if self._budget.unlimited or not isinstance(agent, Priced):
            return True
        limit = self._budget.refuses(agent.cost(turn)) if self._cut is None else self._cut
        if limit is None:
            self._budget.take(agent.cost(turn))
            return True
        self._cut = limit
        record = self._append("abstained", superstep, turn, _REFUSED + limit.encode())
        self._settle(superstep, at, turn, record, again=False)
        return False

    async def _ask_all(self, superstep: _Superstep, asked: Sequence[tuple[int, Turn]]) -> None:
        step = superstep.step
        loop = asyncio.get_running_loop()
        ends = [(self._deadline, _LIMIT)] if self._deadline is not None else []
        if step.ask.seconds is not None:
            ends.append((loop.time() + step.ask.seconds, _LATE))
        timer = loop.call_at(min(ends)[0], superstep.close, min(ends)[1]) if ends else None
        try:
            async with asyncio.TaskGroup() as group:
                for at, turn in asked:
                    superstep.tasks[at] = group.create_task(self._take(superstep, at, turn))
        finally:
            if timer is not None:
                timer.cancel()
        if superstep.closed is not None and superstep.failed is None:
            await self._close(superstep, asked)
        for at, turn in asked:
            if at not in superstep.outcomes and superstep.failed is None:
                # Nobody closed the phase, so the agent cancelled its own task: that is its failure.
                self._abstain(superstep, at, turn, "the agent cancelled itself")
        if superstep.closed == _LIMIT:
            self._cut = self._cut or "seconds"

    async def _close(self, superstep: _Superstep, asked: Sequence[tuple[int, Turn]]) -> None:
        """Records that a phase ended early and who counted, before anything is made of it."""
        reason = superstep.closed or ""
        for at, turn in asked:
            if at in superstep.outcomes:
                continue
            if reason in (_LIMIT, _LATE):
                self._abstain(superstep, at, turn, "no answer in time")
            else:
                record = self._append("cancelled", superstep, turn, reason.encode())
                superstep.outcomes[at] = record
                self._saved += 1
        if self._trace is not None:
            counted = [turn.member.name for at, turn in superstep.turns if at in superstep.messages]
            body = json.dumps({"reason": reason, "counted": counted}).encode()
            record = Record(self._id, "closed", phase=superstep.step.name, round=superstep.round, body=body)
            self._trace.append(record)
            await self._trace.durable()

    async def _take(self, superstep: _Superstep, at: int, turn: Turn) -> None:
        """Asks one member, and turns whatever comes of it into an outcome."""
        if self._bus.observed:
            self._bus.publish(
                Asked(
                    mindstorm=self._id,
                    member=turn.member.name,
                    phase=turn.phase,
                    label=superstep.step.ask.label,
                    round=turn.round,
                    key=turn.key,
                    ask=turn.ask,
                )
            )
        try:
            said = await self._bus.request(turn, to=self._addresses[at])
        except BusClosed as error:
            superstep.fail(error)
            return
        except Exception as error:  # noqa: BLE001
            # The one place where a member's failure meets the policy of the society's file.
            cause = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            if superstep.step.on_error == "raise":
                superstep.fail(MemberFailed(turn.member.name, turn.phase, turn.round, cause))
                return
            self._abstain(superstep, at, turn, cause)
            return
        if said is None:
            self._abstain(superstep, at, turn, "nothing to say")
            return
        said = _read(said, turn.form)
        self._now.add(said.usage)
        body = said.__pydantic_serializer__.to_json(said)
        record = self._append("replied", superstep, turn, body)
        agent = self._agents[at]
        if not self._budget.unlimited and isinstance(agent, Priced):
            most, usage = agent.cost(turn), said.usage
            self._budget.take(Cost(usage.calls - most.calls, usage.tokens - most.tokens))
        self._settle(superstep, at, turn, record, again=False, said=said)
        self._look(superstep)

    def _look(self, superstep: _Superstep) -> None:
        """Closes the phase once it has what its `wait` asks for."""
        wait = superstep.step.ask.wait
        if wait == "all" or len(superstep.outcomes) >= len(superstep.turns):
            return
        if wait == "certain":
            votes = [superstep.messages[at] for at, _ in superstep.turns if at in superstep.messages]
            waiting = len(superstep.turns) - len(superstep.outcomes)
            if settled(self._program, votes, waiting, self._task, superstep.form):
                superstep.close("certain")
        elif superstep.replied >= wait:
            superstep.close(f"{wait} replied")

    def _abstain(self, superstep: _Superstep, at: int, turn: Turn, cause: str) -> None:
        record = self._append("abstained", superstep, turn, cause.encode("utf-8", "replace"))
        self._settle(superstep, at, turn, record, again=False)
        self._look(superstep)

    def _append(self, kind: str, superstep: _Superstep, turn: Turn, body: bytes) -> Record:
        record = Record(
            self._id,
            kind,  # pyright: ignore[reportArgumentType]
            turn.key,
            turn.member.name,
            turn.phase,
            superstep.step.ask.label,
            turn.round,
            body,
        )
        if self._trace is not None:
            self._trace.append(record)
            self._history.decided = False
        return record

    def _settle(
        self,
        superstep: _Superstep,
        at: int,
        turn: Turn,
        record: Record,
        *,
        again: bool,
        said: Said | None = None,
    ) -> None:
        """Takes an outcome in: a message for the others, or an abstention for the verdict."""
        superstep.outcomes[at] = record
        if record.kind == "replied":
            said = said or Said.model_validate_json(record.body)
            message = Message(
                said=said,
                sender=turn.member.name,
                label=superstep.step.ask.label,
                phase=turn.phase,
                round=turn.round,
                digest=hashlib.sha256(turn.key.encode() + record.body).hexdigest(),
            )
            superstep.messages[at] = message
            superstep.replied += 1
            self._total.add(said.usage)
            if self._bus.observed:
                self._bus.publish(Spoke(mindstorm=self._id, message=message, again=again))
        elif record.kind == "abstained":
            abstention = Abstention(
                member=turn.member.name, phase=turn.phase, round=turn.round, cause=record.body.decode()
            )
            self._abstained.append(abstention)
            if self._bus.observed:
                self._bus.publish(Abstained(mindstorm=self._id, abstention=abstention))

    def _decide(self) -> Verdict:
        seconds = time.perf_counter() - self._began
        verdict, unread = decide(
            self._program, self._minutes, self._task, cut_short=self._cut is not None, seed=self._seed
        )
        return verdict.model_copy(
            update={
                "abstained": (*self._abstained, *unread),
                "cut_short": self._cut,
                "rounds": self._closed_rounds,
                "usage": self._now.usage(seconds),
                "usage_total": self._total.usage(seconds),
                "saved": self._saved,
                "mindstorm": self._id,
            }
        )

    def _emit_last(self, event: Event) -> None:
        if self._bus.observed:
            self._bus.publish(event)


def _read(said: Said, form: Form) -> Said:
    """Reads the answer out of the words of an agent that gave none itself; what cannot be read says why."""
    if (
        isinstance(form, TextForm)
        or said.answer is not None
        or said.ballot is not None
        or said.why is not None
    ):
        return said
    reading = form.read(said.text)
    if reading.answer is None and reading.ballot is None:
        return said.model_copy(update={"why": reading.why})
    return said.model_copy(update={"answer": reading.answer, "ballot": reading.ballot})
