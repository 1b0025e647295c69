"""The scheduler: runs a program on a task. The control flow of a mindstorm is here and in its supersteps.

A phase is a superstep: all turns are computed from the transcript and run in one task group, and what was
said is appended in declaration order. So a transcript is a function of outcomes, never of timing.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Self

from nlsom.agent import Agent
from nlsom.budget import Budget, spending
from nlsom.bus.contract import Bus
from nlsom.event import Decided, RoundClosed, Started, stopped_by
from nlsom.form import Form
from nlsom.journal import Closing, Journal
from nlsom.media import MediaStore
from nlsom.message import Message
from nlsom.minutes import Minutes
from nlsom.program import Program, Rounds, Step
from nlsom.superstep import Superstep
from nlsom.task.base import Task
from nlsom.trace.contract import Trace
from nlsom.turns import Turns
from nlsom.underway import Underway
from nlsom.verdict import Verdict
from nlsom.voting import decide, form_of, is_over


class Scheduler:
    """One mindstorm: a program, a task and a seed.

        async with scheduler:  # waits while another run is at work on the same mindstorm of the trace
            verdict = await scheduler.run()

    Args:
        program: What it runs.
        task: What is asked.
        mindstorm: The id of the mindstorm.
        seed: The run's seed.
        bus: Where every member is hosted under its name.
        agents: The members' agents, in declaration order.
        media: Where pictures live.
        trace: Where outcomes are kept; None keeps them nowhere.
        retry_failed: Whether turns that failed in an earlier run are asked again.
        built: What is needed to build the society again (JSON), for the trace.
    """

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
        trace: Trace | None = None,
        retry_failed: bool = False,
        built: str = "",
    ) -> None:
        self.id = mindstorm
        self._program, self._task, self._seed, self._built = program, task, seed, built
        self._bus = bus
        self._journal = Journal(trace, mindstorm)
        self._minutes = Minutes(len(program.members))
        self._turns = Turns(program, task, self._minutes, seed=seed, media=media)
        self._storm = Underway(
            id=mindstorm,
            program=program,
            task=task,
            bus=bus,
            agents=agents,
            journal=self._journal,
            budget=Budget(program.limits.calls, program.limits.tokens, spending.get()),
            retry_failed=retry_failed,
            minutes=self._minutes,
        )
        self._rounds: dict[str, int] = {}
        self._closed_rounds = 0
        self._began = time.perf_counter()

    async def __aenter__(self) -> Self:
        await self._journal.open(self._program, self._task, seed=self._seed, built=self._built)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._journal.leave()

    async def run(self) -> Verdict:
        """Runs the mindstorm to its verdict.

        Raises:
            MemberFailed: A member failed and the society's file says `on_error: raise`.
            BusClosed: The bus was closed.
            TraceError: The trace cannot be read or written; what it holds already stays.
        """
        token = spending.set(self._storm.budget)
        try:
            verdict = await self._run()
            if self._bus.observed:
                self._bus.publish(Decided(mindstorm=self.id, verdict=verdict))
            return verdict
        except BaseException as error:
            if self._bus.observed:
                self._bus.publish(stopped_by(self.id, error))
            raise
        finally:
            spending.reset(token)

    async def _run(self) -> Verdict:
        program = self._program
        if program.limits.seconds is not None:
            self._storm.deadline = asyncio.get_running_loop().time() + program.limits.seconds
        if self._bus.observed:
            self._bus.publish(
                Started(
                    mindstorm=self.id,
                    society=program.name,
                    members=program.names,
                    task=self._task,
                    seed=self._seed,
                )
            )
        for step in program.steps:
            await (self._repeat(step) if isinstance(step, Rounds) else self._ask(step))
            if self._storm.cut is not None:
                break
        verdict = self._decide()
        await self._journal.decide(verdict)
        return verdict

    async def _repeat(self, rounds: Rounds) -> None:
        for _ in range(rounds.count):
            for step in rounds.steps:
                await self._ask(step)
                if self._storm.cut is not None:
                    return
            if rounds.until is not None and is_over(rounds.until, rounds.of, self._minutes, self._task):
                return

    async def _ask(self, step: Step) -> None:
        """Runs a phase once; skips one that asks nobody, because its members were left out."""
        if not step.who:
            return
        storm = self._storm
        number = self._rounds[step.name] = self._rounds.get(step.name, 0) + 1
        form = form_of(step.ask, self._task, self._minutes)
        if form is None:
            storm.cut = f"quorum: nobody said a {step.ask.over!r} that phase {step.name!r} could vote on"
            return
        saved = storm.saved
        self._journal.write()
        replied = await self._supersteps(step, number, form)
        await self._journal.written()
        self._closed_rounds += 1
        if self._bus.observed:
            self._bus.publish(
                RoundClosed(
                    mindstorm=self.id,
                    phase=step.name,
                    round=number,
                    asked=len(step.who) - (storm.saved - saved),
                    replied=replied,
                    usage=storm.now.usage(time.perf_counter() - self._began),
                )
            )
        wanted = min(step.quorum, len(step.who))
        if storm.cut is None and replied < wanted:
            storm.cut = f"quorum: {replied} of {wanted} replied in phase {step.name!r}, round {number}"

    async def _supersteps(self, step: Step, number: int, form: Form) -> int:
        """Runs a phase, all at once or one member after the other; returns how many replied."""
        storm = self._storm
        order = self._turns.order(step, number)
        # For members who speak in turn. Where they speak together, the superstep looks its closing up itself.
        earlier = self._journal.closing(step.name, number) if len(order) > 1 else None
        if earlier is not None and earlier.asked is not None:
            storm.saved += len(order) - earlier.asked
            order = order[: earlier.asked]
        said: dict[int, Message] = {}
        waiting = set(step.who)
        for group in order:
            turns = self._turns.of(step, number, form, group)
            superstep = Superstep(storm, step, number, form, turns, stands=earlier is not None)
            await superstep.run()
            said |= superstep.outcomes.messages
            waiting.difference_update(group)
            if superstep.closed is not None and storm.cut is not None:
                break
            if earlier is None and (reason := storm.enough(step, form, said, waiting)) is not None:
                storm.saved += len(waiting)
                closing = Closing(reason=reason, asked=len(step.who) - len(waiting))
                counted = [self._program.names[at] for at in step.who if at in said]
                self._journal.tell_closing(closing, step.name, number, "", counted)
                await self._journal.durable()
                break
        return len(said)

    def _decide(self) -> Verdict:
        storm = self._storm
        seconds = time.perf_counter() - self._began
        verdict, unread = decide(
            self._program, self._minutes, self._task, cut_short=storm.cut is not None, seed=self._seed
        )
        return verdict.model_copy(
            update={
                "abstained": (*storm.abstained, *unread),
                "cut_short": storm.cut,
                "rounds": self._closed_rounds,
                "usage": storm.now.usage(seconds),
                "usage_total": storm.total.usage(seconds),
                "saved": storm.saved,
                "mindstorm": self.id,
            }
        )
