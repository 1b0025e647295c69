"""The model `{profile: NAME}` in a society's file: the vLLM server of that name on this machine."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Literal, Self

from pydantic import PositiveInt

from nlsom.errors import UsageError
from nlsom.form import Form
from nlsom.model import Completion, Prompt, Settings
from nlsom.model.http import HttpModel
from nlsom_serve.vllm.servers import find


class ProfileModel:
    """A model served on this machine by a profile's server, which must run when the model is opened.

    Args:
        profile: Name of a server that `nlsom models up` started; several names are replicas of one model.
        too_many_pictures: If a prompt has more pictures than the profile allows: `error`, or `first` to keep
            the first ones.
        concurrency: Most requests in flight per server.
    """

    def __init__(
        self,
        profile: str | Sequence[str],
        *,
        too_many_pictures: Literal["error", "first"] = "error",
        concurrency: PositiveInt = 64,
    ) -> None:
        self._names = (profile,) if isinstance(profile, str) else tuple(profile)
        if not self._names:
            raise UsageError("profile: name at least one server")
        self._too_many_pictures: Literal["error", "first"] = too_many_pictures
        self._concurrency = concurrency
        self._opening = asyncio.Lock()
        self._users = 0
        self._model: HttpModel | None = None

    @property
    def identity(self) -> str:
        """The served model's name and what else its replies depend on, but not the profile's name."""
        return self._opened().identity

    @property
    def sees(self) -> bool:
        """Whether it accepts pictures."""
        return self._opened().sees

    async def __aenter__(self) -> Self:
        """Finds the servers and connects to them.

        Raises:
            ModelUnavailable: One of them is not running, or none answers.
            UsageError: They serve different models.
        """
        async with self._opening:
            if self._model is None:
                self._model = await self._find()
            self._users += 1
        return self

    async def __aexit__(self, *raised: object) -> None:
        """Closes the connections when its last user leaves; the servers keep running."""
        async with self._opening:
            self._users -= 1
            if self._users == 0 and self._model is not None:
                model, self._model = self._model, None
                await model.__aexit__(*raised)

    async def complete(self, prompt: Prompt, *, form: Form, settings: Settings, seed: int) -> Completion:
        """Completes a prompt; see `nlsom.model.Model`."""
        return await self._opened().complete(prompt, form=form, settings=settings, seed=seed)

    async def _find(self) -> HttpModel:
        servers = [await find(name) for name in self._names]
        first = servers[0]
        if any((server.model, server.facts) != (first.model, first.facts) for server in servers):
            served = ", ".join(f"{server.name} serves {server.model}" for server in servers)
            raise UsageError(f"replicas must serve the same model with the same traits: {served}")
        model = HttpModel(
            [f"{server.url}/v1" for server in servers],
            first.model,
            pictures=first.facts.images_per_prompt,
            too_many_pictures=self._too_many_pictures,
            constraints="vllm",
            thinking=first.facts.traits.thinking,
            extra=first.facts.traits.request,
            concurrency=self._concurrency,
        )
        return await model.__aenter__()

    def _opened(self) -> HttpModel:
        if self._model is None:
            raise RuntimeError(f"the model of profile {', '.join(self._names)} is not open; use `async with`")
        return self._model
