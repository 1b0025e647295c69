"""Requests to servers that may be busy, slow, broken or gone: limits, retries and replicas."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

import httpx

from nlsom.errors import ModelError, ModelUnavailable, NlsomError, UsageError, reason_of
from nlsom.model.limits import Limits, Slot, backoff, retry_after
from nlsom.model.replicas import Replica, choose
from nlsom.model.wire import MalformedError, error_text

T = TypeVar("T")

_MAX_BYTES = 8 * 1024 * 1024
_KEEPALIVE = 4.0  # seconds; uvicorn, and so vLLM, closes an idle connection after 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long to wait, and how often to try; all times in seconds.

    Attributes:
        timeout: Longest time for one attempt, from connecting to the last byte.
        connect_timeout: Longest time to connect.
        retries: Attempts after the first.
        first: Longest wait before the first retry; it doubles each time.
        longest: Longest wait before any retry, also where a server asks for more (Retry-After).
    """

    timeout: float
    connect_timeout: float
    retries: int
    first: float
    longest: float

    def wait(self, failures: int, after: float | None = None) -> float:
        """Seconds to wait after so many failures; `after` is what the server asked for."""
        return backoff(failures, first=self.first, longest=self.longest, after=after)

    def rest(self, failures: int) -> float:
        """Seconds to leave a server alone that could not be reached so many times in a row."""
        return backoff(failures, first=self.first, longest=self.longest, jitter=max)


class RefusedError(Exception):
    """An answer with a status that a retry would not change."""

    def __init__(self, status: int, body: bytes, url: str) -> None:
        super().__init__(status)
        self.status, self.body, self.url = status, body, url


class _PassingError(Exception):
    """A failure that may pass; `error` is raised when there are no more retries."""

    def __init__(
        self, kind: Literal["down", "slow", "broken", "busy"], error: NlsomError, after: float | None = None
    ):
        super().__init__(kind)
        self.kind, self.error, self.after = kind, error, after


