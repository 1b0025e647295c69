"""The house: the societies of a server, and the mindstorms that run in it."""

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
from nlsom_serve.app.errors import ending, not_found
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
    """What all requests share. Opened and closed with the server.

    Attributes:
        societies: By id, open.
        settings: What clients may do.
        keys: Who may come in.
        trace: Where outcomes are kept.
        media: Where pictures are kept.
        answers: Where people answer.
        metrics: What is counted.
        places: How many mindstorms run and wait.
        draining: Whether the server is about to end.
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
        self.societies = _named(societies)
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
        """The society of that id.

        Raises:
            ApiError: 404: there is none.
        """
        found = self.societies.get(id)
        if found is None:
            told = f"no society is called {id[:80]!r} here; there are {', '.join(self.societies)}"
            raise not_found(told, code="model_not_found", param="model")
        return found

    def running(self, id: str) -> Run | None:
        """The mindstorm of that id, if it runs or waits."""
        return self._runs.get(id)

    def admit(self, account: Account, count: int = 1) -> list[Place]:
        """Places for mindstorms of an account.

        Raises:
            ApiError: 429: the queue is full, or the account has spent its tokens; 503: the server ends.
        """
        if self.draining.is_set():
            raise ending()
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
        """Begins a mindstorm, or joins the same one that runs already. The place is used or given back.

        Args:
            place: Where it runs.
            account: Who pays.
            society_id: Id of the society.
            task: What is asked.
            seed: The run's seed; None draws one.
            limits: What it may spend.
            kept: Whether it goes on although nobody waits for it, and after a restart.
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
                run = self._runs.get(id)  # while the trace was read, another may have begun it
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
        run.work = asyncio.create_task(self._work(run, place, account), name=f"run {run.id}")
        self._tasks.add(run.work)
        run.work.add_done_callback(self._tasks.discard)
        run.work.add_done_callback(lambda _: self._over(run, place))

    @asynccontextmanager
    async def wanted(self, run: Run) -> AsyncGenerator[Run]:
        """Somebody wants the mindstorm while the block is open; when nobody does, it ends unless kept."""
        run.wanted += 1
        try:
            yield run
        finally:
            run.wanted -= 1
            if not run.wanted and not run.kept:
                await self._end(run)

    async def cancel(self, id: str) -> None:
        """Cancels a mindstorm down to its models; one that is over stays as it is."""
        run = self._runs.get(id)
        if run is not None:
            if run.kept:
                await self._ledger.close(id, "cancelled", "cancelled by a client")
            run.kept = False
            await self._end(run)

    async def _end(self, run: Run) -> None:
        if self._runs.get(run.id) is run:
            del self._runs[run.id]  # whoever asks the same from now on begins anew
        if run.work is not None:
            run.work.cancel()
            await asyncio.gather(run.work, return_exceptions=True)

    async def entry(self, id: str) -> Entry | None:
        """What the ledger says of a mindstorm."""
        return await self._ledger.get(id)

    async def _work(self, run: Run, place: Place, account: Account) -> None:
        try:
            async with place:
                run.state = "running"
                await self._watch(run, account)
        except NlsomError as error:
            run.error = error
        except Exception:
            # The boundary of one mindstorm: a fault of ours ends it, and is told in the log.
            run.error = NlsomError("a fault of the server; its log says more")
            log.exception("a mindstorm stopped by a fault of ours", extra={"mindstorm": run.id})
        if run.kept:
            state = "decided" if run.error is None else "stopped"
            await self._ledger.close(run.id, state, redact(str(run.error or "")))

    def _over(self, run: Run, place: Place) -> None:
        """Clears up after a run; also after one that was cancelled before its first step."""
        place.drop()
        if self._runs.get(run.id) is run:
            del self._runs[run.id]
        ended = "stopped" if run.error else "decided" if run.verdict else "cancelled"
        run.close(ended)
        self.metrics.ended(run.society_id, ended, run.verdict)
        log.info("mindstorm", extra={"mindstorm": run.id, "society": run.society_id, "ended": ended})

    async def _watch(self, run: Run, account: Account) -> None:
        async with run.society.mindstorm(run.task, seed=run.seed, limits=run.limits) as storm:
            async for event in storm:
                before = run.spent
                if isinstance(event, Decided):
                    run.verdict = event.verdict
                run.take(event)
                if run.spent > before:
                    account.spend(run.spent - before)
                self.metrics.event(run.society_id, event)
            run.verdict = await storm.verdict()

    async def resume(self) -> None:
        """Takes up the mindstorms that were kept and not over when the server last ended."""
        for entry in await self._ledger.open():
            society = self.societies.get(entry.society)
            if society is None:
                await self._ledger.close(
                    entry.id, "stopped", f"society {entry.society!r} is not served any more"
                )
                continue
            task = society.task.model_validate_json(entry.task)
            limits = Limits.model_validate_json(entry.limits)
            if society.id_of(task, seed=entry.seed, limits=limits) != entry.id:
                await self._ledger.close(
                    entry.id, "stopped", f"society {entry.society!r} is another since then"
                )
                continue
            (place,) = self.places.reserve(always=True)
            await self.begin(
                place, Account("resumed"), entry.society, task, seed=entry.seed, limits=limits, kept=True
            )
            log.info("taken up again", extra={"mindstorm": entry.id, "society": entry.society})

    async def close(self) -> None:
        """Ends all mindstorms; those that are kept go on when a server is started again."""
        self.draining.set()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _named(societies: Sequence[Society]) -> Mapping[str, Society]:
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
    """A house whose trace, ledger and pictures are in a folder; open, with its kept mindstorms taken up."""
    try:
        await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{folder}: the folder cannot be made ({error.strerror or error})") from None
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
