"""Converts records to samples, by their columns."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from pydantic import JsonValue

from nlsom.bench.sample import Sample
from nlsom.bench.sets.fields import Row
from nlsom.bench.sets.records import keyed, records
from nlsom.bench.sets.spec import Pictures
from nlsom.errors import UsageError
from nlsom.form import labels_for
from nlsom.task import CaptionTask, VqaTask


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Converts records that contain a question; names the columns to use.

    Attributes:
        id: Column of the identifier.
        ask: Column of the question.
        picture: The picture's file name, with columns in braces; or `@` and the name of a column that holds
            the picture, or a prefix of several such columns (`@image_*`). `|` separates alternatives.
        answers: Column, or path as in `Row.get`, of the gold answers.
        choices: Column with the list of options; or columns with one option each, separated by spaces.
        among: Options shared by all questions; takes precedence over `choices`.
        right: Column of the right option: its index from 0, its letter, or its text.
        context: Column of facts that are given with the question.
        blank: A value, such as "nan", that means "empty" in the columns `choices`, `right` and `context`.
        meta: Columns to keep.
    """

    id: str = "question_id"
    ask: str = "question"
    picture: str = "@image"
    answers: str = ""
    choices: str = ""
    among: tuple[str, ...] = ()
    right: str = ""
    context: str = ""
    blank: str = ""
    meta: tuple[str, ...] = ()

    def __call__(self, row: Row, find: Pictures) -> Sample:
        """The sample of a record.

        Raises:
            UsageError: A field is missing, or is not what it should be.
        """
        options = self.among or self._options(row)
        return Sample(
            id=str(row.get(self.id)),
            task=VqaTask(
                question=str(row.get(self.ask)),
                choices=options,
                context=str(row.get(self.context)) if self._given(row, self.context) else "",
            ),
            answers=row.texts(self.answers) if self.answers else (),
            choice=_right(row, self.right, options) if options and self._given(row, self.right) else None,
            pictures=_pictures(row, self.picture, find),
            meta=_meta(row, self.meta),
        )

    def _given(self, row: Row, column: str) -> bool:
        return bool(column) and row.has(column) and row.record[column] != (self.blank or None)

    def _options(self, row: Row) -> tuple[str, ...]:
        columns = self.choices.split()
        if len(columns) > 1:
            return tuple(str(row.get(column)) for column in columns if self._given(row, column))
        return tuple(map(str, row.items(self.choices))) if self._given(row, self.choices) else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Caption:
    """Converts records that contain a picture and its captions; names the columns to use.

    Attributes:
        id: Column of the identifier.
        references: Column, or path as in `Row.get`, of the captions.
        picture: The picture, as in `Question.picture`.
        meta: Columns to keep.
    """

    id: str
    references: str
    picture: str
    meta: tuple[str, ...] = ()

    def __call__(self, row: Row, find: Pictures) -> Sample:
        """The sample of a record.

        Raises:
            UsageError: A field is missing, or is not what it should be.
        """
        return Sample(
            id=str(row.get(self.id)),
            task=CaptionTask(),
            references=row.texts(self.references),
            pictures=_pictures(row, self.picture, find),
            meta=_meta(row, self.meta),
        )


def coco_captions(path: Path) -> Iterator[Row]:
    """Reads COCO's caption files: one record per picture, with its captions in the field `captions`."""
    captions: dict[str, list[str]] = {}
    for n, annotation in enumerate(records(path, "annotations"), 1):
        row = Row(annotation, f"{path}, annotation {n}")
        captions.setdefault(str(row.get("image_id")), []).append(str(row.get("caption")))
    for n, image in enumerate(records(path, "images"), 1):
        row = Row(image, f"{path}, image {n}")
        found = captions.get(str(row.get("id")))
        if found:
            yield Row(image | {"captions": found}, row.where)


def by_key(path: Path) -> Iterator[Row]:
    """Reads a JSON object of records; each identifier becomes the field `key`. For GQA's official files."""
    for name, record in keyed(path):
        yield Row({"key": name} | record, f"{path}, record {name!r}")


def with_pictures(path: Path) -> Iterator[Row]:
    """Reads the records of `by_key` that have a picture. For ScienceQA's official file."""
    for row in by_key(path):
        if row.has("image"):
            folder = f"{row.get('split')}/{row.get('key')}"
            yield Row(row.record | {"image": f"{folder}/{row.get('image')}"}, row.where)


def _right(row: Row, column: str, options: tuple[str, ...]) -> int:
    """The index of the right option."""
    value = row.get(column)
    if isinstance(value, str) and options.count(value) == 1:
        return options.index(value)
    if isinstance(value, str) and value in labels_for(options):
        return labels_for(options).index(value)
    try:
        at = int(value)
    except (TypeError, ValueError):
        raise UsageError(
            f"{row.where}: field {column!r} is {value!r}, which is not the text, letter or index of any "
            f"option (the options: {', '.join(options)})"
        ) from None
    if not 0 <= at < len(options):
        raise UsageError(f"{row.where}: field {column!r} is {at}, but there are {len(options)} options")
    return at


def _pictures(row: Row, picture: str, find: Pictures) -> tuple[str | bytes, ...]:
    names: list[str] = []
    for each in picture.split("|"):
        if each.startswith("@"):
            columns = (
                [name for name in row.record if name.startswith(each[1:-1])]
                if each.endswith("*")
                else [each[1:]]
            )
            found = [_embedded(row, column, find) for column in columns if row.has(column)]
            if found:
                return tuple(found)
        else:
            try:
                names.append(each.format_map(row.record))
            except KeyError as missing:
                raise UsageError(
                    f"{row.where}: no field {missing.args[0]!r}, needed for the picture's file name"
                ) from None
            except ValueError as fault:
                raise UsageError(f"{row.where}: cannot format {each!r} as a file name: {fault}") from None
    if not names:
        wanted = " or ".join(repr(each.lstrip("@")) for each in picture.split("|"))
        known = ", ".join(str(name) for name in row.record if row.has(name))
        raise UsageError(
            f"{row.where}: no picture: {wanted} is missing or empty (fields with a value: {known})"
        )
    return (find(*names),)


def _embedded(row: Row, column: str, find: Pictures) -> str | bytes:
    """The picture in a column, as bytes or a path; base64 is decoded."""
    value: Any = row.get(column)
    if isinstance(value, dict):
        held = cast(dict[str, Any], value)
        value = held.get("bytes") or held.get("path")
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        if len(value) > 1000:  # longer than any path
            return base64.b64decode(value)
        return find(value)
    raise UsageError(f"{row.where}: field {column!r} is {type(value).__name__}, not a picture")


def _meta(row: Row, columns: tuple[str, ...]) -> dict[str, JsonValue]:
    return {column: row.get(column) for column in columns if column in row.record}
