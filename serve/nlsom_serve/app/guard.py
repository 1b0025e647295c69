"""The outermost middleware: request ids, logs, Host and API key checks, and limits on bodies."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import secrets
import time
from collections.abc import Iterable

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from nlsom_serve.app.errors import ApiError, busy
from nlsom_serve.app.keys import Keys
from nlsom_serve.app.logs import request_id
from nlsom_serve.app.metrics import Metrics
from nlsom_serve.app.settings import Settings

log = logging.getLogger("nlsom.serve")

OPEN = ("/", "/page/", "/health", "/ready", "/openapi.json", "/favicon.ico")
"""Paths that need no key: the page, which holds no secret, and the probes."""

_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "Content-Security-Policy": "default-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
}


_CLOSE = {"Connection": "close"}  # the rest of the body is not read
_HEADER_BYTES = 32 * 2**10
_DISCARD_BYTES = 64 * 2**20
_DISCARD_SECONDS = 2.0


class Guard:
    """Checks requests before the application sees them. Pure ASGI, so that handlers notice disconnects."""

    def __init__(self, app: ASGIApp, *, settings: Settings, keys: Keys, metrics: Metrics) -> None:
        self.settings = settings
        self._app, self._keys, self._metrics = app, keys, metrics
        self._bodies = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on, or responds with an error."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        given = headers.get("x-request-id", "")
        id = given if re.fullmatch(r"[A-Za-z0-9._-]{1,64}", given) else secrets.token_hex(8)
        token = request_id.set(id)
        began, status = time.perf_counter(), 499  # stays 499 if the client disconnects before a response

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                out = MutableHeaders(scope=message)
                out["X-Request-Id"] = id
                for name, value in _HEADERS.items():
                    out.setdefault(name, value)
            await send(message)

        scope.setdefault("state", {})
        body = _Body(self, receive)
        try:
            self._check(scope, headers)
            await body.check(headers)
            await self._app(scope, body, sending)
        except ApiError as error:
            if status == 499:
                response = error.response()
                response.headers.update(_CLOSE)
                await response(scope, receive, sending)
        finally:
            body.close()
            self._log(scope, status, time.perf_counter() - began)
            request_id.reset(token)

    def _check(self, scope: Scope, headers: Headers) -> None:
        if sum(len(name) + len(value) for name, value in scope["headers"]) > _HEADER_BYTES:
            raise ApiError(431, "the headers are too large", code="headers_too_large")
        hosts = self.settings.hosts
        if hosts and _host(headers.get("host", "")) not in hosts:
            # Protects from DNS rebinding: a web page whose host name resolves to this machine.
            raise ApiError(403, "the Host header does not name this server", code="wrong_host")
        account = self._keys.find(headers.get("authorization"))
        if account is None and scope["method"] != "OPTIONS" and not _is_open(scope["path"]):
            message = "missing or wrong API key; send `Authorization: Bearer KEY`"
            raise ApiError(401, message, code="invalid_api_key", headers={"WWW-Authenticate": "Bearer"})
        scope["state"]["account"] = account

    def _log(self, scope: Scope, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", "none")
        self._metrics.request(route, status, seconds)
        account = scope["state"].get("account")
        fields = {"method": scope["method"], "path": scope["path"][:200], "status": status}
        fields |= {"seconds": round(seconds, 4), "key": getattr(account, "name", None)}
        if "mindstorm" in scope["state"]:
            fields["mindstorm"] = scope["state"]["mindstorm"]
        log.info("request", extra=fields)

    def reserve(self, count: int) -> None:
        """Counts received bytes of a body towards `Settings.bodies_bytes`.

        Raises:
            ApiError: 429: the bodies of all current requests are too large together.
        """
        if self._bodies + count > self.settings.bodies_bytes:
            raise busy("the server is receiving too much data; try again", seconds=2, code="bodies_full")
        self._bodies += count

    def release(self, count: int) -> None:
        """Gives back what was reserved for a body."""
        self._bodies -= count


class _Body:
    """The `receive` callable of one request, which enforces the limits on its body."""

    def __init__(self, guard: Guard, receive: Receive) -> None:
        self._guard, self._receive = guard, receive
        self._held = 0
        self._whole = False
        self._until = asyncio.get_running_loop().time() + guard.settings.body_seconds

    async def check(self, headers: Headers) -> None:
        """Checks the body's length and type, as far as the headers declare them."""
        length = headers.get("content-length")
        has_body = (length not in (None, "0")) or "transfer-encoding" in headers
        if length is not None and (not length.isdigit() or int(length) > self._guard.settings.body_bytes):
            await self._discard()
            raise self._too_large()
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if has_body and kind != "application/json":
            # Also keeps out web pages of other origins: browsers send them a preflight request for JSON.
            await self._discard()
            raise ApiError(415, "send JSON: `Content-Type: application/json`", code="unsupported_media_type")

    async def __call__(self) -> Message:
        if self._whole:
            return await self._receive()
        try:
            async with asyncio.timeout_at(self._until):
                message = await self._receive()
        except TimeoutError:
            seconds = self._guard.settings.body_seconds
            message = f"the body was not received within {seconds:g} seconds"
            raise ApiError(408, message, code="body_timeout", headers=_CLOSE) from None
        if message["type"] == "http.request":
            self._whole = not message.get("more_body", False)
            count = len(message.get("body", b""))
            self._guard.reserve(count)
            self._held += count
            if self._held > self._guard.settings.body_bytes:
                await self._discard()
                raise self._too_large()
        return message

    async def _discard(self) -> None:
        """Reads on for a while, since a client that is still sending would not read the response."""
        left = _DISCARD_BYTES
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_DISCARD_SECONDS):
                while left > 0 and not self._whole:
                    message = await self._receive()
                    left -= len(message.get("body", b""))
                    self._whole = not message.get("more_body", False)

    def _too_large(self) -> ApiError:
        most = self._guard.settings.body_bytes
        message = f"the body is larger than the limit of {most:,} bytes"
        return ApiError(413, message, code="body_too_large", headers=_CLOSE)

    def close(self) -> None:
        self._guard.release(self._held)
        self._held = 0


def _is_open(path: str) -> bool:
    return path in OPEN or path.startswith("/page/")


def _host(header: str) -> str:
    """The host name in a Host header, without the port."""
    return re.sub(r":\d*$", "", header).lower()


def local_hosts(names: Iterable[str]) -> tuple[str, ...]:
    """The Host names accepted by a server that only this machine can reach: loopback names and `names`."""
    return tuple(dict.fromkeys(["localhost", "127.0.0.1", "[::1]", *(name.lower() for name in names)]))
