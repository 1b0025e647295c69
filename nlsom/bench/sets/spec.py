"""The declaration of a set: its files, columns, task and scorer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from nlsom.bench.sample import Sample
from nlsom.bench.sets.fields import Row
from nlsom.task import Task, VqaTask

Pictures = Callable[..., str]
"""Maps the possible names of a picture's file to its path."""

Convert = Callable[[Row, Pictures], Sample]
"""Converts a record to a sample."""

Read = Callable[[Path], Iterator[Row]]
"""Reads the records of a file."""


@dataclass(frozen=True, slots=True)
class Files:
    """One layout of a set's files.

    Attributes:
        pattern: Glob, relative to the set's folder; all matching files are read, in sorted order.
        key: The field of a JSON object that contains the records; "" for an array or JSON lines.
        join: Glob of a second file to join with the first, such as answers with questions; "" for none.
        join_key: Like `key`, for the second file.
        on: The field on which the two files are joined.
        read: Reads a file whose format `records` does not support; None for `records`.
    """

    pattern: str
    key: str = ""
    join: str = ""
    join_key: str = ""
    on: str = "question_id"
    read: Read | None = None


@dataclass(frozen=True, slots=True)
class Hub:
    """The location of a set on a hub of data sets.

    Attributes:
        dataset: Its identifier there, such as "lmms-lab/POPE".
        files: Glob of the files to fetch: one split.
    """

    dataset: str
    files: str


@dataclass(frozen=True, slots=True)
class Spec:
    """The declaration of a set.

    Attributes:
        name: Its name on the command line.
        about: A one-line description.
        scorer: Name of its official scorer.
        licence: Licence of its questions and pictures.
        source: Where to get it.
        layouts: The official layout and others; the first whose files exist is used.
        convert: Converts a record to a sample; usually a `Question` or a `Caption`, which name the columns.
        task: The type of its tasks.
        folders: Folders of its pictures, relative to the set's folder; tried in order.
        tried: Whether the layout was tested with real files; if not, it follows the set's documentation.
        package: The Python package that contains the set; "" if there is none.
        hub: Where it can be fetched by name, according to the hub's documentation; None if nowhere.
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
