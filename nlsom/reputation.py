"""Reputations: how often members were right before, to weigh their votes.

A record is a JSON file, `{"ann": {"right": 12, "wrong": 3}, …}`. A society whose verdict names one
(`verdict: {rule: competence, reputation: record.json}`) reads it once, when it is loaded. The header of each
mindstorm in a trace holds what was read, with its digest. Nothing is learned while a mindstorm runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from pydantic import RootModel, ValidationError

from nlsom.errors import UsageError
from nlsom.message import Frozen
from nlsom.rules.reputation import Beta, dawid_skene


class Past(Frozen):
    """A member's record of past tasks.

    Attributes:
        right: Tasks answered correctly; fractions where that is only probable.
        wrong: Tasks answered wrongly; likewise.
    """

    right: float = 0.0
    wrong: float = 0.0


class Reputation(RootModel[dict[str, Past]]):
    """A record of past tasks, by member."""

    @classmethod
    def read(cls, file: Path) -> Reputation:
        """Reads a record.

        Raises:
            UsageError: There is no such file, or it is not a record.
        """
        try:
            return cls.model_validate_json(file.read_bytes())
        except OSError as error:
            raise UsageError(f"reputation {file}: {error.strerror or error}") from None
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(map(str, first["loc"]))
            raise UsageError(f"reputation {file}: {where or 'the file'}: {first['msg']}") from None

    def write(self, file: Path) -> None:
        """Writes the record atomically: the whole file or nothing."""
        draft = file.with_name(file.name + ".new")
        draft.write_text(self.model_dump_json(indent=2) + "\n", encoding="utf-8")
        draft.replace(file)

    def competence(self, prior: Beta | None = None) -> dict[str, float]:
        """Probability that the next answer is right, by member: the mean of its posterior.

        Args:
            prior: Belief about a member without a record; None for a uniform prior.
        """
        prior = prior or Beta()
        return {
            name: Beta(prior.right + past.right, prior.wrong + past.wrong).mean
            for name, past in self.root.items()
        }

    def after(self, tasks: Iterable[tuple[Mapping[str, str], str]]) -> Reputation:
        """The record after more tasks.

        Args:
            tasks: For each task the answers by member, and the right answer. They are compared as they are,
                so make them canonical first (`Task.canonical`).
        """
        known = dict(self.root)
        for answers, right in tasks:
            for name, answer in answers.items():
                past = known.get(name, Past())
                known[name] = Past(right=past.right + (answer == right), wrong=past.wrong + (answer != right))
        return Reputation(known)

    def after_unlabelled(self, tasks: Sequence[Mapping[str, str]]) -> Reputation:
        """The record after more tasks whose right answers are unknown, estimated from who agrees with whom.

        By Dawid and Skene (1979) with one parameter per member; see `nlsom.rules.reputation.dawid_skene`.

        Args:
            tasks: For each task the answers by member.
        """
        estimate = dawid_skene(tasks)
        known = dict(self.root)
        for answers, posterior in zip(tasks, estimate.posterior, strict=True):
            for name, answer in answers.items():
                past, p = known.get(name, Past()), posterior[answer]
                known[name] = Past(right=past.right + p, wrong=past.wrong + 1 - p)
        return Reputation(known)