class Exchange:
    """Sends requests to one of several servers. `open` it first, which also resets its limits.

    Args:
        urls: Base addresses.
        key_env: Environment variable of the API key.
        patience: How long to wait, and how often to try.
        concurrency: Most requests in flight at each server.
        requests_per_second: Most requests started per second at each server; None for no limit.
        proxy: Address of a proxy; None for none.

    Raises:
        UsageError: The limits let nothing through, or the proxy's address is wrong.
    """

    def __init__(
        self,
        urls: Sequence[str],
        *,
        key_env: str,
        patience: Patience,
        concurrency: int,
        requests_per_second: float | None,
        proxy: str | None,
    ) -> None:
        self._urls = urls
        self._key_env = key_env
        self._patience = patience
        self._concurrency = concurrency
        self._per_second = requests_per_second
        try:
            self._proxy = None if proxy is None else httpx.Proxy(proxy)
        except (ValueError, httpx.InvalidURL):
            # Without the address: it may hold a password.
            raise UsageError("proxy: not the address of a proxy, such as http://127.0.0.1:3128") from None
        self._key: str | None = None
        self.replicas = self._fresh()

    def _fresh(self) -> tuple[Replica, ...]:
        return tuple(Replica(url, Limits(self._concurrency, self._per_second)) for url in self._urls)

    async def open(self) -> None:
        """Reads the API key and makes the pool of connections.

        Raises:
            ModelUnavailable: The key has characters that an HTTP header cannot carry.
        """
        self._key = _key(self._key_env)
        self._headers = [
            ("Accept", "application/json"),
            ("Accept-Encoding", "identity"),
            ("User-Agent", "nlsom"),
        ]
        if self._key:
            self._headers.append(("Authorization", f"Bearer {self._key}"))
        # The slots already limit the number of connections; the pool need not count again.
        self._client = httpx.AsyncClient(
            limits=httpx.Limits(
                max_connections=None,
                max_keepalive_connections=self._concurrency * len(self._urls),
                keepalive_expiry=_KEEPALIVE,
            ),
            follow_redirects=False,
            trust_env=False,
            proxy=self._proxy,
        )
        self._extensions = {
            "timeout": {
                "connect": self._patience.connect_timeout,
                "read": self._patience.timeout,
                "write": self._patience.timeout,
                "pool": self._patience.timeout,
            }
        }
        self.replicas = self._fresh()

    async def close(self) -> None:
        """Closes all connections."""
        await self._client.aclose()

    async def send(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        *,
        read: Callable[[bytes], T],
        group: bytes = b"",
        at: Replica | None = None,
        final: Sequence[int] = (),
    ) -> T:
        """Sends a request, and retries until an answer can be read or no retries are left.

        Cancelling this closes the connection of an unfinished request, which tells the server that nobody
        waits for it any more.

        Args:
            method: `GET` or `POST`.
            path: Relative to the base address; with two slashes in front, to the server's root.
            body: JSON.
            read: Reads the body of an answer; raises `MalformedError` if it cannot.
            group: Requests of one group go to the same server if possible; at most 64 bytes.
            at: The only server to ask; None for any.
            final: Statuses after which not to retry, although they may pass.

        Raises:
            RefusedError: A status that a retry would not change.
            ModelUnavailable: No server could be reached, had room or answered in time.
            ModelError: What the servers sent could not be read as an answer.
        """
        loop = asyncio.get_running_loop()
        replicas = self.replicas if at is None else (at,)
        avoid: set[Replica] = set()
        failed = timeouts = 0
        while True:
            replica = choose(
                replicas, group, now=loop.time(), rest=self._patience.connect_timeout, avoid=avoid
            )
            try:
                async with replica.limits.slot() as slot:
                    answer = read(await self._once(replica, method, path, body, slot, final))
                    slot.served()
                return answer
            except MalformedError as error:
                failure = _PassingError(
                    "broken",
                    ModelError(f"{replica.url} answered with something else than asked for: {error}"),
                )
            except _PassingError as error:
                failure = error
            failed += 1
            timeouts += failure.kind == "slow"
            if failure.kind == "down":
                replica.fell(loop.time(), self._patience.rest(replica.failures + 1))
            # Timeouts are retried once only: each costs the server a whole reply.
            if failed > self._patience.retries + len(replicas) - 1 or timeouts > 1:
                raise _ended(failure.error, failed) from None
            avoid.add(replica)
            if not any(other.down_until <= loop.time() for other in replicas if other not in avoid):
                avoid.clear()
                await asyncio.sleep(self._patience.wait(failed, failure.after))

    async def _once(
        self, replica: Replica, method: str, path: str, body: bytes, slot: Slot, final: Sequence[int]
    ) -> bytes:
        url = replica.root + path[1:] if path.startswith("//") else replica.url + path
        headers = [*self._headers, ("Content-Type", "application/json")] if body else self._headers
        request = httpx.Request(method, url, headers=headers, content=body, extensions=self._extensions)
        try:
            async with asyncio.timeout(self._patience.timeout):
                response = await self._client.send(request, stream=True)
                try:
                    answer = await _bounded(response)
                finally:
                    await response.aclose()
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            raise _PassingError(
                "down",
                ModelUnavailable(f"{replica.url} cannot be reached ({reason_of(error)}); is the server up?"),
            ) from None
        except (TimeoutError, httpx.TimeoutException):
            raise _PassingError(
                "slow",
                ModelUnavailable(f"{replica.url} did not answer within {self._patience.timeout:g} seconds"),
            ) from None
        except httpx.TransportError as error:
            raise _PassingError(
                "broken", ModelUnavailable(f"{replica.url} broke off its answer ({reason_of(error)})")
            ) from None
        replica.rose()
        if response.is_success:
            return answer
        if self._key:
            answer = answer.replace(self._key.encode(), b"***")
        status = response.status_code
        told = f"{replica.url} answered {status}: {error_text(answer)}"
        if status in (429, 503) and status not in final:
            slot.refused()
            after = retry_after(response.headers.get("retry-after"))
            if after:
                replica.limits.pause(min(after, self._patience.longest))
            raise _PassingError("busy", ModelUnavailable(told), after)
        if status in (408, 500, 502, 504) and status not in final:
            raise _PassingError("broken", ModelError(told) if status == 500 else ModelUnavailable(told))
        if response.is_redirect:
            raise ModelError(
                f"{replica.url} sends elsewhere ({status}), which is not followed; give the final address"
            )
        if status in (401, 403):
            wants = (
                f"refused the key in {self._key_env}"
                if self._key
                else f"wants a key; put it into {self._key_env}"
            )
            raise ModelUnavailable(f"{replica.url} {wants} ({status})")
        raise RefusedError(status, answer, replica.url)


def group_of(*shared: str) -> bytes:
    """A group for requests that share these texts."""
    return hashlib.sha256("\0".join(shared).encode("utf-8", "replace")).digest()


async def _bounded(response: httpx.Response) -> bytes:
    parts: list[bytes] = []
    size = 0
    async for part in response.aiter_raw():
        parts.append(part)
        size += len(part)
        if size > _MAX_BYTES:
            raise MalformedError(f"it is longer than {_MAX_BYTES >> 20} MiB")
    return b"".join(parts)


def _ended(error: NlsomError, attempts: int) -> NlsomError:
    return type(error)(f"{error} ({attempts} attempts)") if attempts > 1 else error


def _key(variable: str) -> str | None:
    key = os.environ.get(variable, "").strip()
    if not all("!" <= letter <= "~" for letter in key):
        raise ModelUnavailable(f"the key in {variable} has characters that no key has; set it again")
    return key or None
