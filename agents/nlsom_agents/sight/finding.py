"""What an expert found, and how to say it in the form of a turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from nlsom.form import Form, TextForm
from nlsom.message import Data, Said, Text
from nlsom_agents.sight.words import number, tokens


@dataclass(frozen=True, slots=True)
class Finding:
    """What an expert says about one picture.

    Attributes:
        text: In sentences.
        answer: The short answer; None if the expert cannot answer the question.
        confidence: Probability that the answer is right, between 0 and 1.
    """

    text: str
    answer: str | None = None
    confidence: float | None = None


def together(findings: Sequence[Finding], *, anywhere: bool) -> Finding:
    """Combines the findings about several pictures, each with its number: `Picture 2: …`.

    Args:
        findings: One per picture, in order.
        anywhere: Whether `yes` for one picture suffices, as if a question asks whether something is there;
            otherwise there is an answer only if all pictures have the same one.
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
    """Says a finding in the form of the turn.

    Args:
        finding: What was found.
        form: The turn's form.
        data: JSON for programs, besides the text.
        asked: Whether a question was asked; an introduction needs no answer.

    Returns:
        The text, with the answer and ballot that the form reads from it, or `why` there is none.
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
    """A finding without an answer, which says what is seen instead."""
    about = f" {what}" if what else ""
    return Finding(f"I cannot tell{about} from what I see.{f' {seen}' if seen else ''}")


def bare(option: str) -> tuple[str, ...]:
    """An option's tokens without articles."""
    return tuple(token for token in tokens(option) if token not in ("a", "an", "the"))
