"""The house: a server's open societies and running mindstorms, shared by all requests."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from pathlib import Path

from nlsom.answers import Answered, Answers
from nlsom.errors import NlsomError, UsageError
from nlsom.event import Decided
from nlsom.media import FolderStore
from nlsom.member import wire_id
from nlsom.phase import Limits
from nlsom.society import Society, narrowed, opened_together
from nlsom.task import Task
from nlsom.trace import SqliteTrace
from nlsom_serve.app.errors import not_found, shutting_down
from nlsom_serve.app.keys import Account, Keys
from nlsom_serve.app.ledger import Entry, Ledger
from nlsom_serve.app.metrics import Metrics
from nlsom_serve.app.past import recall
from nlsom_serve.app.places import Place, Places
from nlsom_serve.app.redact import redact
from nlsom_serve.app.run import Run
from nlsom_serve.app.settings import Settings

log = logging.getLogger("nlsom.serve")


class House:
    """The state that all requests share; `opened_house` makes one.

    Attributes:
        societies: Open societies by id.
        settings: Limits for clients.
        keys: The API keys.
        trace: Where outcomes are stored.
        media: Where pictures are stored.
        answers: Where people's answers arrive.
        metrics: Prometheus metrics.
        places: Slots for running and queued mindstorms.
        draining: Set when the server is shutting down.
    """

    def __init__(
        self,
        societies: Sequence[Society],
        *,
        trace: SqliteTrace,
        ledger: Ledger,
        media: FolderStore,
        settings: Settings,
        keys: Keys,
    ) -> None:
        self.societies = _by_id(societies)
        self.settings, self.keys = settings, keys
        self.trace, self.media = trace, media
        self.answers = Answers()
        self.metrics = Metrics()
        self.places = Places(settings.at_once, settings.queue)
        self.draining = asyncio.Event()
        self._ledger = ledger
        self._runs: dict[str, Run] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.metrics.running.set_function(lambda: self.places.running)
        self.metrics.waiting.set_function(lambda: self.places.waiting)
        for society in self.societies.values():
            for seat in society.seats:
                if isinstance(seat.agent, Answered):
                    seat.agent.answers = self.answers

    def society(self, id: str) -> Society:
        """The society with this id.

        Raises:
            ApiError: 404: there is none.
        """
        found = self.societies.get(id)
        if found is None:
            message = f"no society is called {id[:80]!r}; this server has {', '.join(self.societies)}"
            raise not_found(message, code="model_not_found", param="model")
        return found

    def running(self, id: str) -> Run | None:
        """The mindstorm with this id, if it runs or is queued."""
        return self._runs.get(id)

    def admit(self, account: Account, count: int = 1) -> list[Place]:
        """Reserves places for an account's mindstorms.

        Raises:
            ApiError: 429: the queue is full, or the account's tokens are spent; 503: shutting down.
        """
        if self.draining.is_set():
            raise shutting_down()
        account.check()
        return self.places.reserve(count)

    async def begin(
        self,
        place: Place,
        account: Account,
        society_id: str,
        task: Task,
        *,
        seed: int | None,
        limits: Limits,
        kept: bool,
    ) -> Run:
        """Begins a mindstorm, or joins the same one if it already runs.

        Args:
            place: A reserved place, which is used or given back.
            account: Whose tokens are spent.
            society_id: Id of the society.
            task: The task.
            seed: The run's seed; None draws one.
            limits: What it may spend.
            kept: Whether it continues without clients, and after a restart.
        """
        with ExitStack() as unused:
            unused.callback(place.drop)
            society = self.society(society_id)
            seed = secrets.randbelow(2**31) if seed is None else seed
            id = society.id_of(task, seed=seed, limits=limits)
            if kept:
                entry = Entry(id, society_id, task.model_dump_json(), seed, limits.model_dump_json())
                await self._ledger.put(entry)
            run = self._runs.get(id)
            if run is None:
                known, _ = await recall(self.trace, id) if kept else ([], None)
                run = self._runs.get(id)  # another request may have begun it meanwhile
                if run is None:
                    run = Run(
                        id,
                        society_id,
                        society,
                        task,
                        seed=seed,
                        limits=limits,
                        known=known,
                        answers=self.answers,
                    )
                    self._start(run, place, account)
                    unused.pop_all()
        run.kept = run.kept or kept
        return run

    def _start(self, run: Run, place: Place, account: Account) -> None:
        self._runs[run.id] = run
        run.work = asyncio.create_task(self._run(run, place, account), name=f"run {run.id}")
        self._tasks.add(run.work)
        run.work.add_done_callback(self._tasks.discard)
        run.work.add_done_callback(lambda _: self._ended(run, place))

    @asynccontextmanager
    async def wanted(self, run: Run) -> AsyncGenerator[Run]:
        """Counts a client as waiting for the run within the block. A run without clients ends unless kept."""
        run.wanted += 1
        try:
            yield run
        finally:
            run.wanted -= 1
            if not run.wanted and not run.kept:
                await self._stop(run)

    async def cancel(self, id: str) -> None:
        """Cancels a mindstorm and its requests to models; no effect on one that is over."""
        run = self._runs.get(id)
        if run is not None:
            if run.kept:
                await self._ledger.close(id, "cancelled", "cancelled by a client")
            run.kept = False
            await self._stop(run)

    async def _stop(self, run: Run) -> None:
        if self._runs.get(run.id) is run:
            del self._runs[run.id]  # so that the same question begins a new run instead of joining this one
        if run.work is not None:
            run.work.cancel()
            await asyncio.gather(run.work, return_exceptions=True)

    async def entry(self, id: str) -> Entry | None:
        """A mindstorm's entry in the ledger, if any."""
        return await self._ledger.get(id)

    async def _run(self, run: Run, place: Place, account: Account) -> None:
        try:
            async with place:
                run.state = "running"
                await self._hold(run, account)
        except NlsomError as error:
            run.error = error
        except Exception:
            # The boundary of one mindstorm: a bug stops this one only; the log has the traceback.
            run.error = NlsomError("internal error; see the server's log")
            log.exception("internal error in a mindstorm", extra={"mindstorm": run.id})
        if run.kept:
            state = "decided" if run.error is None else "stopped"
            await self._ledger.close(run.id, state, redact(str(run.error or "")))

    def _ended(self, run: Run, place: Place) -> None:
        """Cleans up after a run, even if it was cancelled before its first step."""
        place.drop()
        if self._runs.get(run.id) is run:
            del self._runs[run.id]
        ended = "stopped" if run.error else "decided" if run.verdict else "cancelled"
        run.close(ended)
        self.metrics.ended(run.society_id, ended, run.verdict)
        log.info("mindstorm", extra={"mindstorm": run.id, "society": run.society_id, "ended": ended})

    async def _hold(self, run: Run, account: Account) -> None:
        async with run.society.mindstorm(run.task, seed=run.seed, limits=run.limits) as storm:
            async for event in storm:
                before = run.spent
                if isinstance(event, Decided):
                    run.verdict = event.verdict
                run.add(event)
                if run.spent > before:
                    account.spend(run.spent - before)
                self.metrics.event(run.society_id, event)
            run.verdict = await storm.verdict()

    async def resume(self) -> None:
        """Resumes the kept mindstorms that were not over when the server last stopped."""
        for entry in await self._ledger.open():
            society = self.societies.get(entry.society)
            if society is None:
                await self._ledger.close(
                    entry.id, "stopped", f"society {entry.society!r} is no longer served"
                )
                continue
            task = society.task.model_validate_json(entry.task)
            limits = Limits.model_validate_json(entry.limits)
            if society.id_of(task, seed=entry.seed, limits=limits) != entry.id:
                await self._ledger.close(
                    entry.id, "stopped", f"society {entry.society!r} has changed since it was asked"
                )
                continue
            (place,) = self.places.reserve(always=True)
            await self.begin(
                place, Account("resumed"), entry.society, task, seed=entry.seed, limits=limits, kept=True
            )
            log.info("resumed", extra={"mindstorm": entry.id, "society": entry.society})

    async def close(self) -> None:
        """Stops all mindstorms; kept ones are resumed when the server is started again."""
        self.draining.set()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _by_id(societies: Sequence[Society]) -> Mapping[str, Society]:
    named: dict[str, Society] = {}
    for society in societies:
        id = wire_id(society.name)
        if id in named:
            raise UsageError(f"two societies are called {society.name!r}; rename one in its file")
        named[id] = society
    return named


@asynccontextmanager
async def opened_house(
    societies: Sequence[Society], folder: Path, *, settings: Settings, keys: Keys
) -> AsyncGenerator[House]:
    """Opens a house whose trace, ledger and pictures are in a folder, and resumes its kept mindstorms."""
    try:
        await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot make the folder {folder}: {error.strerror or error}") from None
    trace = SqliteTrace(folder / "trace.sqlite")
    media = FolderStore(trace.media)
    made = [narrowed(one, seconds=settings.seconds, tokens=settings.tokens) for one in societies]
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(trace)
        ledger = await stack.enter_async_context(Ledger(folder / "ledger.sqlite"))
        for society in made:
            society.trace, society.media = trace, media
        await stack.enter_async_context(opened_together(made))
        house = House(made, trace=trace, ledger=ledger, media=media, settings=settings, keys=keys)
        stack.push_async_callback(house.close)
        await house.resume()
        yield house
