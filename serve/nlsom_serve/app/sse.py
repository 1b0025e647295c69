"""Server-sent events, with keep-alive comments and prompt cleanup when the client disconnects."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing

from starlette.responses import Response
from starlette.types import Receive, Scope, Send


def frame(data: object, *, event: str | None = None, id: int | None = None) -> bytes:
    """Encodes one event; `data` that is not text is encoded as JSON."""
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    head = (f"id: {id}\n" if id is not None else "") + (f"event: {event}\n" if event else "")
    # Lone surrogates cannot be encoded. One `data:` line is enough, since JSON escapes line breaks.
    return f"{head}data: {text}\n\n".encode("utf-8", "replace")


HEARTBEAT = b": still here\n\n"


class EventStream(Response):
    """Sends frames as they come, and a keep-alive comment after each `heartbeat` seconds of silence.

    When the client disconnects, the generator is cancelled and closed before the response ends, so that its
    resources are freed at once.
    """

    media_type = "text/event-stream"

    def __init__(self, frames: AsyncGenerator[bytes], *, heartbeat: float) -> None:
        self._frames, self._heartbeat = frames, heartbeat
        self.status_code = 200
        self.background = None
        self.body = b""
        self.init_headers({"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends the frames until they end or the client disconnects."""
        sending = asyncio.create_task(self._send(send))
        leaving = asyncio.create_task(disconnected(receive))
        try:
            await asyncio.wait((sending, leaving), return_when=asyncio.FIRST_COMPLETED)
        finally:
            leaving.cancel()
            sending.cancel()
            ended = await asyncio.gather(sending, leaving, return_exceptions=True)
        if isinstance(ended[0], Exception) and not isinstance(ended[0], OSError):
            raise ended[0]

    async def _send(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        async with aclosing(self._frames) as frames:
            coming = asyncio.ensure_future(anext(frames))
            try:
                while True:
                    done, _ = await asyncio.wait((coming,), timeout=self._heartbeat)
                    if not done:
                        await send({"type": "http.response.body", "body": HEARTBEAT, "more_body": True})
                        continue
                    try:
                        data = coming.result()
                    except StopAsyncIteration:
                        break
                    await send({"type": "http.response.body", "body": data, "more_body": True})
                    coming = asyncio.ensure_future(anext(frames))
            finally:
                coming.cancel()
                await asyncio.gather(coming, return_exceptions=True)
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def disconnected(receive: Receive) -> None:
    """Waits until the client disconnects."""
    while (await receive())["type"] != "http.disconnect":
        pass
