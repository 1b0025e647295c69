"""An agent backed by a language model."""

from __future__ import annotations

import math
from dataclasses import replace

from pydantic import PositiveInt

from nlsom.budget import Cost
from nlsom.message import Said, Text
from nlsom.model.contract import Model, Prompt, Settings, Temperature, TopP
from nlsom.model.prompt import render
from nlsom.turn import Turn


class Chat:
    """A member backed by a language model. Its prompts mention the pictures, but do not contain them.

    Args:
        model: Completes its prompts.
        temperature: Sampling temperature; members that share a model need more than 0 to differ.
        top_p: Nucleus sampling.
        max_tokens: Longest reply in tokens; None leaves it to the form.
    """

    name = "chat"
    sees = False

    def __init__(
        self,
        *,
        model: Model,
        temperature: Temperature = 0.0,
        top_p: TopP = 1.0,
        max_tokens: PositiveInt | None = None,
    ) -> None:
        self.model = model
        self._settings = Settings(temperature=temperature, top_p=top_p, max_tokens=max_tokens)

    @property
    def identity(self) -> str:
        """Agent, model and sampling settings."""
        return f"{self.name}/2 {self.model.identity} {self._settings.model_dump_json()}"

    def _prompt(self, turn: Turn) -> Prompt:
        prompt = render(turn)
        return prompt if self.sees else replace(prompt, images=())

    async def speak(self, turn: Turn) -> Said | None:
        """Lets the model complete the turn's prompt, constrained to the turn's form if its engine can."""
        form = turn.form
        completion = await self.model.complete(
            self._prompt(turn), form=form, settings=self._settings, seed=turn.seed
        )
        text = completion.text.strip()
        if not text:
            return Said(usage=completion.usage, why="the model wrote nothing")
        sure = None if completion.logprob is None else min(1.0, math.exp(completion.logprob))
        said = Said(parts=(Text(text=text),), usage=completion.usage, confidence=sure)
        if form.kind == "text":
            return said
        reading = form.read(text)
        if reading.answer is None and reading.ballot is None:
            return said.model_copy(update={"why": reading.why, "confidence": None})
        return said.model_copy(update={"answer": reading.answer, "ballot": reading.ballot})

    def cost(self, turn: Turn) -> Cost:
        """One call; at most the prompt's tokens (overestimated as 3 bytes each) plus the longest reply."""
        prompt = self._prompt(turn)
        pictures = 600 * len(prompt.images)
        longest = self._settings.max_tokens or turn.form.max_tokens
        return Cost(1, len(prompt.text.encode("utf-8", "replace")) // 3 + pictures + longest + 40)
