"""Rules that require agreement: decree and unanimity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nlsom.rules.ballots import choice, field_of, read
from nlsom.rules.options import Options
from nlsom.verdict import Count, Rule, SettlingRule, Vote


def choices_of(votes: Sequence[Vote], field: Sequence[str]) -> tuple[dict[str, list[Vote]], dict[str, str]]:
    """Votes by the alternative they choose (every alternative is a key); and why others were not counted."""
    counted, uncounted = read(votes, field, lambda _, ballot: choice(ballot, field))
    chosen: dict[str, list[Vote]] = {name: [] for name in field}
    for vote, name in counted:
        chosen[name].append(vote)
    return chosen, uncounted


@dataclass(frozen=True, slots=True)
class Decree(Options):
    """The choice of the one voter. If several vote and disagree, all that they chose are tied."""

    def __call__(self, votes: Sequence[Vote], alternatives: Sequence[str]) -> Count:
        """Reads the decree; its confidence is the lowest of those who agree on it."""
        field = field_of(votes, alternatives)
        chosen, uncounted = choices_of(votes, field)
        winners = tuple(name for name in field if chosen[name])
        told = [vote.confidence for name in winners for vote in chosen[name] if vote.confidence is not None]
        return Count(
            winners=winners,
            tally={name: float(len(chosen[name])) for name in field},
            confidence=min(told) if told and len(winners) == 1 else None,
            cast=sum(map(len, chosen.values())),
            uncounted=uncounted,
        )

    def settled(
        self, votes: Sequence[Vote], outstanding: Sequence[float | None], alternatives: Sequence[str]
    ) -> bool:
        """Whether every alternative has been chosen: until then, a vote to come may add one."""
        if not outstanding:
            return True
        return bool(alternatives) and all(choices_of(votes, alternatives)[0].values())


@dataclass(frozen=True, slots=True)
class Unanimity(Options):
    """The alternative that all voters choose; if they disagree, the fallback decides.

    Attributes:
        fallback: The rule that decides if voters disagree; None: nobody wins then.
    """

    fallback: Rule | None = None

    def __call__(self, votes: Sequence[Vote], alternatives: Sequence[str]) -> Count:
        """Counts the votes. Abstentions do not break unanimity."""
        field = field_of(votes, alternatives)
        chosen, uncounted = choices_of(votes, field)
        named = tuple(name for name in field if chosen[name])
        if len(named) != 1 and self.fallback is not None:
            return self.fallback(votes, alternatives)
        return Count(
            winners=named if len(named) == 1 else (),
            tally={name: float(len(chosen[name])) for name in field},
            confidence=1.0 if len(named) == 1 else None,
            cast=sum(map(len, chosen.values())),
            uncounted=uncounted,
        )

    def settled(
        self, votes: Sequence[Vote], outstanding: Sequence[float | None], alternatives: Sequence[str]
    ) -> bool:
        """Whether votes to come can no longer change the winners; exact if the fallback's `settled` is."""
        if not outstanding:
            return True
        chosen, _ = choices_of(votes, field_of(votes, alternatives))
        named = tuple(name for name, voters in chosen.items() if voters)
        if len(alternatives) == 1:
            return bool(named)
        if self.fallback is None:
            return len(named) > 1
        return (
            isinstance(self.fallback, SettlingRule)
            and self.fallback.settled(votes, outstanding, alternatives)
            and (len(named) > 1 or self.fallback(votes, alternatives).winners == named)
        )
