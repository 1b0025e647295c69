"""Samples: what a set asks, and what it holds to be right."""

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
        task: What is asked; its `images` are empty until the runner has passed `pictures` through the gate.
        answers: Gold answers, in the set's order: the ten of VQA, the accepted ones of DocVQA, or one.
        choice: Index of the right one among `task.choices`; None where the set has no choices or keeps it
            secret.
        references: Gold captions.
        pictures: Paths or URLs of the pictures; or the bytes of a file, where a set embeds them.
        meta: What the set says besides, such as `question_type`, `difficult` or `group`.
    """

    id: str
    task: Task
    answers: tuple[str, ...] = ()
    choice: int | None = None
    references: tuple[str, ...] = ()
    pictures: tuple[str | bytes, ...] = ()
    meta: Mapping[str, JsonValue] = field(default_factory=_no_meta)
