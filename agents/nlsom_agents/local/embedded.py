"""The embedded language model: GGUF on this machine's CPU, run by OpenVINO GenAI in a separate process."""

from __future__ import annotations

import asyncio
import re
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Self

from pydantic import PositiveInt

from nlsom.errors import ExtraMissing, ModelError, ModelUnavailable, PromptTooLong
from nlsom.form import Form
from nlsom.home import home
from nlsom.message import Usage
from nlsom.model.contract import Completion, Prompt, Settings
from nlsom_agents.local import catalog
from nlsom_agents.local.constraints import grammar_for
from nlsom_agents.local.engine import Engine

_THINKING = re.compile(r"(?s)\A\s*<think>.*?(?:</think>|\Z)\s*")


class Embedded:
    """A language model that runs without a server; a `nlsom.model.Model`.

    `async with` loads it in a process of its own (`worker` says why). Societies in the same event loop can
    share it; the process ends when the last one leaves. Concurrent requests are computed as one batch.

    A prompt and seed give the same reply whenever they are asked alone. In a batch, sums are rounded in
    another order, so that replies may differ, even at temperature 0.

    A choice's `logprob` is the sum of its tokens' log-probabilities without the constraint. Probability of
    texts other than the options is lost, so as a confidence it is a lower bound.

    Args:
        model: A name in the catalog or given by the user, or the path of a GGUF file.
        max_num_seqs: Requests computed concurrently; more wait.
        cache_gb: Size of the KV cache in GB.
        context: Most tokens of prompt and reply together; by default the model's context length.
        threads: CPU threads; by default the engine decides.
    """

    sees = False

    def __init__(
        self,
        model: str = "qwen2.5-coder-1.5b",
        *,
        max_num_seqs: PositiveInt = 32,
        cache_gb: PositiveInt = 1,
        context: PositiveInt | None = None,
        threads: PositiveInt | None = None,
    ) -> None:
        self.model = model
        self._options = {
            "max_num_seqs": max_num_seqs,
            "cache_gb": cache_gb,
            "context": context,
            "threads": threads,
        }
        self._identity: str | None = None
        self._users = 0
        self._opening: asyncio.Task[Engine] | None = None

    @property
    def identity(self) -> str:
        """Name, hash of the file, and version of the engine; not the path.

        Raises:
            ModelUnavailable: The file is the user's own and does not exist.
            ExtraMissing: The engine is not installed.
        """
        if self._identity is None:
            name = Path(self.model).stem if catalog.is_path(self.model) else self.model
            sha256 = catalog.digest(self.model)[:12]
            self._identity = f"{name}@{sha256}/openvino-genai-{_engine_version()}"
        return self._identity

    def missing(self) -> str | None:
        """The name of the model to pull (`nlsom_agents.local.fetch.pull`) first; None if it is in the cache.

        Raises:
            ExtraMissing: The engine is not installed.
        """
        _engine_version()  # raises before a gigabyte is downloaded in vain
        return catalog.missing(self.model)

    async def __aenter__(self) -> Self:
        """Loads the model, unless it is loaded already.

        Raises:
            ModelUnavailable: Its file is not in the cache, or the engine cannot load it.
            ExtraMissing: The engine is not installed.
            UsageError: There is no model of that name.
        """
        self._users += 1
        if self._opening is None:
            self._opening = asyncio.create_task(self._open(), name=f"load {self.model}")
        try:
            await asyncio.shield(self._opening)
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        self._users -= 1
        if self._users == 0 and self._opening is not None:
            opening, self._opening = self._opening, None
            opening.cancel()
            await asyncio.wait([opening])
            if not opening.cancelled() and opening.exception() is None:
                await opening.result().close()

    async def complete(self, prompt: Prompt, *, form: Form, settings: Settings, seed: int) -> Completion:
        """Completes a prompt, constrained to the form. Cancelling the caller cancels the request.

        Raises:
            ModelUnavailable: The model is not open, or the engine's process has ended.
            ModelError: The engine does not support the form's constraint, the prompt has pictures, or prompt
                and reply do not fit the KV cache.
            PromptTooLong: Prompt and reply do not fit the context.
        """
        if prompt.images:
            raise ModelError(
                f"{self.model} does not accept pictures; use a vision-language model or a vision expert"
            )
        if self._opening is None or not self._opening.done():
            raise ModelUnavailable(f"{self.model} is not open: use it inside `async with`")
        engine = self._opening.result()
        constraint = form.constraint()
        max_tokens = settings.max_tokens or form.max_tokens
        started = time.perf_counter()
        outcome = await engine.ask(
            {
                "text": prompt.text.encode(errors="replace").decode(),
                "max_tokens": max_tokens,
                "temperature": settings.temperature,
                "top_p": settings.top_p,
                "seed": seed % 2**63,
                "stop": list(settings.stop),
                "grammar": grammar_for(constraint) if constraint else None,
            }
        )
        match outcome.get("error"):
            case None:
                pass
            case "too long":
                raise PromptTooLong(outcome["tokens"], max_tokens, outcome["limit"], self.model)
            case "no room":
                raise ModelError(
                    f"a prompt of {outcome['tokens']} tokens and its reply do not fit the KV cache of "
                    f"{self.model}; raise `cache_gb`, now {self._options['cache_gb']}"
                )
            case _:
                raise ModelError(f"{self.model} could not answer: {outcome['why']}")
        if constraint is not None and constraint.grammar is not None and not outcome["ended"]:
            raise ModelError(f"the reply was cut after {max_tokens} tokens, before it satisfied the grammar")
        usage = Usage(
            calls=1,
            prompt_tokens=outcome["prompt"],
            cached_tokens=None,  # the engine does not count them
            completion_tokens=outcome["completion"],
            seconds=time.perf_counter() - started,
        )
        chosen = constraint is not None and constraint.choice is not None
        return Completion(_THINKING.sub("", outcome["text"]), outcome["logprob"] if chosen else None, usage)

    async def _open(self) -> Engine:
        file = await asyncio.to_thread(catalog.present, self.model)
        identity = await asyncio.to_thread(lambda: self.identity)
        sha256 = await asyncio.to_thread(catalog.digest, self.model)
        folder = home() / "openvino" / sha256[:16]
        return await Engine.start(identity, {"file": str(file), "folder": str(folder), **self._options})


def _engine_version() -> str:
    try:
        return version("openvino-genai")
    except PackageNotFoundError:
        raise ExtraMissing("the embedded engine", "local") from None
