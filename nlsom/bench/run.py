"""Runs: societies over the samples of a set, many at once, so that a killed run goes on where it was."""

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

_BATCH = 64  # samples read from the set at a time, in a thread
_PICTURES = 256  # references held: questions about one picture stand next to each other in most sets


@dataclass(frozen=True, slots=True)
class Contender:
    """A society that is to be run.

    Attributes:
        society: The society; not open, its trace and media are set by the runner.
        told: What the run's folder says of it.
    """

    society: Society
    told: Entrant

    @classmethod
    def of(cls, society: Society, name: str = "") -> Contender:
        """A society built in Python."""
        return cls(society, Entrant(name=name or society.name))


@dataclass
class Runner:
    """Runs societies over a set, into a folder.

    Every outcome goes into the folder's trace before anything is made of it, and every sample that is done
    becomes a line; so a run that was killed asks again only for the calls that were in flight.

    Attributes:
        samples: The set.
        folder: Where the run lies.
        limit: How many samples; None for all.
        sample_seed: Draws them; None takes the first.
        seeds: How many seeds each is asked with.
        concurrency: Samples at once.
        budget: Tokens for the whole run: once they are spent no new sample is begun. None is without limit.
        retry_failed: Asks again for samples that ended in an error, that a limit cut short, or in which a
            member abstained. What was replied is not asked for again.
        watch: Told of every line.
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
        """Runs the societies, one after the other, and returns what the folder says of the run.

        Raises:
            UsageError: Two societies have one name, the folder holds another run, or the set cannot be read.
            TraceError: The trace cannot be written.
        """
        names = [contender.told.name for contender in contenders]
        for name in names:
            if names.count(name) > 1:
                raise UsageError(f"{name!r} is run twice; give one of them another name")
        if min(self.concurrency, self.seeds, 1 if self.limit is None else self.limit) < 1:
            raise UsageError("concurrency, seeds and limit are whole numbers from 1")
        spec = self.samples.spec
        # Before anything is written: a slip in the path should not leave a folder that refuses the right one.
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
                progress, done = self._known(name, total)
                if progress.done >= total:
                    self.tell(progress)
                    continue
                async with society:
                    self.folder.enter(entrant(society, contender.told))
                    with self.folder.lines.append() as file:
                        await _Run(self, society, judge, media, file, progress, done).run()
        return self.folder.config()

    def _known(self, name: str, total: int) -> tuple[Progress, set[tuple[int, str]]]:
        """What earlier runs did for a society, and which of it stands."""
        progress, done = Progress(name, total=total), set[tuple[int, str]]()
        tokens = 0
        for line in self.folder.lines.last():
            tokens += line.usage.tokens
            if line.society == name and not (self.retry_failed and line.failed):
                progress = progress.after(line, 0.0, fresh=False)
                done.add((line.seed, line.sample))
        return replace(progress, tokens=tokens), done

    def tell(self, progress: Progress) -> None:
        """Tells whoever watches."""
        if self.watch is not None:
            self.watch(progress)

    async def image(self, picture: str | bytes, media: MediaStore) -> Image:
        """The reference of a picture; those seen last are not passed through the gate again."""
        if isinstance(picture, bytes):
            return await media.add(picture)
        if picture not in self._images:
            self._images[picture] = await media.add(picture)
        self._images.move_to_end(picture)
        if len(self._images) > _PICTURES:
            self._images.popitem(last=False)
        return self._images[picture]


def _take(samples: Iterator[Sample]) -> list[Sample]:
    return list(itertools.islice(samples, _BATCH))


@dataclass
class _Run:
    """One society over the set."""

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
            # A few hundred bytes to the page cache: cheaper than handing them to a thread.
            self.runner.folder.lines.write(line, self.file)
            self.progress = self.progress.after(line, time.perf_counter() - began, fresh=True)
            self.runner.tell(self.progress)

        try:
            async with asyncio.TaskGroup() as group:
                async for seed, sample in self._open_samples():
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

    async def _open_samples(self) -> AsyncIterator[tuple[int, Sample]]:
        """What has no line yet; the set is read in a thread, a batch at a time."""
        runner = self.runner
        for seed in range(runner.seeds):
            found = runner.samples.samples(runner.limit, seed=runner.sample_seed)
            while batch := await asyncio.to_thread(_take, found):
                for sample in batch:
                    if not isinstance(sample.task, self.society.task):
                        works, has = self.society.task.kind, sample.task.kind
                        raise UsageError(f"{self.progress.society} works on {works} tasks, the set has {has}")
                    if (seed, sample.id) not in self.done:
                        yield seed, sample

    async def _line(self, seed: int, sample: Sample) -> Line:
        """Asks, and scores. Whatever fails is told in the line; only a trace that fails ends the run."""
        line = line_of(self.progress.society, seed, sample, sample.task)
        try:
            task = await self._task(sample)
            line = line_of(self.progress.society, seed, sample, task)
            line = decided(line, await self.society.ask(task, seed=seed))
            score = self.judge.score(line.answer, sample)
        except TraceError:
            raise
        except Exception as error:  # noqa: BLE001
            # The run's declared policy: a sample that fails is counted and named, and the run goes on.
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
        """The task with its pictures, which have passed the gate."""
        images = [await self.runner.image(picture, self.media) for picture in sample.pictures]
        return type(sample.task).model_validate({**sample.task.model_dump(), "images": images})
