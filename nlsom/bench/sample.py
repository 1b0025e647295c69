"""Samples: the questions of a set with their gold answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from pydantic import JsonValue

from nlsom.task import Task


def _no_meta() -> Mapping[str, JsonValue]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Sample:
    """One question of a set, with its gold answers.

    Attributes:
        id: Its identifier in the set.
        task: What is asked. Its `images` are empty until the runner passes `pictures` through the media gate.
        answers: Gold answers in the set's order, such as the ten of VQA or the accepted ones of DocVQA.
        choice: Index of the right choice in `task.choices`; None if there are no choices or the set does not
            publish it.
        references: Gold captions.
        pictures: Paths or URLs of the pictures, or the bytes of a file if the set embeds them.
        meta: Other fields of the set, such as `question_type`, `difficult` or `group`.
    """

    id: str
    task: Task
    answers: tuple[str, ...] = ()
    choice: int | None = None
    references: tuple[str, ...] = ()
    pictures: tuple[str | bytes, ...] = ()
    meta: Mapping[str, JsonValue] = field(default_factory=_no_meta)
