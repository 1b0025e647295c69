"""A society as a member of another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from pydantic import JsonValue

from nlsom.config import load
from nlsom.message import Data, Said, Text
from nlsom.model.prompt import quote
from nlsom.turn import Turn


class Nested:
    """A member that is a society: asked to speak, it holds a mindstorm of its own.

    It is asked the question of its parent's task, with what its seat hears and is asked as context, and with
    the options of the form, if there are any, as choices. What it spends counts for its parent, out of the
    parent's budget. Who abstained in it, and how the votes fell, stand in its message as data.

    Args:
        society: The name of an installed society, or the path of a file, beside the file of the parent.
        models: Fills models of that society, by key: `URL[#MODEL]`, or the name of an embedded model.
        set: Overrides in its file, `dotted.key=value`.
    """

    def __init__(
        self, *, society: str, models: dict[str, str] | None = None, set: Sequence[str] = ()
    ) -> None:
        self.society = load(society, models=models, overrides=set)

    @property
    def identity(self) -> str:
        """The digest of the whole society: its members, models, prompts and phases."""
        return f"society/1 {self.society.program.digest}"

    async def __aenter__(self) -> Self:
        await self.society.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.society.__aexit__(*error)

    async def speak(self, turn: Turn) -> Said | None:
        """What its verdict is.

        Raises:
            NoVerdict: The society came to none.
        """
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
        told: dict[str, JsonValue] = {
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
            return Said(parts=(Data(value=told),), why=why, usage=usage)
        reading = form.read(verdict.answer)
        return Said(
            parts=(Text(text=verdict.answer), Data(value=told)),
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
