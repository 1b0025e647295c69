"""Lines: the results of samples as JSON lines, self-contained, so that a report does not need the set."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from io import FileIO
from pathlib import Path
from typing import Any

from pydantic import JsonValue, ValidationError

from nlsom import plugins
from nlsom.bench.sample import Sample
from nlsom.errors import UsageError
from nlsom.message import Frozen, Image, Usage
from nlsom.task import Task
from nlsom.verdict import Abstention, Verdict

Place = tuple[str, int, str]
"""What a line is about: society, seed, sample."""


class Line(Frozen):
    """A sample, a society's answer to it, and its score.

    Attributes:
        society: Name of the society.
        seed: Seed of the mindstorm.
        sample: Identifier of the sample in its set.
        kind: Kind of the task.
        task: The task; its pictures are references into the run's `media`.
        answers: Gold answers.
        choice: Index of the right choice, if there is one.
        references: Gold captions.
        meta: Other fields of the set.
        answer: The society's answer, normalised by the task; None if there is no verdict.
        confidence: Confidence of the verdict, between 0 and 1.
        official: Score by the set's own rule; None if the set does not score single samples.
        lenient: Score as a person would judge; None like `official`.
        read: The answer that the lenient score read.
        why: How it was read, or why it could not be.
        tied: The alternatives that were tied.
        abstained: Every abstention of the mindstorm.
        cut_short: The limit that ended it early.
        usage: Usage of the whole mindstorm, including earlier runs of it; seconds are those of the last run.
        asked: Calls to models made by the last run; all other replies came from the trace.
        mindstorm: Its id in the run's trace.
        error: Why the sample failed; "" if it did not.
    """

    society: str
    seed: int
    sample: str
    kind: str
    task: dict[str, JsonValue]
    answers: tuple[str, ...] = ()
    choice: int | None = None
    references: tuple[str, ...] = ()
    meta: dict[str, JsonValue] = {}
    answer: str | None = None
    confidence: float | None = None
    official: float | None = None
    lenient: float | None = None
    read: str | None = None
    why: str = ""
    tied: tuple[str, ...] = ()
    abstained: tuple[Abstention, ...] = ()
    cut_short: str | None = None
    usage: Usage = Usage()
    asked: int = 0
    mindstorm: str = ""
    error: str = ""

    @property
    def place(self) -> Place:
        """Society, seed and sample: at most one line of each place counts."""
        return self.society, self.seed, self.sample

    @property
    def failed(self) -> bool:
        """Whether asking again may help: an error occurred, a member abstained, or a limit cut it short."""
        return bool(self.error or self.abstained or self.cut_short)

    @property
    def question(self) -> str:
        """The question of the task."""
        return str(self.task.get("question", ""))

    @property
    def images(self) -> tuple[Image, ...]:
        """The pictures of the task."""
        found: Any = self.task.get("images", ())
        return tuple(Image.model_validate(one) for one in found)

    def as_task(self) -> Task:
        """The task as it was asked.

        Raises:
            PluginError: This kind of task is not installed.
        """
        kind: type[Task] = plugins.load("tasks", self.kind)
        return kind.model_validate(self.task)

    def as_sample(self) -> Sample:
        """The sample, to score it again.

        Raises:
            PluginError: This kind of task is not installed.
        """
        return Sample(
            id=self.sample,
            task=self.as_task(),
            answers=self.answers,
            choice=self.choice,
            references=self.references,
            meta=self.meta,
        )


def first_fault(error: ValidationError) -> str:
    """The first fault of a file's content, as `field: fault`."""
    first = error.errors(include_url=False)[0]
    field = ".".join(map(str, first["loc"]))
    return f"{field}: {first['msg']}" if field else first["msg"]


def line_of(society: str, seed: int, sample: Sample, task: Task) -> Line:
    """A line with the data of the set, without a verdict."""
    return Line(
        society=society,
        seed=seed,
        sample=sample.id,
        kind=task.kind,
        task=task.model_dump(mode="json"),
        answers=sample.answers,
        choice=sample.choice,
        references=sample.references,
        meta=dict(sample.meta),
    )


def decided(line: Line, verdict: Verdict) -> Line:
    """The line with the verdict."""
    return line.model_copy(
        update={
            "answer": verdict.counted,
            "confidence": verdict.confidence,
            "tied": verdict.tied,
            "abstained": verdict.abstained,
            "cut_short": verdict.cut_short,
            "usage": verdict.usage_total,
            "asked": verdict.usage.calls,
            "mindstorm": verdict.mindstorm,
        }
    )


class Lines:
    """The file of a run's lines. An incomplete line is ignored; the last line of each place counts."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __iter__(self) -> Iterator[Line]:
        """All lines, in the order in which they were written.

        Raises:
            UsageError: A line does not have the format of a run's lines.
        """
        if not self.path.exists():
            return
        with open(self.path, "rb") as file:
            for number, raw in enumerate(file, 1):
                if not raw.endswith(b"\n"):
                    return  # the process was killed while writing; the sample is run again
                try:
                    yield Line.model_validate_json(raw)
                except ValidationError as error:
                    raise UsageError(f"{self.path}, line {number}: {first_fault(error)}") from None

    def last(self) -> Iterator[Line]:
        """The lines that count, one for each place, in the order of writing. Reads the file twice."""
        last = {line.place: number for number, line in enumerate(self)}
        return (line for number, line in enumerate(self) if last[line.place] == number)

    def append(self) -> FileIO:
        """Opens the file for `write`: at its end, unbuffered."""
        return open(self.path, "ab", buffering=0)

    def write(self, line: Line, file: FileIO) -> None:
        """Writes a line in one piece, so that it survives a kill of the process.

        Raises:
            OSError: The disk has no room for all of it; `mend` removes the part that was written.
        """
        raw = line.model_dump_json().encode() + b"\n"
        if file.write(raw) < len(raw):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))

    def mend(self) -> None:
        """Removes an incomplete line at the end, left by a killed process."""
        if not self.path.exists():
            return
        with open(self.path, "rb+") as file:
            whole = file.seek(0, 2)
            while whole:
                at = max(0, whole - 65536)
                file.seek(at)
                found = file.read(whole - at).rfind(b"\n")
                if found >= 0:
                    whole = at + found + 1
                    break
                whole = at
            file.truncate(whole)
