"""Models behind an OpenAI-compatible HTTP server: vLLM, llama.cpp, Ollama, hosted ones."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
from collections.abc import Sequence
from typing import Literal, Self

from pydantic import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt

from nlsom.errors import ModelError, NlsomError, PromptTooLong, UsageError
from nlsom.form import Constraint, Form
from nlsom.message import Image
from nlsom.model import wire
from nlsom.model.contract import Completion, Prompt, Settings
from nlsom.model.exchange import Exchange, Patience, RefusedError, group_of
from nlsom.model.replicas import base_url
from nlsom.model.served import Served, discover, takes_pictures, unlisted
from nlsom.source import JsonObject

_LOG = logging.getLogger(__name__)

_MAX_TEXT = 65_536  # characters of a reply beyond 256 per token asked for: some servers ignore limits
_SHARED = 128  # characters at the beginning of a prompt that identify its task


class HttpModel:
    """A model behind one or several OpenAI-compatible servers.

        async with HttpModel("http://127.0.0.1:8000/v1") as model:
            completion = await model.complete(prompt, form=form, settings=Settings(), seed=0)

    Opening it asks each server for its models. Its limits hold for all mindstorms that share the object.
    Redirects are not followed, and proxies in environment variables are ignored, so that a server on this
    machine is never reached through one.

    Args:
        url: Base address, with `/v1`. Several addresses are replicas of one model: requests that share
            pictures and task go to the same one, for its prefix cache, unless it is full or down.
        model: Name of the model at the server; None if it serves only one.
        key_env: Environment variable with the API key, if there is one. Its name has to end in `_API_KEY`,
            so that no society file can send another secret away.
        pictures: Most pictures in a prompt; 0 for none. None finds out, when the model is opened, whether it
            takes pictures, by showing it a white square; if so, there is no limit.
        too_many_pictures: With more than `pictures`: `error`, or `first` to keep the first ones.
        constraints: How the server is told of forms; None chooses by what it says it is (vLLM, llama.cpp and
            Ollama are known).
        context: Longest prompt and reply together, in tokens; None asks the server.
        thinking: Tokens for a model that thinks before it answers, in addition to those of the answer.
        extra: Further fields for every request, such as
            `{"chat_template_kwargs": {"enable_thinking": false}}`; null removes a field that nlsom sends.
        concurrency: Most requests in flight at each server.
        requests_per_second: Most requests started per second at each server; None for no limit.
        timeout: Longest time for one reply, in seconds.
        connect_timeout: Longest time to connect, in seconds.
        retries: How often a request is sent again after failures that may pass.
        backoff: Longest wait before the first retry, in seconds; it doubles each time.
        longest_wait: Longest wait before any retry, also where a server asks for more (Retry-After), in
            seconds.
        proxy: Address of an HTTP proxy, if one is needed.

    Raises:
        UsageError: An argument cannot be used.
    """

    def __init__(
        self,
        url: str | Sequence[str],
        model: str | None = None,
        *,
        key_env: str = "NLSOM_API_KEY",
        pictures: NonNegativeInt | None = None,
        too_many_pictures: Literal["error", "first"] = "error",
        constraints: wire.Constraints | None = None,
        context: PositiveInt | None = None,
        thinking: NonNegativeInt = 0,
        extra: JsonObject | None = None,
        concurrency: PositiveInt = 64,
        requests_per_second: PositiveFloat | None = None,
        timeout: PositiveFloat = 600.0,
        connect_timeout: PositiveFloat = 5.0,
        retries: NonNegativeInt = 4,
        backoff: NonNegativeFloat = 0.5,
        longest_wait: NonNegativeFloat = 30.0,
        proxy: str | None = None,
    ) -> None:
        urls = tuple(base_url(one) for one in ([url] if isinstance(url, str) else url))
        if not urls or len(set(urls)) < len(urls):
            raise UsageError("a model needs the address of a server, and each address once")
        if not re.fullmatch(r"\w*_API_KEY", key_env):
            raise UsageError(f"key_env: {key_env!r} has to end in _API_KEY")
        self._given = model
        self._pictures = pictures
        self._too_many_pictures = too_many_pictures
        self._constraints: wire.Constraints | None = constraints
        self._context = context
        self._thinking = thinking
        self._extra = dict(extra or {})
        self._exchange = Exchange(
            urls,
            key_env=key_env,
            patience=Patience(
                timeout=timeout,
                connect_timeout=connect_timeout,
                retries=retries,
                first=backoff,
                longest=longest_wait,
            ),
            concurrency=concurrency,
            requests_per_second=requests_per_second,
            proxy=proxy,
        )
        self._where = ", ".join(urls)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._opening = asyncio.Lock()
        self._users = 0
        self._served: Served | None = None
        self._sees = False
        self._tokenizes = False
        self._warned = False

    def __repr__(self) -> str:
        return f"HttpModel({self._where}, model={self._given!r})"

    @property
    def identity(self) -> str:
        """The model's name, what it was made from, and what else its replies depend on."""
        served = self._opened()
        parts = [served.name if served.root is None else f"{served.name} ({served.root})"]
        if self._thinking:
            parts.append(f"thinking={self._thinking}")
        if self._extra:
            parts.append(json.dumps(self._extra, sort_keys=True))
        return " ".join(parts)

    @property
    def sees(self) -> bool:
        """Whether it takes pictures."""
        self._opened()
        return self._sees

    async def __aenter__(self) -> Self:
        """Asks the servers what they serve.

        Raises:
            ModelUnavailable: None of them answers, or the key is refused.
            UsageError: They serve several models and none is named, or different ones under one name.
        """
        loop = asyncio.get_running_loop()
        if self._loop is not loop:  # a lock belongs to one event loop; a model may be used in several in turn
            self._loop, self._opening = loop, asyncio.Lock()
        async with self._opening:
            if self._served is None:
                await self._exchange.open()
                try:
                    self._served = await discover(self._exchange, self._given)
                    self._tokenizes = self._served.engine == "vllm"
                    self._sees = (
                        await takes_pictures(self._exchange, self._served)
                        if self._pictures is None
                        else self._pictures > 0
                    )
                except BaseException:
                    await self._close()
                    raise
            self._users += 1
        return self

    async def __aexit__(self, *raised: object) -> None:
        """Closes all connections once everyone who opened it has left."""
        self._users -= 1
        async with self._opening:
            if self._users == 0 and self._served is not None:
                await self._close()

    async def _close(self) -> None:
        self._served = None
        await self._exchange.close()

    async def complete(self, prompt: Prompt, *, form: Form, settings: Settings, seed: int) -> Completion:
        """Completes a prompt; see `Model.complete`.

        Raises:
            ModelUnavailable: No server could be reached, had room or answered in time; or the key is refused.
            ModelError: The server refused the request, or what it sent could not be read as an answer.
            PromptTooLong: Prompt and longest reply do not fit the model's context.
        """
        served = self._opened()
        started = time.perf_counter()
        text = prompt.text
        images = self._fitting(prompt.images)
        reply = wire.reply_tokens(form, settings, self._thinking)
        group = group_of(*(image.sha256 for image in images), prompt.head[:_SHARED])
        constraint = form.constraint()
        constraints = self._constraints or served.constraints
        if constraint is not None and constraint.grammar is not None and constraints != "vllm":
            raise ModelError(
                f"the server of {served.name} cannot hold a reply to a grammar, so nobody could tell whether "
                "it follows it; serve the model by vLLM, or ask in another form"
            )
        body = wire.chat_body(
            served.name,
            text,
            [wire.picture_part(await prompt.media.data_url(image)) for image in images],
            constraint=constraint,
            max_tokens=reply,
            settings=settings,
            seed=seed,
            constraints=constraints,
            extra=self._extra,
        )

        def read(answer: bytes) -> tuple[Completion, bool]:
            completion, cut = wire.read_completion(answer, constraint, time.perf_counter() - started)
            if len(completion.text) > _MAX_TEXT + 256 * reply:
                raise wire.MalformedError(
                    f"a text of {len(completion.text):,} characters, where {reply} tokens were asked for"
                )
            return completion, cut

        try:
            await self._measure(served, text, reply, group)
            completion, cut = await self._exchange.send(
                "POST", "/chat/completions", body, read=read, group=group
            )
        except RefusedError as refused:
            raise self._explain(refused, text, reply) from None
        if cut and constraint is not None and constraint.grammar is not None:
            raise ModelError(f"the reply was cut after {reply} tokens, before it was a text of the grammar")
        if constraint is not None and not cut and wire.constrains(constraint, constraints):
            self._notice(constraint, completion.text)
        return completion

    def _opened(self) -> Served:
        if self._served is None:
            raise RuntimeError(f"{self!r} is not open; use it inside `async with`")
        return self._served

    def _fitting(self, images: Sequence[Image]) -> Sequence[Image]:
        if len(images) == 0 or (self._sees and self._pictures is None):
            return images
        most = self._pictures or 0
        if len(images) > most and (most == 0 or self._too_many_pictures == "error"):
            takes = f"at most {most} pictures in a prompt" if most else "no pictures"
            raise ModelError(f"{self._opened().name} takes {takes}, and was given {len(images)}")
        return images[:most]

    async def _measure(self, served: Served, text: str, reply: int, group: bytes) -> None:
        """Has the server count the tokens of a prompt that may be too long. Most are plainly short enough.

        Most tokens have more than three bytes. A prompt of many short ones may pass here although it is too
        long; the server then refuses it, with the same error in the end.
        """
        context = self._context or served.context
        if not self._tokenizes or context is None:
            return
        if len(text.encode("utf-8", "replace")) <= 3 * (context - reply):
            return
        body = json.dumps({"model": served.name, "messages": [{"role": "user", "content": text}]}).encode()
        try:
            tokens = await self._exchange.send(
                "POST", "//tokenize", body, read=wire.read_token_count, group=group
            )
        except RefusedError as refused:
            if refused.status not in (404, 405):
                raise
            self._tokenizes = False  # a gateway that passes on the API only
            return
        if tokens + reply > context:
            raise PromptTooLong(tokens, reply, context, served.name)

    def _notice(self, constraint: Constraint, text: str) -> None:
        if not self._warned and not wire.keeps_to(constraint, text):
            self._warned = True
            _LOG.warning(
                "%s at %s does not keep to the form it is asked for; replies are read as free text "
                "(set `constraints: none` if its server cannot constrain)",
                self._opened().name,
                self._where,
            )

    def _explain(self, refused: RefusedError, text: str, reply: int) -> NlsomError:
        """The error that a refusal stands for."""
        served = self._opened()
        return unlisted(served, refused) or wire.refusal(
            refused.body,
            status=refused.status,
            where=refused.url,
            model=served.name,
            prompt=text,
            reply=reply,
            context=self._context or served.context,
        )
