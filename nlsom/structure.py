"""Structures: whose messages may reach whom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from nlsom.member import Member

Hearing = range | tuple[int, ...]


class Structure(Protocol):
    """Says whom each member may hear. Members are known by their place in declaration order."""

    def hears(self, at: int) -> Hearing:
        """Whom member `at` hears, ascending; equal for all who hear the same.

        It holds `at` itself exactly where at least one other member hears the very same: then the member's
        own words stay in the transcript that both share.
        """
        ...


@dataclass(frozen=True, slots=True)
class Everyone:
    """Everyone hears everyone."""

    members: int

    def hears(self, at: int) -> Hearing:
        """All members, whoever asks."""
        del at
        return range(self.members)


def democracy(members: Sequence[Member]) -> Structure:
    """Everyone hears everyone."""
    return Everyone(len(members))
