"""A stand-in for a model, which fills forms at random: to try out societies, and to measure nlsom itself."""

from __future__ import annotations

import asyncio
import hashlib
import math
import random
from collections.abc import Callable
from contextlib import nullcontext

from pydantic import NonNegativeFloat, PositiveInt

from nlsom.errors import ModelError
from nlsom.form import (
    ApprovalForm,
    ChoiceForm,
    Form,
    GrammarForm,
    JsonForm,
    NumberForm,
    RankingForm,
    ScoresForm,
    TextForm,
    YesNoForm,
)
from nlsom.message import Usage
from nlsom.model.contract import Completion, Prompt, Settings
from nlsom.model.limits import Limits

_WHO = ("a cat", "two dogs", "a woman", "three children", "a red bus", "an old man", "some birds", "a boat")
_WHERE = ("on the left", "in front of a house", "under a tree", "near the water", "on the street", "at night")


class Scripted:
    """Fills the form at random, by seed: picks an option, ranks, scores, or says a short sentence.

    Args:
        scripted: A seed; with another one it says other things.
        seconds: How long a completion takes.
        concurrency: Most completions under way at once; None for no limit.
        keep: Whether to keep the prompts.
        say: Gives the reply for a prompt and a form; None, also if it returns None, for a random reply.

    Attributes:
        calls: How many completions it has begun.
        prompts: The prompts that it was given, if `keep` is set.
    """

    sees = True

    def __init__(
        self,
        scripted: int = 0,
        *,
        seconds: NonNegativeFloat = 0.0,
        concurrency: PositiveInt | None = None,
        keep: bool = False,
        say: Callable[[Prompt, Form], str | None] | None = None,
    ) -> None:
        self.identity = f"scripted-{scripted}/1"
        self.calls = 0
        self.prompts: list[Prompt] = []
        self._seed, self._seconds, self._keep, self._say = scripted, seconds, keep, say
        self._limits = None if concurrency is None else Limits(concurrency)

    async def complete(self, prompt: Prompt, *, form: Form, settings: Settings, seed: int) -> Completion:
        """Gives a reply that fits the form; the same for the same seed and form.

        Raises:
            ModelError: The form is a JSON schema or a grammar, which cannot be filled at random.
        """
        del settings
        async with nullcontext() if self._limits is None else self._limits.slot():
            self.calls += 1
            if self._keep:
                self.prompts.append(prompt)
            await asyncio.sleep(self._seconds)
        told = f"{self._seed} {seed} {form.model_dump_json()}".encode("utf-8", "surrogatepass")
        chance = random.Random(hashlib.sha256(told).digest())  # noqa: S311
        said = self._say(prompt, form) if self._say is not None else None
        text = said if said is not None else _reply(form, chance)
        sure = math.log(0.5 + chance.random() / 2) if isinstance(form, ChoiceForm | YesNoForm) else None
        usage = Usage(calls=1, prompt_tokens=len(prompt.text) // 4, completion_tokens=len(text) // 4 + 1)
        return Completion(text, sure, usage)


def _reply(form: Form, chance: random.Random) -> str:
    match form:
        case ChoiceForm():
            return chance.choice(form.labels)
        case YesNoForm():
            return chance.choice(("yes", "no"))
        case NumberForm():
            return str(chance.randrange(10))
        case ApprovalForm():
            return ", ".join(label for label in form.labels if chance.random() < 0.5) or "none"
        case RankingForm():
            return " > ".join(chance.sample(form.labels, len(form.labels)))
        case ScoresForm():
            return ", ".join(f"{label}={chance.randint(form.low, form.high)}" for label in form.labels)
        case TextForm():
            who, where = chance.choice(_WHO), chance.choice(_WHERE)
            return who if form.short else f"I see {who} {where}."
        case JsonForm() | GrammarForm():
            raise ModelError("a scripted model can neither fill a JSON schema nor follow a grammar")
