"""The scheduler: runs a program over a task. All control flow of a mindstorm is here.

A phase is a superstep: every turn is computed from the transcript, all run in one task group, and what they
said is appended in declaration order. So a transcript is a function of outcomes, never of timing.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import Iterable, Mapping, Sequence

from pydantic_core import to_json

from nlsom.agent import Agent, checked
from nlsom.budget import Budget, Cost, Priced, Spent, spending
from nlsom.bus.contract import Bus
from nlsom.errors import BusClosed, MemberFailed, NlsomError, TraceError
from nlsom.event import Abstained, Asked, Decided, Event, RoundClosed, Spoke, Started, Stopped
from nlsom.form import Form
from nlsom.media import MediaStore
from nlsom.message import Message, Said, whole
from nlsom.minutes import Minutes
from nlsom.program import Program, Rounds, Step
from nlsom.superstep import LATE, LIMIT, REFUSED, Superstep
from nlsom.task.base import Task
from nlsom.tool import has_effects
from nlsom.trace.contract import SCHEMA, Header, History, Kind, Record, Trace
from nlsom.trace.stored import read_stored
from nlsom.turn import Turn
from nlsom.verdict import Abstention, Verdict
from nlsom.voting import decide, form_of, is_over, settled


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
        built: str = "",
    ) -> None:
        self._program, self._task, self._seed = program, task, seed
        self.id = self._id = mindstorm
        self._bus, self._agents, self._media = bus, agents, media
        self._addresses, self._trace, self._retry = addresses, trace, retry_failed
        self._built = built
        limits = program.limits
        self._budget = Budget(limits.calls, limits.tokens, spending.get())
        self._metered = not self._budget.unlimited
        self._minutes = Minutes(len(program.members))
        self._rounds: dict[str, int] = {}
        self._closed_rounds = 0
        self._abstained: list[Abstention] = []
        self._now, self._total = Spent(), Spent()
        self._saved = 0
        self._cut: str | None = None
        self._history = History()
        self._opened = False
        self._unsafe = False
        self._fresh: set[str] = set()
        self._writing: asyncio.Task[None] | None = None
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
        except Exception as error:
            ended = str(error) if isinstance(error, NlsomError) else f"{type(error).__name__}: {error}"
            raise
        finally:
            spending.reset(token)
            if ended:
                self._emit_last(Stopped(mindstorm=self._id, reason=ended))
            if self._writing is not None:
                self._writing.cancel()
                await asyncio.gather(self._writing, return_exceptions=True)
            if self._trace is not None and self._opened:
                self._trace.leave(self._id)

    async def _run(self) -> Verdict:
        loop = asyncio.get_running_loop()
        limits = self._program.limits
        if limits.seconds is not None:
            self._deadline = loop.time() + limits.seconds
        if self._trace is not None:
            self._history = await self._trace.open(self._header())
            self._opened = True
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
        # A replay that told the trace nothing new comes to the verdict that is there already.
        if self._trace is not None and not self._history.decided:
            self._trace.append(Record(self._id, "verdict", body=to_json(verdict)))
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
            built=self._built,
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
        self._write()
        for group in self._order(step, number):
            superstep = Superstep(step, number, form, self._turns(step, number, form, group))
            await self._superstep(superstep)
            replied += len(superstep.messages)
            if superstep.closed is not None and self._cut is not None:
                break
        await self._written()
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
        shared = json.dumps([SCHEMA, task.digest, form.model_dump(), step.name, number]).encode()
        digests = program.member_digests
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
            told = f"{digests[at]}{heard.digest}{owned}\x1f{seed}\x1f{text}"
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

    async def _superstep(self, superstep: Superstep) -> None:
        """Asks what has no outcome yet, waits as the phase says, and appends in declaration order."""
        asked = superstep.turns
        stored = None
        if self._trace is not None:
            stored = self._history.closed.get((superstep.step.name, superstep.round, superstep.alone))
        reason = json.loads(stored.body)["reason"] if stored is not None else None
        if self._retry and reason in (LIMIT, LATE):
            stored = None
        if self._trace is not None or self._metered:
            asked = self._plan(superstep, asked, await self._recall(superstep, stored), stored)
        if stored is not None:
            superstep.closed = reason
        elif asked:
            # An earlier run may have been ended after it had enough, but before it could say so.
            self._look(superstep)
            if superstep.closed is None:
                await self._ask_all(superstep, asked)
        if superstep.failed is not None:
            raise superstep.failed
        if stored is None and (superstep.closed is not None or reason is not None):
            await self._close(superstep)
        if superstep.closed == LIMIT:
            self._cut = self._cut or "seconds"
        for at, _ in superstep.turns:
            if (message := superstep.messages.get(at)) is not None:
                self._minutes.add(at, message)
            elif (abstention := superstep.missed.get(at)) is not None:
                self._abstained.append(abstention)

    async def _recall(self, superstep: Superstep, closed: Record | None) -> Mapping[str, Record]:
        """The outcomes that the trace holds of these turns, by key; failures only if they are to stand."""
        if self._trace is None:
            return {}
        outcomes = self._history.outcomes
        stands = (
            ("replied", "cancelled")
            if self._retry and closed is None
            else ("replied", "cancelled", "abstained")
        )
        known: dict[str, Record] = {}
        missing: list[str] = []
        for _, turn in superstep.turns:
            record = outcomes.get(turn.key)
            if record is None:
                if not self._is_news(turn):
                    missing.append(turn.key)
            elif record.kind in stands:
                known[turn.key] = record
        if missing and closed is None:
            known |= await self._trace.find(missing)
        return known

    def _is_news(self, turn: Turn) -> bool:
        """Whether a turn hears what was first said in this run: then nobody can have answered it."""

        def fresh() -> bool:
            return any(message.digest in self._fresh for message in turn.heard.messages)

        if not self._fresh:
            return False
        return turn.heard.once("fresh", fresh) or any(own.digest in self._fresh for own in turn.own)

    def _plan(
        self,
        superstep: Superstep,
        turns: Sequence[tuple[int, Turn]],
        known: Mapping[str, Record],
        closed: Record | None,
    ) -> list[tuple[int, Turn]]:
        """Takes in what is known and reserves the rest, in declaration order; returns whom to ask.

        The order is that of the first run, so the budget is spent the same way when a run is taken up again.
        """
        asked: list[tuple[int, Turn]] = []
        for at, turn in turns:
            record = known.get(turn.key)
            if record is not None:
                self._take_up(superstep, at, turn, record)
            elif turn.key in self._history.intents and closed is None and not self._retry:
                self._abstain(superstep, at, turn, "it may have run: an earlier run never heard back from it")
            elif closed is None and self._reserve(superstep, at, turn):
                asked.append((at, turn))
        return asked

    def _take_up(self, superstep: Superstep, at: int, turn: Turn, record: Record) -> None:
        """Takes in an outcome from the trace."""
        spent = Cost()
        if record.kind == "replied":
            if turn.key not in self._history.outcomes:
                self._append("reused", superstep, turn, b"")
            said = read_stored(Said, record.body)
            self._heard(superstep, at, turn, said, record.body, again=True)
            spent = Cost(said.usage.calls, said.usage.tokens)
        elif record.kind == "abstained":
            cause = record.body.decode()
            if cause.startswith(REFUSED):
                self._cut = cause.removeprefix(REFUSED)
            elif self._metered:
                spent = self._price(at, turn)
            self._missed(superstep, at, turn, cause)
        else:
            superstep.done.add(at)
            self._saved += 1
        if self._metered:
            self._budget.take(spent)

    def _price(self, at: int, turn: Turn) -> Cost:
        agent = self._agents[at]
        return agent.cost(turn) if isinstance(agent, Priced) else Cost()

    def _reserve(self, superstep: Superstep, at: int, turn: Turn) -> bool:
        """Takes the most that a turn can cost from the budget; a refused turn is recorded."""
        if not self._metered:
            return True
        try:
            cost = self._price(at, turn)
        except Exception as error:  # noqa: BLE001
            # The agent's own code, as much as what it says: the same policy holds.
            self._fail(superstep, at, turn, _cause(error))
            return False
        limit = None
        if cost != Cost():
            limit = self._cut or self._budget.refuses(cost)
        if limit is not None:
            self._cut = limit
            self._abstain(superstep, at, turn, REFUSED + limit)
            return False
        # What a nested society takes while the turn runs goes through the turn's own meter as well, so that
        # in the end exactly what the turn used is taken, and nothing twice.
        meter = superstep.meters[at] = Budget(parent=self._budget)
        meter.take(cost)
        return True

    async def _ask_all(self, superstep: Superstep, asked: Sequence[tuple[int, Turn]]) -> None:
        loop = asyncio.get_running_loop()
        ends = [(self._deadline, LIMIT)] if self._deadline is not None else []
        if superstep.step.ask.seconds is not None:
            ends.append((loop.time() + superstep.step.ask.seconds, LATE))
        timer = None
        if ends:
            end, reason = min(ends)
            if end <= loop.time():
                superstep.close(reason)
                return
            timer = loop.call_at(end, superstep.close, reason)
        try:
            async with asyncio.TaskGroup() as group:
                for at, turn in asked:
                    superstep.tasks.append(group.create_task(self._take(superstep, at, turn)))
        finally:
            superstep.tasks.clear()
            if timer is not None:
                timer.cancel()
        if superstep.closed is None and len(superstep.done) < len(superstep.turns):
            for at, turn in asked:
                if at not in superstep.done:
                    # Nobody closed the phase, so the agent cancelled its own task: that is its failure.
                    self._fail(superstep, at, turn, "the agent cancelled itself")

    async def _close(self, superstep: Superstep) -> None:
        """Records that a phase ended early and who counted, before anything is made of it."""
        reason = superstep.closed or ""
        for at, turn in superstep.turns:
            if at in superstep.done:
                continue
            if reason in (LIMIT, LATE):
                self._abstain(superstep, at, turn, "no answer in time")
            else:
                self._append("cancelled", superstep, turn, reason.encode())
                superstep.done.add(at)
                self._saved += 1
        if self._trace is not None:
            counted = [turn.member.name for at, turn in superstep.turns if at in superstep.messages]
            self._tell(
                Record(
                    self._id,
                    "closed",
                    member=superstep.alone,
                    phase=superstep.step.name,
                    round=superstep.round,
                    body=to_json({"reason": reason, "counted": counted}),
                )
            )
            await self._durable()

    async def _take(self, superstep: Superstep, at: int, turn: Turn) -> None:
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
        if self._trace is not None and has_effects(self._agents[at]):
            # Told before it runs: whoever takes this up after a crash must not run it twice.
            self._append("intent", superstep, turn, b"")
            await self._durable()
        meter = superstep.meters.get(at)
        if meter is not None:
            spending.set(meter)
        try:
            returned = await self._bus.request(turn, to=self._addresses[at])
            answer = None if returned is None else checked(returned, turn.form)
        except BusClosed as error:
            superstep.fail(error)
            return
        except Exception as error:  # noqa: BLE001
            # The one place where a member's failure meets the policy of the society's file.
            self._fail(superstep, at, turn, _cause(error))
            return
        if answer is None:
            self._abstain(superstep, at, turn, "nothing to say")
            return
        said, body = answer
        self._now.add(said.usage)
        if meter is not None:
            meter.settle(Cost(said.usage.calls, said.usage.tokens))
        self._append("replied", superstep, turn, body)
        self._heard(superstep, at, turn, said, body, again=False)
        if superstep.step.ask.wait != "all":
            self._look(superstep)

    def _look(self, superstep: Superstep) -> None:
        """Closes the phase once it has what its `wait` asks for."""
        wait = superstep.step.ask.wait
        if wait == "all" or len(superstep.done) >= len(superstep.turns):
            return
        if wait == "certain":
            votes = [superstep.messages[at] for at, _ in superstep.turns if at in superstep.messages]
            waiting = len(superstep.turns) - len(superstep.done)
            if settled(self._program, votes, waiting, self._task, superstep.form):
                superstep.close("certain")
        elif len(superstep.messages) >= wait:
            superstep.close(f"{wait} replied")

    def _fail(self, superstep: Superstep, at: int, turn: Turn, cause: str) -> None:
        """A member failed: the society's file says what that means."""
        if superstep.step.on_error == "raise":
            superstep.fail(MemberFailed(turn.member.name, turn.phase, turn.round, cause))
        else:
            self._abstain(superstep, at, turn, cause)

    def _abstain(self, superstep: Superstep, at: int, turn: Turn, cause: str) -> None:
        cause = whole(cause)
        self._append("abstained", superstep, turn, cause.encode())
        self._missed(superstep, at, turn, cause)
        self._look(superstep)

    def _append(self, kind: Kind, superstep: Superstep, turn: Turn, body: bytes) -> None:
        """Tells the trace of an outcome; if it cannot be told, the mindstorm ends with the trace's error."""
        if self._trace is None:
            return
        label = superstep.step.ask.label
        try:
            self._tell(
                Record(self._id, kind, turn.key, turn.member.name, turn.phase, label, turn.round, body)
            )
        except TraceError as error:
            superstep.fail(error)

    def _tell(self, record: Record) -> None:
        assert self._trace is not None
        self._history.decided = False
        self._unsafe = True
        self._trace.append(record)

    async def _durable(self) -> None:
        """Waits until all that was told is safe; a replay, which tells nothing, need not."""
        if self._trace is not None and self._unsafe:
            self._unsafe = False
            await self._trace.durable()

    def _write(self) -> None:
        """Begins to wait until what was told is safe, while the next phase runs."""
        if self._unsafe:
            self._writing = asyncio.create_task(self._durable())

    async def _written(self) -> None:
        """Waits until what was told before this phase is safe: so no more than two phases ever are not."""
        writing, self._writing = self._writing, None
        if writing is not None:
            await writing

    def _heard(
        self, superstep: Superstep, at: int, turn: Turn, said: Said, body: bytes, *, again: bool
    ) -> None:
        """Makes a message for the others of what was said."""
        message = Message(
            said=said,
            sender=turn.member.name,
            label=superstep.step.ask.label,
            phase=turn.phase,
            round=turn.round,
            digest=hashlib.sha256(turn.key.encode() + body).hexdigest(),
        )
        superstep.done.add(at)
        superstep.messages[at] = message
        if self._trace is not None and not again:
            self._fresh.add(message.digest)
        self._total.add(said.usage)
        if self._bus.observed:
            self._bus.publish(Spoke(mindstorm=self._id, message=message, again=again))

    def _missed(self, superstep: Superstep, at: int, turn: Turn, cause: str) -> None:
        """Makes an abstention for the verdict of what was not said."""
        superstep.done.add(at)
        abstention = Abstention(member=turn.member.name, phase=turn.phase, round=turn.round, cause=cause)
        superstep.missed[at] = abstention
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


def _cause(error: Exception) -> str:
    try:
        told = str(error)
    except Exception:  # noqa: BLE001
        # What an error says of itself is the agent's own code too, and can fail like all of it.
        told = ""
    return f"{type(error).__name__}: {told}" if told else type(error).__name__
