"""Forms over options: choosing one, approving of some, ranking or scoring them."""

from __future__ import annotations

import itertools
import re
import string
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field

from nlsom.message import Approval, Ballot, Choice, Frozen, Ranking, Scores
from nlsom.reading import clean, read_choice
from nlsom.reading.mention import find_labels


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read from a text.

    Attributes:
        answer: The answer; None if none could be read.
        why: How it was found, or why not.
        ballot: The vote, for forms that are votes.
    """

    answer: str | None
    why: str
    ballot: Ballot | None = None


@dataclass(frozen=True, slots=True)
class Constraint:
    """What holds a model server's reply to a form. Exactly one field is set."""

    choice: tuple[str, ...] | None = None
    regex: str | None = None
    schema: dict[str, Any] | None = None
    grammar: str | None = None


def labels_for(options: Sequence[str]) -> tuple[str, ...]:
    """The labels of options in a prompt: letters, or numbers from 1 where there are more than 26."""
    if len(options) <= 26:
        return tuple(string.ascii_uppercase[: len(options)])
    return tuple(str(n + 1) for n in range(len(options)))


def _listed(options: Sequence[str]) -> str:
    """Options with labels, one per line each: nobody who words an option may forge another."""
    pairs = zip(labels_for(options), options, strict=True)
    return "Options:\n" + "\n".join(f"{label}. {' '.join(option.split())}" for label, option in pairs)


def _literal(text: str) -> str:
    """A text as a regular expression. Unlike with `re.escape`, blanks stay blanks, as some engines need."""
    return re.sub(r"[\\.^$*+?{}\[\]|()/]", r"\\\g<0>", text)


_REFUSES = re.compile(
    r"\b(?:not|no|nor|neither|never|none|except|without|but|reject\w*|exclud\w*|wrong|incorrect)\b|n't\b",
    re.I,
)
"""Words by which a list of accepted options may name one that is not accepted."""


