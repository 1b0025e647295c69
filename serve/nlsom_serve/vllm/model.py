"""A model that a society names by its profile: `{profile: small-vlm}`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from nlsom.errors import NlsomError, UsageError
from nlsom.form import Form
from nlsom.model.contract import Completion, Prompt, Settings
from nlsom.model.http import HttpModel
from nlsom_serve.vllm.servers import find


class ProfileModel:
    """The model of a server that `nlsom models up` started; asked for where it is when the society opens.

    Args:
        profile: Name of the server. Several are replicas of one model.
    """

    def __init__(self, profile: str | Sequence[str]) -> None:
        self._profiles = (profile,) if isinstance(profile, str) else tuple(profile)
        self._model: HttpModel | None = None

    @property
    def _opened(self) -> HttpModel:
        if self._model is None:
            raise NlsomError(f"the model of profile {self._profiles[0]!r} is not open")
        return self._model

    @property
    def identity(self) -> str:
        """Name and revision of the model that the server says it serves."""
        return self._opened.identity

    @property
    def sees(self) -> bool:
        """Whether it takes pictures."""
        return self._opened.sees

    async def __aenter__(self) -> Self:
        """Finds the servers and asks them for their model.

        Raises:
            ModelUnavailable: A server is not up; says how to start it.
            UsageError: The servers serve different models.
        """
        servers = [await find(name) for name in self._profiles]
        if len({server.model for server in servers}) > 1:
            raise UsageError(f"{', '.join(self._profiles)} serve different models, so they are no replicas")
        facts = servers[0].facts
        model = HttpModel(
            [f"{server.url}/v1" for server in servers],
            servers[0].model,
            pictures=facts.images_per_prompt,
            thinking=facts.traits.thinking,
            extra=facts.traits.request,
        )
        self._model = await model.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        model, self._model = self._model, None
        if model is not None:
            await model.__aexit__(None, None, None)

    async def complete(self, prompt: Prompt, *, form: Form, settings: Settings, seed: int) -> Completion:
        """Completes a prompt; see `nlsom.model.contract.Model`."""
        return await self._opened.complete(prompt, form=form, settings=settings, seed=seed)
