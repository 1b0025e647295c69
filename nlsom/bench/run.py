"""Runs societies over the samples of a set, many at once; a killed run can be resumed."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from io import FileIO

from nlsom.bench.folder import Config, Entrant, RunFolder, entrant
from nlsom.bench.line import Line, decided, line_of
from nlsom.bench.progress import Progress, Watch
from nlsom.bench.sample import Sample
from nlsom.bench.scores import Scorer, scorer
from nlsom.bench.sets import SampleSet
from nlsom.errors import TraceError, UsageError
from nlsom.media import FolderStore, MediaStore
from nlsom.message import Image
from nlsom.society import Society
from nlsom.task import Task
from nlsom.trace import SqliteTrace

_BATCH = 64  # samples read from the set at once, in a thread
_PICTURES = 256  # cached references: in most sets, questions about one picture are adjacent


@dataclass(frozen=True, slots=True)
class Contender:
    """A society to run.

    Attributes:
        society: The society, not open; the runner sets its trace and media.
        told: Its description for the run's folder.
    """

    society: Society
    told: Entrant

    @classmethod
    def of(cls, society: Society, name: str = "") -> Contender:
        """A contender from a society built in Python; `name` defaults to the society's own."""
        return cls(society, Entrant(name=name or society.name))


@dataclass
class Runner:
    """Runs societies over a set and stores the results in a folder.

    Every outcome is stored in the folder's trace before it is used, and every finished sample as a line; so a
    resumed run repeats only the calls that were in flight.

    Attributes:
        samples: The set.
        folder: The run's folder.
        limit: Number of samples; None for all.
        sample_seed: Seed for drawing the samples; None takes the first ones.
        seeds: Number of seeds with which each sample is asked.
        concurrency: Maximum number of samples at once.
        budget: Tokens for the whole run: once they are spent, no new sample is started. None for no limit.
        retry_failed: Whether to repeat samples that ended in an error, were cut short by a limit, or in which
            a member abstained. Stored replies are not asked for again.
        watch: Called with the progress after each line.
    """

    samples: SampleSet
    folder: RunFolder
    limit: int | None = None
    sample_seed: int | None = None
    seeds: int = 1
    concurrency: int = 8
    budget: int | None = None
    retry_failed: bool = False
    watch: Watch | None = None
    _images: OrderedDict[str, Image] = field(default_factory=OrderedDict[str, Image], init=False, repr=False)

    async def run(self, contenders: Sequence[Contender]) -> Config:
        """Runs the societies, one after the other, and returns the run's configuration.

        Raises:
            UsageError: Two societies have the same name, the folder has a run with other settings, an
                attribute is out of range, or the set cannot be read or does not fit a society.
            TraceError: The trace cannot be written.
        """
        names = [contender.told.name for contender in contenders]
        for name in names:
            if names.count(name) > 1:
                raise UsageError(f"two societies are called {name!r}; give one of them another name")
        if min(self.concurrency, self.seeds, 1 if self.limit is None else self.limit) < 1:
            raise UsageError("concurrency, seeds and limit must be at least 1")
        spec = self.samples.spec
        # Checked first: a mistyped path must not leave a folder that refuses the right one.
        if await asyncio.to_thread(lambda: next(iter(self.samples), None)) is None:
            raise UsageError(f"{self.samples.path}: the set {spec.name!r} has no samples there")
        config = self.folder.begin(
            Config(
                on=spec.name,
                path=str(self.samples.path),
                scorer=spec.scorer,
                limit=self.limit,
                sample_seed=self.sample_seed,
                seeds=self.seeds,
                entrants=tuple(contender.told for contender in contenders),
                budget=self.budget,
            )
        )
        self.folder.lines.mend()
        judge, media = scorer(config.scorer), FolderStore(self.folder.media)
        total = self.seeds * (self.limit or await asyncio.to_thread(lambda: sum(1 for _ in self.samples)))
        async with SqliteTrace(self.folder.trace) as trace:
            for contender in contenders:
                society = contender.society
                society.trace, society.media, society.retry_failed = trace, media, self.retry_failed
                name = contender.told.name
                progress, done = self._earlier(name, total)
                if progress.done >= total:
                    self.tell(progress)
                    continue
                async with society:
                    self.folder.enter(entrant(society, contender.told))
                    with self.folder.lines.append() as file:
                        await _SocietyRun(self, society, judge, media, file, progress, done).run()
        return self.folder.config()

    def _earlier(self, name: str, total: int) -> tuple[Progress, set[tuple[int, str]]]:
        """The progress of earlier runs of a society, and the (seed, sample) pairs that need no repetition."""
        progress, done = Progress(name, total=total), set[tuple[int, str]]()
        tokens = 0
        for line in self.folder.lines.last():
            tokens += line.usage.tokens
            if line.society == name and not (self.retry_failed and line.failed):
                progress = progress.after(line, 0.0, fresh=False)
                done.add((line.seed, line.sample))
        return replace(progress, tokens=tokens), done

    def tell(self, progress: Progress) -> None:
        """Calls `watch`, if there is one."""
        if self.watch is not None:
            self.watch(progress)

    async def image(self, picture: str | bytes, media: MediaStore) -> Image:
        """The reference of a picture. Recently used ones do not pass the media gate again."""
        if isinstance(picture, bytes):
            return await media.add(picture)
        if picture not in self._images:
            self._images[picture] = await media.add(picture)
        self._images.move_to_end(picture)
        if len(self._images) > _PICTURES:
            self._images.popitem(last=False)
        return self._images[picture]


