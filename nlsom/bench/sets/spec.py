"""What there is to say about a set: its files, its columns, its task, its scorer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from nlsom.bench.sample import Sample
from nlsom.bench.sets.fields import Row
from nlsom.task import Task, VqaTask

Pictures = Callable[..., str]
"""The names that a picture's file may have, to where it lies."""

Convert = Callable[[Row, Pictures], Sample]

Read = Callable[[Path], Iterator[Row]]


@dataclass(frozen=True, slots=True)
class Files:
    """One layout of a set: where its records are found.

    Attributes:
        pattern: Glob under the set's folder; all files that match, in order.
        key: Where the records stand in a JSON object; "" for an array or lines.
        join: Glob of a second file whose records belong to those of the first, such as answers to questions.
        join_key: Where its records stand.
        on: The field by which they belong together.
        read: Reads a file in a way of its own, where records do not stand one by one in it.
    """

    pattern: str
    key: str = ""
    join: str = ""
    join_key: str = ""
    on: str = "question_id"
    read: Read | None = None


@dataclass(frozen=True, slots=True)
class Hub:
    """Where a hub of data sets keeps a set.

    Attributes:
        dataset: Its identifier there, such as "lmms-lab/POPE".
        files: Glob of the files that are wanted: one split.
    """

    dataset: str
    files: str


@dataclass(frozen=True, slots=True)
class Spec:
    """The declaration of a set.

    Attributes:
        name: What it is called on the command line.
        about: A line about it.
        scorer: Name of its official scorer.
        licence: Of its questions and pictures.
        source: Where to get it.
        layouts: The official one and others; the first whose files are there counts.
        convert: A record to a sample: a `Question` or a `Caption` names the columns.
        task: Kind of its tasks.
        folders: Where its pictures lie, under the set's folder; tried in order.
        tried: Whether the layout has been read from real files; else it is taken from its documentation.
        package: The Python package that holds the set; "" where it has to be fetched.
        hub: Where it can be fetched by name, as its documentation has it; None where it cannot.
    """

    name: str
    about: str
    scorer: str
    licence: str
    source: str
    layouts: tuple[Files, ...]
    convert: Convert
    task: type[Task] = VqaTask
    folders: tuple[str, ...] = ("images", ".")
    tried: bool = False
    package: str = ""
    hub: Hub | None = None