def _tokens(labels: Sequence[str]) -> int:
    """Tokens that labels with their separators take, at most."""
    return sum(4 + len(label) // 3 for label in labels)


class _OptionsForm(Frozen):
    """What forms over options have in common.

    Attributes:
        options: What there is to choose from.
        named: Whether the options are names of members who made proposals. They are then their own labels,
            and a long list of them is not repeated.
    """

    options: tuple[str, ...] = Field(min_length=1)
    named: bool = False

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the options in the prompt."""
        return self.options if self.named else labels_for(self.options)

    @property
    def noun(self) -> str:
        """What a label is called in the prompt."""
        return "name" if self.named else "letter" if len(self.options) <= 26 else "number"

    def listed(self) -> str:
        """The options, for the prompt."""
        if not self.named:
            return _listed(self.options)
        if len(self.options) > 12:
            return "Options: the names of those who made a proposal."
        return f"Options: {', '.join(' '.join(option.split()) for option in self.options)}."

    def found(self, text: str) -> list[str]:
        """The options whose labels a cleaned text names, in order, each once.

        In a text with other words, the article "A" and the pronoun "I" do not count as labels.
        """
        labels = dict(zip(self.labels, self.options, strict=True))
        any_label = self.any_label()
        if self.named or re.fullmatch(rf"\W*{any_label}(?:\W+(?:(?:and|then)\W+)?{any_label})*\W*", text):
            return list(dict.fromkeys(labels[at] for at in re.findall(any_label, text)))
        mentions = find_labels(text, self.labels, ())
        sure = (one for one in mentions if one.kind != "lower" or self.labels[one.at].isdigit())
        return list(dict.fromkeys(self.options[one.at] for one in sure))

    def cleaned(self, text: str) -> str:
        """A reply without markup. One that names members is left alone: a name may look like markup."""
        return text if self.named else clean(text)

    def any_label(self) -> str:
        """A regular expression for any label that stands as a word of its own."""
        return rf"(?<!\w)(?:{'|'.join(map(_literal, sorted(self.labels, key=len, reverse=True)))})(?!\w)"

    def pattern(self) -> str:
        """A regular expression for any label."""
        return "|".join(map(_literal, self.labels))


class ChoiceForm(_OptionsForm):
    """One option: by letter, by number where there are more than 26, or by name."""

    kind: Literal["choice"] = "choice"

    @property
    def max_tokens(self) -> int:
        """A letter is one token, a number up to three; some room is left for servers without constraints."""
        return 8 + (max(map(len, self.options)) // 2 if self.named else 0)

    def instruct(self) -> str:
        """How to answer, in words for a model."""
        return f"{self.listed()}\nAnswer with the {self.noun} of one option only."

    def constraint(self) -> Constraint | None:
        """One of the labels."""
        return Constraint(choice=self.labels)

    def read(self, text: str) -> Reading:
        """Finds the one option that the text names; members have to be named exactly."""
        if self.named:
            found = self.found(text)
            if len(found) != 1:
                return Reading(None, "no single proposal is named")
            return Reading(found[0], "the only name", Choice(choice=found[0]))
        at, why = read_choice(text, self.options, self.labels)
        if at is None:
            return Reading(None, why)
        return Reading(self.options[at], why, Choice(choice=self.options[at]))


class ApprovalForm(_OptionsForm):
    """All acceptable options by label, separated by commas; or `none`."""

    kind: Literal["approval"] = "approval"

    @property
    def max_tokens(self) -> int:
        """Two or three tokens per option; a name takes more."""
        return _tokens(self.labels) + 8

    def instruct(self) -> str:
        """How to answer, in words for a model."""
        example = ", ".join(self.labels[:2])
        return (
            f"{self.listed()}\nName every option that you accept, like {example}; or write none. "
            "Write nothing else."
        )

    def constraint(self) -> Constraint | None:
        """Labels separated by commas; a repeated one does no harm."""
        label = self.pattern()
        return Constraint(regex=f"none|({label})(, ({label})){{0,{len(self.options) - 1}}}")

    def read(self, text: str) -> Reading:
        """Reads labels. A plain `none` approves of nothing; a text without labels is not a ballot."""
        text = self.cleaned(text)
        found = self.found(text)
        if not found and text.strip().strip(".").casefold() != "none":
            return Reading(None, "no option is named")
        if found and _REFUSES.search(text):
            return Reading(None, "it may name options that it does not accept")
        approved = tuple(option for option in self.options if option in found)
        return Reading(approved[0] if len(approved) == 1 else None, "approvals", Approval(approved=approved))


class RankingForm(_OptionsForm):
    """All options from best to worst, by label, separated by `>`."""

    kind: Literal["ranking"] = "ranking"

    @property
    def max_tokens(self) -> int:
        """Two or three tokens per option; a name takes more."""
        return _tokens(self.labels) + 8

    def instruct(self) -> str:
        """How to answer, in words for a model."""
        example = " > ".join(self.labels[:3])
        return f"{self.listed()}\nRank all options from best to worst, like {example}. Write nothing else."

    def constraint(self) -> Constraint | None:
        """Every order of up to four options; for more, as many labels, of which repetitions are ignored."""
        if len(self.options) <= 4:
            orders = itertools.permutations(map(_literal, self.labels))
            return Constraint(regex="|".join(map(" > ".join, orders)))
        label = self.pattern()
        return Constraint(regex=f"({label})( > ({label})){{{len(self.options) - 1}}}")

    def read(self, text: str) -> Reading:
        """Reads labels in order. The first place of each counts; options left out are tied for last.

        In a longer text, the last ranking written with `>` counts.
        """
        text = self.cleaned(text)
        chain = rf"{self.any_label()}(?:\W{{0,8}}[>=≻→]\W{{0,8}}{self.any_label()})+"
        ranking = tuple(self.found((re.findall(chain, text) or [text])[-1]))
        if len(ranking) < min(2, len(self.options)):
            return Reading(None, "fewer than two options are ranked")
        why = "a ranking" if len(ranking) == len(self.options) else "a ranking of some options"
        return Reading(ranking[0], why, Ranking(ranking=ranking))


class ScoresForm(_OptionsForm):
    """A whole number for each option, from `low` to `high`."""

    kind: Literal["scores"] = "scores"
    low: int = 0
    high: int = 10

    @property
    def max_tokens(self) -> int:
        """For each option a label, a sign, a number and a separator."""
        return _tokens(self.labels) + 3 * len(self.options) + 8

    def instruct(self) -> str:
        """How to answer, in words for a model."""
        labels = self.labels[:3]
        example = ", ".join(f"{label}={max(self.low, self.high - n)}" for n, label in enumerate(labels))
        scale = f"from {self.low} to {self.high}, like {example}"
        return f"{self.listed()}\nScore each {scale}. Write nothing else."

    def constraint(self) -> Constraint | None:
        """`A=7, B=3, …` in order."""
        return Constraint(regex=", ".join(f"{_literal(label)}=[0-9]{{1,3}}" for label in self.labels))

    def read(self, text: str) -> Reading:
        """Reads `A=7` or `A: 7`; a score outside the scale makes the whole reply unreadable."""
        labels = dict(zip(self.labels, self.options, strict=True))
        scores: dict[str, float] = {}
        score = rf"(?<!\w)({self.pattern()})\s*[=:]\s*(-?\d+(?:\.\d+)?)"
        for label, number in re.findall(score, self.cleaned(text)):
            scores.setdefault(labels[label], float(number))
        if not scores:
            return Reading(None, "no option is scored")
        if any(not self.low <= score <= self.high for score in scores.values()):
            return Reading(None, f"a score is not between {self.low} and {self.high}")
        best = max(scores.values())
        top = [option for option, score in scores.items() if score == best]
        return Reading(top[0] if len(top) == 1 else None, "scores", Scores(scores=scores))
