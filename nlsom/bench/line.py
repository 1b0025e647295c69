"""Lines: what became of a sample, one JSON object a line, self-contained so that a report needs no set."""

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
"""Where a line belongs: society, seed, sample."""


class Line(Frozen):
    """A sample, the answer of a society, and what that is worth.

    Attributes:
        society: Who was asked.
        seed: The run's seed.
        sample: Identifier of the sample in its set.
        kind: Kind of the task.
        task: The task, pictures by reference into the run's `media`.
        answers: Gold answers.
        choice: Index of the right choice, if there is one.
        references: Gold captions.
        meta: What the set says besides.
        answer: What the society answered, as the task counts it; None for no verdict.
        confidence: Of the verdict, between 0 and 1.
        official: By the rule of the set; None where it counts no single samples, or failed.
        lenient: As a person would judge.
        read: What the lenient column took as the answer.
        why: How it was read, or why not.
        tied: The alternatives that were tied.
        abstained: Every abstention of the mindstorm.
        cut_short: The limit that ended it early.
        usage: Spent by the whole mindstorm, earlier runs of it included; seconds are of the last run.
        asked: Calls of models that this run of it made, the others came from the trace.
        mindstorm: Its id in the run's trace.
        error: Why there is no verdict at all; "" otherwise.
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
        """Where it belongs."""
        return self.society, self.seed, self.sample

    @property
    def failed(self) -> bool:
        """Whether asking again may help: there was an error, a member abstained, or a limit cut it."""
        return bool(self.error or self.abstained or self.cut_short)

    @property
    def question(self) -> str:
        """What was asked."""
        return str(self.task.get("question", ""))

    @property
    def images(self) -> tuple[Image, ...]:
        """The pictures."""
        found: Any = self.task.get("images", ())
        return tuple(Image.model_validate(one) for one in found)

    def as_task(self) -> Task:
        """The task, as it was asked.

        Raises:
            PluginError: The kind of task is not installed.
        """
        kind: type[Task] = plugins.load("tasks", self.kind)
        return kind.model_validate(self.task)

    def as_sample(self) -> Sample:
        """The sample, for scoring again."""
        return Sample(
            id=self.sample,
            task=self.as_task(),
            answers=self.answers,
            choice=self.choice,
            references=self.references,
            meta=self.meta,
        )


def first_fault(error: ValidationError) -> str:
    """The first thing that is wrong with what a file holds: `field: what`."""
    first = error.errors(include_url=False)[0]
    field = ".".join(map(str, first["loc"]))
    return f"{field}: {first['msg']}" if field else first["msg"]


def line_of(society: str, seed: int, sample: Sample, task: Task) -> Line:
    """A line with what the set knows, and no verdict yet."""
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
    """A line with the verdict."""
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
    """The lines of a run in a file. A line is whole or not there; the last line of a place counts."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __iter__(self) -> Iterator[Line]:
        """Every line, in the order they were written.

        Raises:
            UsageError: A line is not one that a run wrote.
        """
        if not self.path.exists():
            return
        with open(self.path, "rb") as file:
            for number, raw in enumerate(file, 1):
                if not raw.endswith(b"\n"):
                    return  # the process was killed while it wrote; the sample is asked for again
                try:
                    yield Line.model_validate_json(raw)
                except ValidationError as error:
                    raise UsageError(f"{self.path}, line {number}: {first_fault(error)}") from None

    def last(self) -> Iterator[Line]:
        """The lines that count, one a place, in the order they were written; reads the file twice."""
        last = {line.place: number for number, line in enumerate(self)}
        return (line for number, line in enumerate(self) if last[line.place] == number)

    def append(self) -> FileIO:
        """The file, open to write whole lines at its end, unbuffered."""
        return open(self.path, "ab", buffering=0)

    def write(self, line: Line, file: FileIO) -> None:
        """Writes a line in one piece, so that it outlives the process.

        Raises:
            OSError: There is no room for the whole of it; `mend` takes the beginning away.
        """
        raw = line.model_dump_json().encode() + b"\n"
        if file.write(raw) < len(raw):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))

    def mend(self) -> None:
        """Takes away the beginning of a line that a killed process left at the end."""
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
