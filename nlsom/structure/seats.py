"""Selectors in structures: how their parameters name members."""

from __future__ import annotations

from collections.abc import Sequence

from nlsom.errors import ConfigError, Fault, meant
from nlsom.member import Member


class Seats:
    """Finds members by selector: a member's name, a role, or `*` for everyone. Collects faults.

    Attributes:
        faults: What is wrong so far; `where` is the dotted path in the specification.
    """

    def __init__(self, members: Sequence[Member]) -> None:
        self.faults: list[Fault] = []
        self._everyone = range(len(members))
        self._named = {member.name: (at,) for at, member in enumerate(members)}
        roles: dict[str, list[int]] = {}
        for at, member in enumerate(members):
            roles.setdefault(member.role, []).append(at)
        self._roles = {role: tuple(places) for role, places in roles.items()}

    def find(self, selector: str, *, where: str) -> Sequence[int]:
        """Places of the selected members, ascending; if there are none, adds a fault."""
        if selector == "*":
            return self._everyone
        named, role = self._named.get(selector), self._roles.get(selector)
        if named is not None and role is not None and named != role:
            self.fault(where, f"{selector!r} is both a member and the role of others; rename one of them")
            return ()
        found = named or role
        if found is None:
            known = [*self._roles, *self._named]
            self.fault(where, f"no member or role is called {selector!r}; {meant(selector, known)}")
            return ()
        return found

    def has(self, selector: str) -> bool:
        """Whether a member or a role has that name."""
        return selector in self._named or selector in self._roles

    def fault(self, where: str, what: str) -> None:
        """Adds a fault."""
        self.faults.append(Fault(where, what))

    def check(self) -> None:
        """Raises `ConfigError` with all faults, if there are any."""
        if self.faults:
            raise ConfigError(self.faults)
