"""Access to the fields of records, with errors that say where one is missing."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from nlsom.bench.sets.records import Record
from nlsom.errors import UsageError


@dataclass(frozen=True, slots=True)
class Row:
    """A record, and its location (file and line or number) for error messages."""

    record: Record
    where: str

    def get(self, path: str) -> Any:
        """The value at a path; `answers[].answer` is the list of the `answer` of each item of `answers`.

        Items that are strings are taken unchanged. Of several paths (`text|question`), the first whose field
        exists is used.

        Raises:
            UsageError: There is no such field.
        """
        path = self._there(path)
        name, _, rest = path.partition("[].")
        if "[]" not in path:
            return self._one(name)
        items = self.items(name.removesuffix("[]"))
        if not rest:
            return items
        # Some copies of a set contain only the strings.
        return [
            item if isinstance(item, str) else Row(item, f"{self.where}, {name}").get(rest) for item in items
        ]

    def _there(self, paths: str) -> str:
        """The first of several paths whose field exists, else the last."""
        *others, last = paths.split("|")
        return next((path for path in others if path.split("[")[0].split(".")[0] in self.record), last)

    def _one(self, name: str) -> Any:
        value: Any = self.record
        for part in name.split("."):
            if not isinstance(value, dict) or part not in value:
                known = (
                    ", ".join(map(str, cast(Record, value)))
                    if isinstance(value, dict)
                    else type(value).__name__
                )
                raise UsageError(f"{self.where}: no field {name!r} (there are: {known})")
            value = cast(Record, value)[part]
        return value

    def items(self, name: str) -> list[Any]:
        """The list in a field, which may be written as text, such as `["a", "b"]` or `a|b`.

        Raises:
            UsageError: There is no such field, or it is not a list.
        """
        value = self._one(name)
        if isinstance(value, str):
            if value.lstrip().startswith("["):
                try:
                    value = ast.literal_eval(value)
                except (ValueError, SyntaxError):
                    raise UsageError(f"{self.where}: field {name!r} is not a list: {value[:60]!r}") from None
            else:
                value = [part.strip() for part in value.split("|")] if value.strip() else []
        if not isinstance(value, Sequence) or isinstance(value, bytes):
            raise UsageError(f"{self.where}: field {name!r} is {type(value).__name__}, not a list")
        return list(cast(Sequence[Any], value))

    def texts(self, path: str) -> tuple[str, ...]:
        """The strings of a list; for a single value, only that one.

        Raises:
            UsageError: There is no such field.
        """
        value = self.get(path)
        if isinstance(value, list):
            return tuple(str(item) for item in cast(list[Any], value))
        return (str(value),)

    def has(self, name: str) -> bool:
        """Whether the field exists and is not empty."""
        return self.record.get(name) not in (None, "", [])
