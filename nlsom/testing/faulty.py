"""A real HTTP server on this machine that misbehaves on request.

    async with FaultyServer([busy(retry_after=0), cut(), ok("B")]) as server:
        async with HttpModel(server.url) as model:
            completion = await model.complete(...)      # "B", at the third attempt
    assert len(server.chats) == 3

It speaks the OpenAI API as far as chat completions need it, and by default poses as vLLM.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self, cast

from nlsom.testing.behaviours import Behaviour, Call, Request, error, ok

_MAX_BYTES = 64 * 1024 * 1024


@dataclass(slots=True, eq=False)
class FaultyServer:
    """A scripted HTTP server on a free port of the loopback interface. An async context manager.

    Chat completions follow the script; `GET /v1/models` and `POST /tokenize` are answered well, unless
    `answers` says otherwise. A prompt longer than `context` is refused in vLLM's words.

    Attributes:
        script: Behaviours for chat completions, one after the other.
        then: The behaviour when the script has ended.
        models: Names of the models that it serves.
        engine: What it claims to be (`owned_by`).
        context: Longest prompt and reply, with words as tokens; None for no limit.
        key: API key that it requires; None for none.
        answers: Behaviours for other paths, such as `{"/v1/models": status(503)}`.
        requests: All requests, in order of arrival.
        in_flight: Chat completions that are being answered.
        most_in_flight: Most chat completions that were ever answered at once.
        disconnects: How many clients left before their answer was complete.
        port: Where it listens; 0 takes a free port.
    """

    script: Iterable[Behaviour] = ()
    then: Behaviour = field(default_factory=ok)
    models: tuple[str, ...] = ("faulty",)
    engine: str = "vllm"
    context: int | None = None
    key: str | None = None
    answers: Mapping[str, Behaviour] = field(default_factory=dict[str, Behaviour])
    requests: list[Request] = field(default_factory=list[Request])
    in_flight: int = 0
    most_in_flight: int = 0
    disconnects: int = 0
    port: int = 0
    _script: deque[Behaviour] = field(init=False)
    _server: asyncio.Server | None = field(init=False, default=None)
    _open: set[asyncio.Task[None]] = field(init=False, default_factory=set[asyncio.Task[None]])
    _changed: asyncio.Condition = field(init=False, default_factory=asyncio.Condition)

    def __post_init__(self) -> None:
        self._script = deque(self.script)

    @property
    def url(self) -> str:
        """Its base address, with `/v1`."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def chats(self) -> list[Request]:
        """The chat completions among the requests."""
        return [request for request in self.requests if request.path.endswith("/chat/completions")]

    async def until(self, happened: Callable[[FaultyServer], bool]) -> None:
        """Waits until a condition is true, such as `lambda server: server.disconnects == 1`."""
        async with self._changed:
            await self._changed.wait_for(lambda: happened(self))

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *raised: object) -> None:
        """Stops listening and closes all connections; may be called again."""
        if self._server is None:
            return
        self._server.close()
        for task in tuple(self._open):
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)
        await self._server.wait_closed()
        self._server = None

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = cast("asyncio.Task[None]", asyncio.current_task())
        self._open.add(task)
        try:
            await self._converse(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client may leave at any time
        except asyncio.CancelledError:
            pass  # only `__aexit__` cancels this; asyncio would report a cancelled callback of a stream
        finally:
            self._open.discard(task)
            writer.close()
            with contextlib.suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ahead = b""
        while True:
            request = await _read_request(reader, ahead)
            self.requests.append(request)
            call = Call(request, writer)
            doing = asyncio.ensure_future(self._answer(call))
            # Reading ahead while the answer is made tells at once if the client leaves.
            watching = asyncio.ensure_future(reader.read(1))
            try:
                await asyncio.wait((doing, watching), return_when=asyncio.FIRST_COMPLETED)
                if not doing.done() and watching.done() and not watching.result():
                    self.disconnects += 1
                    return
                await doing
            except ConnectionError:
                self.disconnects += 1
                raise
            finally:
                ahead = await _settled(watching)
                await _settled(doing)
                await self._tell()
            if call.hung_up:
                return

    async def _answer(self, call: Call) -> None:
        path = call.request.path
        if self.key is not None and call.request.headers.get("authorization") != f"Bearer {self.key}":
            await call.reply(error(401, f"bad key {call.request.headers.get('authorization')}"), status=401)
        elif path in self.answers:
            await self.answers[path](call)
        elif path == "/v1/models":
            await call.reply(self._models())
        elif path == "/tokenize":
            count = len(call.request.text.split())
            await call.reply(json.dumps({"count": count, "max_model_len": self.context}).encode())
        elif path == "/v1/chat/completions":
            self.in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self.in_flight)
            try:
                await self._tell()
                await self._chat(call)
            finally:
                self.in_flight -= 1
        else:
            await call.reply(error(404, "Not Found"), status=404)

    async def _chat(self, call: Call) -> None:
        asked = call.request.json
        tokens = len(call.request.text.split())
        if asked["model"] not in self.models:
            await call.reply(error(404, f"The model `{asked['model']}` does not exist."), status=404)
        elif self.context is not None and tokens + asked["max_tokens"] > self.context:
            told = (
                f"maximum context length is {self.context} tokens. Your prompt contains {tokens} input tokens"
            )
            await call.reply(error(400, told), status=400)
        else:
            await (self._script.popleft() if self._script else self.then)(call)

    def _models(self) -> bytes:
        return json.dumps(
            {
                "object": "list",
                "data": [
                    {
                        "id": name,
                        "owned_by": self.engine,
                        "root": f"org/{name}",
                        "max_model_len": self.context,
                    }
                    for name in self.models
                ],
            }
        ).encode()

    async def _tell(self) -> None:
        async with self._changed:
            self._changed.notify_all()


async def _read_request(reader: asyncio.StreamReader, ahead: bytes) -> Request:
    head = ahead + await reader.readuntil(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    method, path, _ = first.split(" ", 2)
    pairs = (line.partition(":") for line in lines if line)
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    length = int(headers.get("content-length", "0"))
    if length > _MAX_BYTES:
        raise ConnectionError(f"a request of {length} bytes")
    return Request(method, path, headers, await reader.readexactly(length))


async def _settled(task: asyncio.Future[Any]) -> bytes:
    """Cancels a task if it is not done, and waits for it; returns the bytes that it read, if any."""
    task.cancel()
    await asyncio.wait((task,))
    if task.cancelled() or task.exception() is not None:
        return b""
    return task.result() or b""
