"""A society as a member of another society."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from pydantic import JsonValue

from nlsom.config import load
from nlsom.message import Data, Said, Text
from nlsom.model.prompt import quote
from nlsom.turn import Turn


class Nested:
    """A member that is a society: for each turn it holds a mindstorm of its own.

    The inner task has the outer task's question, what the member hears and is asked as context, and the
    form's options as choices. What it spends counts towards the outer society's budget. Its message carries
    the tally and the abstentions as data.

    Args:
        society: Name of an installed society, or path of a file, relative to the outer society's file.
        models: Sets models of that society by key: `URL[#MODEL]`, or the name of an embedded model.
        set: Overrides in its file, `dotted.key=value`.
    """

    def __init__(
        self, *, society: str, models: dict[str, str] | None = None, set: Sequence[str] = ()
    ) -> None:
        self.society = load(society, models=models, overrides=set)

    @property
    def identity(self) -> str:
        """The digest of the whole society: members, models, prompts and phases."""
        return f"society/1 {self.society.program.digest}"

    async def __aenter__(self) -> Self:
        await self.society.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.society.__aexit__(*error)

    async def speak(self, turn: Turn) -> Said | None:
        """Holds a mindstorm and says its verdict; without one, a message with `why`."""
        society, form = self.society, turn.form
        choices: Sequence[str] = getattr(form, "options", ())
        if form.kind == "yes_no":
            choices = ("yes", "no")
        society.media = turn.media
        task = society.task(
            question=turn.task.question,
            images=turn.task.images,
            choices=tuple(choices),
            context=_context(turn),
            extra=turn.task.extra,
        )
        verdict = await society.ask(task, seed=turn.seed)
        data: dict[str, JsonValue] = {
            "society": society.name,
            "tally": {**verdict.tally},
            "abstained": [
                {"member": one.member, "phase": one.phase, "round": one.round, "cause": one.cause}
                for one in verdict.abstained
            ],
            "cut_short": verdict.cut_short,
        }
        usage = verdict.usage_total
        if verdict.answer is None:
            why = f"no verdict of {society.name}: " + (
                f"tied between {', '.join(verdict.tied)}" if verdict.tied else "nobody gave an answer"
            )
            return Said(parts=(Data(value=data),), why=why, usage=usage)
        reading = form.read(verdict.answer)
        return Said(
            parts=(Text(text=verdict.answer), Data(value=data)),
            answer=verdict.answer if form.kind == "text" else reading.answer,
            ballot=reading.ballot,
            confidence=verdict.confidence,
            why=None if reading.answer or reading.ballot else reading.why,
            usage=usage,
        )


def _context(turn: Turn) -> str:
    heard = "".join(
        f"{message.sender} ({message.label}):\n{quote(message.text)}\n"
        for message in (*turn.heard, *turn.own)
    )
    return "\n".join(part for part in (turn.task.context, heard.strip(), turn.ask) if part)