def _next_batch(samples: Iterator[Sample]) -> list[Sample]:
    return list(itertools.islice(samples, _BATCH))


@dataclass
class _SocietyRun:
    """Runs one society over the set."""

    runner: Runner
    society: Society
    judge: Scorer
    media: MediaStore
    file: FileIO
    progress: Progress
    done: set[tuple[int, str]]

    async def run(self) -> None:
        slots = asyncio.Semaphore(self.runner.concurrency)
        began = time.perf_counter()

        async def one(seed: int, sample: Sample) -> None:
            try:
                line = await self._line(seed, sample)
            finally:
                slots.release()
            # A few hundred bytes into the page cache: cheaper than a thread.
            self.runner.folder.lines.write(line, self.file)
            self.progress = self.progress.after(line, time.perf_counter() - began, fresh=True)
            self.runner.tell(self.progress)

        try:
            async with asyncio.TaskGroup() as group:
                async for seed, sample in self._pending_samples():
                    await slots.acquire()
                    if self._spent():
                        break
                    group.create_task(one(seed, sample))
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None
        stopped = f"the budget of {self.runner.budget} tokens is spent" if self._spent() else ""
        self.progress = replace(self.progress, stopped=stopped, seconds=time.perf_counter() - began)
        self.runner.tell(self.progress)

    def _spent(self) -> bool:
        budget = self.runner.budget
        return budget is not None and self.progress.tokens >= budget

    async def _pending_samples(self) -> AsyncIterator[tuple[int, Sample]]:
        """The seeds and samples to run; the set is read in a thread, one batch at a time."""
        runner = self.runner
        for seed in range(runner.seeds):
            found = runner.samples.samples(runner.limit, seed=runner.sample_seed)
            while batch := await asyncio.to_thread(_next_batch, found):
                for sample in batch:
                    if not isinstance(sample.task, self.society.task):
                        works, has = self.society.task.kind, sample.task.kind
                        raise UsageError(
                            f"{self.progress.society} works on {works} tasks, but the set has {has} tasks"
                        )
                    if (seed, sample.id) not in self.done:
                        yield seed, sample

    async def _line(self, seed: int, sample: Sample) -> Line:
        """Runs and scores a sample. An error becomes part of the line; only a `TraceError` ends the run."""
        line = line_of(self.progress.society, seed, sample, sample.task)
        try:
            task = await self._task(sample)
            line = line_of(self.progress.society, seed, sample, task)
            line = decided(line, await self.society.ask(task, seed=seed))
            score = self.judge.score(line.answer, sample)
        except TraceError:
            raise
        except Exception as error:  # noqa: BLE001
            # Declared policy of a run: a failed sample is counted and reported, and the run continues.
            score = self.judge.score(None, sample)
            line = line.model_copy(update={"error": f"{type(error).__name__}: {error}"})
        if score is None:
            return line
        return line.model_copy(
            update={
                "official": score.official,
                "lenient": score.lenient,
                "read": score.read,
                "why": score.why,
            }
        )

    async def _task(self, sample: Sample) -> Task:
        """The task with its pictures, which have passed the media gate."""
        images = [await self.runner.image(picture, self.media) for picture in sample.pictures]
        return type(sample.task).model_validate({**sample.task.model_dump(), "images": images})
