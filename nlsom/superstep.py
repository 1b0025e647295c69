"""A superstep: members are asked together, and what they say is appended in declaration order."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence

from nlsom.agent import checked
from nlsom.budget import Cost
from nlsom.errors import BusClosed, MemberFailed, NlsomError, TraceError, cause_of
from nlsom.form import Form
from nlsom.journal import Closing
from nlsom.message import Said, whole
from nlsom.meters import Meters
from nlsom.outcomes import Outcomes
from nlsom.program import Step
from nlsom.tool import has_effects
from nlsom.trace.contract import Kind, Record
from nlsom.trace.stored import read_stored, read_words
from nlsom.turn import Turn
from nlsom.underway import Underway

LIMIT = "limit of seconds"
LATE = "seconds of the phase"
"""Reasons why a phase was closed: the time of the mindstorm, or of the phase, is over."""

REFUSED = "over the budget of "
"""How the cause of an abstention begins if the budget refused the turn."""


class Superstep:
    """A phase that runs once; or, if its members are asked in turn, the turn of one of them.

    Args:
        storm: The mindstorm.
        step: The phase.
        round: From 1.
        form: The form of the answers.
        turns: The turns, each with its member's place, in declaration order.
        stands: Whether stored failures count as outcomes even if failed turns are to be asked again: true if
            an earlier run closed the phase, which depended on them.

    Attributes:
        outcomes: What its turns have come to so far.
        closed: Why it ended early, if it did.
    """

    def __init__(
        self,
        storm: Underway,
        step: Step,
        round: int,
        form: Form,
        turns: Sequence[tuple[int, Turn]],
        *,
        stands: bool = False,
    ) -> None:
        self.closed: str | None = None
        self.outcomes = Outcomes(storm, step.ask.label, [at for at, _ in turns])
        self._storm, self._step, self._round, self._form = storm, step, round, form
        self._turns, self._stands = turns, stands
        # The member who is asked, if members are asked in turn; "" if they are asked together.
        self._alone = "" if step.ask.order == "together" else turns[0][1].member.name
        cuts = step.ask.wait != "all" or step.ask.seconds is not None or storm.deadline is not None
        self._meters = Meters(storm.budget, storm.agents, cuts=cuts)
        self._in_flight: Counter[str] = Counter()
        self._tasks: list[asyncio.Task[None]] = []
        self._failed: NlsomError | None = None

    async def run(self) -> None:
        """Runs the turns that have no outcome yet, waits as the phase says, and appends what was said.

        Raises:
            MemberFailed: A member failed and the society's file says `on_error: raise`.
            BusClosed: The bus was closed.
            TraceError: The trace cannot be read or written.
        """
        storm = self._storm
        earlier = storm.journal.closing(self._step.name, self._round, self._alone)
        again = earlier is not None and storm.retry_failed and earlier.reason in (LIMIT, LATE)
        stored = None if again else earlier
        if earlier is not None:
            self._in_flight.update(earlier.in_flight)
            storm.total.calls += sum(earlier.in_flight.values())
        asked = self._turns
        if storm.journal.kept or self._meters.limited:
            asked = await self._plan(stored)
        if stored is not None:
            self.closed = stored.reason
        elif asked:
            # An earlier run may have had enough replies, and ended before it could record that.
            self._end_if_enough()
            if self.closed is None:
                await self._ask_all(asked)
        if self._failed is not None:
            raise self._failed
        if stored is None and (self.closed is not None or again):
            await self._close()
        if self.closed == LIMIT:
            storm.cut = storm.cut or "seconds"
        self.outcomes.append()

    # Taking up what an earlier run left

    async def _plan(self, stored: Closing | None) -> list[tuple[int, Turn]]:
        """Takes outcomes from the trace, reserves budget for the other turns, and returns those to be asked.

        Declaration order is also that of the first run, so a resumed mindstorm spends its budget as before.
        """
        storm = self._storm
        known = await storm.journal.outcomes(
            [turn for _, turn in self._turns],
            failures=not storm.retry_failed or stored is not None or self._stands,
            elsewhere=stored is None,
        )
        asked: list[tuple[int, Turn]] = []
        for at, turn in self._turns:
            record = known.get(turn.key)
            if record is not None:
                self._take_up(at, turn, record)
            elif stored is not None:
                continue
            elif storm.journal.begun(turn.key) and not storm.retry_failed:
                self._abstain(at, turn, "it may have run: an earlier run never heard back from it")
            elif self._reserve(at, turn):
                asked.append((at, turn))
        return asked

    def _take_up(self, at: int, turn: Turn, record: Record) -> None:
        """Takes an outcome from the trace."""
        storm = self._storm
        if record.kind == "replied":
            if not storm.journal.holds(turn.key):
                self._record("reused", turn, record.body)
            said = read_stored(Said, record.body)
            self.outcomes.spoke(at, turn, said, record.body, again=True)
            storm.budget.take(Cost(said.usage.calls, said.usage.tokens))
        elif record.kind == "abstained":
            cause = read_words(record.body)
            if cause.startswith(REFUSED):
                storm.cut = cause.removeprefix(REFUSED)
            else:
                self._meters.take_again(at, turn)
            self.outcomes.abstained(at, turn, cause)
        else:
            self.outcomes.waiting.discard(at)
            if turn.member.name in self._in_flight:
                self._meters.take_again(at, turn)
            else:
                storm.saved += 1

    def _reserve(self, at: int, turn: Turn) -> bool:
        """Reserves what a turn can cost at most. If the budget refuses, its member abstains."""
        if not self._meters.limited:
            return True
        try:
            limit = self._meters.reserve(at, turn, self._storm.cut)
        except Exception as error:  # noqa: BLE001
            # The agent's own code: the policy for members that fail applies.
            self._fail(at, turn, cause_of(error))
            return False
        if limit is not None:
            self._storm.cut = limit
            self._abstain(at, turn, REFUSED + limit)
        return limit is None

    # Asking

    async def _ask_all(self, asked: Sequence[tuple[int, Turn]]) -> None:
        loop = asyncio.get_running_loop()
        ends = [] if self._storm.deadline is None else [(self._storm.deadline, LIMIT)]
        if self._step.ask.seconds is not None:
            ends.append((loop.time() + self._step.ask.seconds, LATE))
        timer = None
        if ends:
            end, reason = min(ends)
            if end <= loop.time():
                self._end(reason)
                return
            timer = loop.call_at(end, self._end, reason)
        try:
            async with asyncio.TaskGroup() as group:
                for at, turn in asked:
                    self._tasks.append(group.create_task(self._ask_one(at, turn)))
        except BaseExceptionGroup as errors:
            # Never a member's failure, which is an outcome: an error of the trace or of the rule.
            raise errors.exceptions[0] from None
        finally:
            self._tasks.clear()
            if timer is not None:
                timer.cancel()
        if self.closed is None and self.outcomes.waiting:
            for at, turn in asked:
                if at in self.outcomes.waiting:
                    # The phase was not ended, so the agent cancelled its own task, which is a failure.
                    self._fail(at, turn, "the agent cancelled itself")

    async def _ask_one(self, at: int, turn: Turn) -> None:
        """Asks one member, and makes an outcome of whatever happens."""
        storm = self._storm
        self.outcomes.asked(turn)
        if storm.journal.kept and has_effects(storm.agents[at]):
            # Recorded before it runs: whoever resumes this after a crash must not run it twice.
            self._record("intent", turn)
            await storm.journal.durable()
        self._meters.begin(at)
        try:
            returned = await storm.bus.request(turn, to=turn.member.name)
            answer = None if returned is None else checked(returned, turn.form)
        except BusClosed as error:
            self._stop(error)
            return
        except (asyncio.CancelledError, GeneratorExit, KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # noqa: BLE001
            # The one place where members' failures are caught, for the policy of the society's file.
            # `BaseException`, because a panic in a library written in Rust is no `Exception`.
            self._fail(at, turn, cause_of(error))
            return
        if answer is None:
            self._abstain(at, turn, "nothing to say")
            return
        said, body = answer
        storm.now.add(said.usage)
        self._meters.settle(at, Cost(said.usage.calls, said.usage.tokens))
        self._record("replied", turn, body)
        self.outcomes.spoke(at, turn, said, body, again=False)
        if self._step.ask.wait != "all":
            self._end_if_enough()

    # Outcomes

    def _fail(self, at: int, turn: Turn, cause: str) -> None:
        """A member failed: it abstains or the mindstorm stops, as the society's file says."""
        cause = whole(cause)
        if self._step.on_error == "raise":
            self._stop(MemberFailed(turn.member.name, turn.phase, turn.round, cause))
        else:
            self._abstain(at, turn, cause)

    def _abstain(self, at: int, turn: Turn, cause: str) -> None:
        self._record("abstained", turn, cause.encode())
        self.outcomes.abstained(at, turn, cause)
        self._end_if_enough()

    def _record(self, kind: Kind, turn: Turn, body: bytes = b"") -> None:
        """Writes to the trace; if that fails, the mindstorm stops with the trace's error."""
        try:
            self._storm.journal.tell(kind, turn, self._step.ask.label, body)
        except TraceError as error:
            self._stop(error)

    # Early endings

    def _end_if_enough(self) -> None:
        """Ends the phase once its `wait` is met. For members who speak in turn, the scheduler does that."""
        if self._step.ask.wait == "all" or self._alone:
            return
        so_far = self.outcomes
        if reason := self._storm.enough(self._step, self._form, so_far.messages, so_far.waiting):
            self._end(reason)

    def _end(self, reason: str) -> None:
        """Ends the phase early: turns without an outcome are cancelled."""
        if self.closed is None:
            self.closed = reason
            for task in self._tasks:
                task.cancel()

    def _stop(self, error: NlsomError) -> None:
        """Stops the mindstorm with an error."""
        if self._failed is None:
            self._failed = error
            self._end("failed")

    async def _close(self) -> None:
        """Records that the phase ended early and whose replies counted, before they have any effect."""
        storm, reason = self._storm, self.closed or ""
        for at, turn in self._turns:
            if at not in self.outcomes.waiting:
                continue
            begun = self._meters.in_flight(at)
            if begun is not None:
                # It was cut off: the calls that it had begun count as spent.
                self._in_flight[turn.member.name] += begun
                storm.now.calls += begun
                storm.total.calls += begun
            if reason in (LIMIT, LATE):
                self._abstain(at, turn, "no answer in time")
                continue
            self._record("cancelled", turn, reason.encode())
            self.outcomes.waiting.discard(at)
            if begun is None:
                storm.saved += 1
                self._meters.settle(at, Cost())
        counted = [turn.member.name for at, turn in self._turns if at in self.outcomes.messages]
        closing = Closing(reason=reason, in_flight=dict(self._in_flight))
        storm.journal.tell_closing(closing, self._step.name, self._round, self._alone, counted)
        await storm.journal.durable()
