"""What every specification of a structure has in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from nlsom.member import Member
from nlsom.message import Frozen
from nlsom.structure.hearing import Structure


class StructureSpec(Frozen, ABC):
    """A structure with its parameters, as a society's file gives them, for any number of members."""

    @abstractmethod
    def build(self, members: Sequence[Member]) -> Structure:
        """Makes the structure of a society of these members.

        Raises:
            ConfigError: Parameters do not fit the members. `where` of each fault is the dotted path of the
                parameter, from the specification.
        """
