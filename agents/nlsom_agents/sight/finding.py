"""What an expert found, and how it is said in the form that a turn wants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from nlsom.form import Form, TextForm
from nlsom.message import Data, Said, Text
from nlsom_agents.sight.words import number, tokens


@dataclass(frozen=True, slots=True)
class Finding:
    """What is to be said about one picture.

    Attributes:
        text: In sentences.
        answer: What it comes down to; None where the question cannot be answered by looking so.
        confidence: That the answer is right, between 0 and 1.
    """

    text: str
    answer: str | None = None
    confidence: float | None = None


def together(findings: Sequence[Finding], *, anywhere: bool) -> Finding:
    """What was found in several pictures, each named by its place: `Picture 2: …`.

    Args:
        findings: One a picture, in order.
        anywhere: Whether one picture in which the answer is `yes` is enough, as when it is asked whether
            something is there; otherwise the pictures have to agree.
    """
    if len(findings) == 1:
        return findings[0]
    text = "\n".join(f"Picture {at}: {finding.text}" for at, finding in enumerate(findings, 1))
    yes = [finding for finding in findings if finding.answer == "yes"]
    agreed = yes if anywhere and yes else list(findings)
    answers = {finding.answer for finding in agreed}
    if len(answers) != 1 or None in answers:
        return Finding(text)
    sure = [finding.confidence or 0.0 for finding in agreed]
    return Finding(text, answers.pop(), max(sure) if agreed is yes else min(sure))


def say(finding: Finding, form: Form, data: JsonValue, *, asked: bool) -> Said:
    """Says a finding in the form that is wanted.

    Args:
        finding: What was found.
        form: What the turn asks for.
        data: What programs may read beside the words.
        asked: Whether a question was asked; an introduction needs no answer.

    Returns:
        The words with the answer and ballot that the form makes of it; with `why`, where there is none.
    """
    parts = (Text(text=finding.text), Data(value=data))
    if finding.answer is None:
        free = isinstance(form, TextForm) and not asked
        return Said(parts=parts, why=None if free else finding.text)
    reading = form.read(finding.answer)
    if reading.answer is None and finding.answer.isdecimal():
        count = int(finding.answer)
        reading = form.read(number(count) if count else "zero")
    if reading.answer is None:
        why = f"{finding.text} ({finding.answer!r} does not answer in the form that is wanted: {reading.why})"
        return Said(parts=parts, why=why)
    return Said(parts=parts, answer=reading.answer, ballot=reading.ballot, confidence=finding.confidence)


def cannot_tell(seen: str = "", *, what: str = "") -> Finding:
    """The finding of one who cannot answer, with what is seen all the same."""
    about = f" {what}" if what else ""
    return Finding(f"I cannot tell{about} from what I see.{f' {seen}' if seen else ''}")


def bare(option: str) -> tuple[str, ...]:
    """The tokens of an option without articles."""
    return tuple(token for token in tokens(option) if token not in ("a", "an", "the"))
