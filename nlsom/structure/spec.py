"""The base of all specifications of structures."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from nlsom.member import Member
from nlsom.message import Frozen
from nlsom.structure.hearing import Structure


class StructureSpec(Frozen, ABC):
    """A structure with its parameters, not yet applied to the members of a society."""

    @abstractmethod
    def build(self, members: Sequence[Member]) -> Structure:
        """Makes the structure of a society with these members.

        Raises:
            ConfigError: Parameters do not fit the members; `where` of each fault is the dotted path of a
                parameter in the specification.
        """
