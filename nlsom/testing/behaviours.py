"""What `nlsom.testing.faulty.FaultyServer` can be told to do with a request."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any


@dataclass(frozen=True, slots=True)
class Request:
    """A request as it came.

    Attributes:
        method: `GET` or `POST`.
        path: With the query, if there is one.
        headers: Names in lower case.
        body: Its body.
    """

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> dict[str, Any]:
        """The body as a JSON object."""
        return json.loads(self.body)

    @property
    def text(self) -> str:
        """All text of all messages of a chat completion."""
        parts: list[str] = []
        for message in self.json["messages"]:
            content = message["content"]
            if isinstance(content, str):
                parts.append(content)
            else:
                parts += [part["text"] for part in content if part["type"] == "text"]
        return "".join(parts)


@dataclass(slots=True)
class Call:
    """A request that is being answered, which behaviours work on.

    Attributes:
        request: The request.
        writer: Where the answer goes.
        hung_up: Set by a behaviour to have the connection closed after it.
    """

    request: Request
    writer: asyncio.StreamWriter
    hung_up: bool = False

    async def send(self, data: bytes) -> None:
        """Sends raw bytes."""
        self.writer.write(data)
        await self.writer.drain()

    async def reply(
        self,
        body: bytes,
        *,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        length: int | None = None,
    ) -> None:
        """Sends a whole response.

        Args:
            body: Its body.
            status: Its status.
            headers: Further headers.
            length: Value of Content-Length; None for the true one.
        """
        fields = {
            "Content-Type": "application/json",
            "Content-Length": str(len(body) if length is None else length),
        }
        lines = "".join(f"{name}: {value}\r\n" for name, value in (fields | dict(headers or {})).items())
        await self.send(f"HTTP/1.1 {status} {_phrase(status)}\r\n{lines}\r\n".encode("latin-1") + body)


Behaviour = Callable[[Call], Awaitable[None]]
"""What the server does with a request. Write your own, or use those below."""


def ok(
    text: str | None = None,
    *,
    after: float = 0.0,
    logprob: float = -0.1,
    cached: int | None = None,
    finish: str = "stop",
) -> Behaviour:
    """Answers well.

    Args:
        text: The reply; None for the first choice of the request's constraint, or else "ok".
        after: Seconds before the answer.
        logprob: Logarithm of the probability of the reply, which counts as one token.
        cached: Cached tokens in the usage; None leaves them out.
        finish: The reason why the reply ends.
    """

    async def behave(call: Call) -> None:
        if after:
            await asyncio.sleep(after)
        await call.reply(completion(call.request, text, logprob=logprob, cached=cached, finish=finish))

    return behave


def status(code: int, message: str = "scripted", *, retry_after: str | float | None = None) -> Behaviour:
    """Answers with an error.

    Args:
        code: HTTP status.
        message: What the body says.
        retry_after: The Retry-After header: seconds, or a date as text.
    """
    headers = {} if retry_after is None else {"Retry-After": str(retry_after)}

    async def behave(call: Call) -> None:
        await call.reply(error(code, message), status=code, headers=headers)

    return behave


def busy(*, retry_after: str | float | None = None) -> Behaviour:
    """Answers 429."""
    return status(429, "too many requests", retry_after=retry_after)


def body(data: bytes) -> Behaviour:
    """Answers 200 with the given bytes, such as garbage or JSON of the wrong shape."""

    async def behave(call: Call) -> None:
        await call.reply(data)

    return behave


def cut(at: int = 20) -> Behaviour:
    """Promises a whole answer, sends the first `at` bytes of its body, and hangs up."""

    async def behave(call: Call) -> None:
        whole = completion(call.request, None)
        await call.reply(whole[:at], length=len(whole))
        call.hung_up = True

    return behave


def drop() -> Behaviour:
    """Hangs up without an answer."""

    async def behave(call: Call) -> None:
        call.hung_up = True

    return behave


def drip(text: str | None = None, *, every: float = 0.001, size: int = 16) -> Behaviour:
    """Answers well, but a few bytes at a time.

    Args:
        text: As in `ok`.
        every: Seconds between them.
        size: Bytes at a time.
    """

    async def behave(call: Call) -> None:
        whole = completion(call.request, text)
        await call.reply(b"", length=len(whole))
        for start in range(0, len(whole), size):
            await call.send(whole[start : start + size])
            await asyncio.sleep(every)

    return behave


def endless(*, every: float = 0.0, size: int = 65536) -> Behaviour:
    """Sends a body that never ends.

    Args:
        every: Seconds between pieces.
        size: Bytes of a piece.
    """

    async def behave(call: Call) -> None:
        await call.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            await call.send(f"{size:x}\r\n".encode() + b" " * size + b"\r\n")
            await asyncio.sleep(every)

    return behave


def hang() -> Behaviour:
    """Never answers."""

    async def behave(call: Call) -> None:
        del call
        await asyncio.Event().wait()

    return behave


def completion(
    request: Request,
    text: str | None,
    *,
    logprob: float = -0.1,
    cached: int | None = None,
    finish: str = "stop",
) -> bytes:
    """The body of a good chat completion, with words as tokens. Arguments as in `ok`."""
    asked = request.json
    if text is None:
        text = str(asked.get("structured_outputs", {}).get("choice", ["ok"])[0])
    choice: dict[str, Any] = {
        "index": 0,
        "message": {"role": "assistant", "content": text},
        "finish_reason": finish,
    }
    if asked.get("logprobs"):
        choice["logprobs"] = {"content": [{"token": text, "logprob": logprob}]}
    prompt, reply = len(request.text.split()), len(text.split())
    usage: dict[str, Any] = {
        "prompt_tokens": prompt,
        "completion_tokens": reply,
        "total_tokens": prompt + reply,
    }
    if cached is not None:
        usage["prompt_tokens_details"] = {"cached_tokens": cached}
    return json.dumps(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "model": asked["model"],
            "choices": [choice],
            "usage": usage,
        }
    ).encode()


def error(code: int, message: str) -> bytes:
    """The body of an error."""
    return json.dumps({"error": {"message": message, "type": _phrase(code), "code": code}}).encode()


def _phrase(code: int) -> str:
    return HTTPStatus(code).phrase if code in set(HTTPStatus) else "Unknown"
