"""Several servers with the same model: which of them gets a request."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import httpx

from nlsom.errors import UsageError
from nlsom.model.limits import Limits


@dataclass(slots=True, eq=False)
class Replica:
    """One server.

    Attributes:
        url: Its base address, such as `http://host:8000/v1`, without a slash at the end.
        limits: Limits the requests in flight there.
        failures: How often in a row it could not be reached.
        down_until: When it may be tried again, on the event loop's clock.
    """

    url: str
    limits: Limits
    failures: int = 0
    down_until: float = 0.0

    @property
    def root(self) -> str:
        """The server's address without the path of the API."""
        return self.url.removesuffix("/v1")

    def fell(self, now: float, rest: float) -> None:
        """Notes that it could not be reached, and is to be left alone for `rest` seconds."""
        self.failures += 1
        self.down_until = now + rest

    def rose(self) -> None:
        """Notes that it answered."""
        self.failures = 0
        self.down_until = 0.0


def base_url(url: str) -> str:
    """Checks the base address of a server, and removes a slash at its end.

    Raises:
        UsageError: It is not the address of an HTTP server, or it contains a password.
    """
    try:
        parsed = httpx.URL(url)
        host = parsed.host  # decodes Punycode, which may fail
    except (httpx.InvalidURL, ValueError) as error:
        raise UsageError(f"{url!r} is not the address of a server: {error}") from None
    if parsed.userinfo:
        raise UsageError("the address of a server holds a password; put a key into the environment instead")
    whole = parsed.scheme in ("http", "https") and host and not (parsed.query or parsed.fragment)
    if not whole or not (parsed.port is None or 0 < parsed.port < 65536):
        raise UsageError(f"{url!r} is not the address of a server, such as http://127.0.0.1:8000/v1")
    return str(parsed).rstrip("/")


def choose(
    replicas: Sequence[Replica], key: bytes, *, now: float, rest: float, avoid: Collection[Replica] = ()
) -> Replica:
    """Chooses where a request goes.

    Each key has an order of preference, by rendezvous hashing (Thaler and Ravishankar, 1998). So requests
    that share a key meet at the prefix cache of one server, and a server that comes or goes moves only its
    own keys. The first server in that order with a free slot is chosen; if none has one, the server with the
    shortest queue in relation to its cap. A server that was down is tried by one request first.

    Args:
        replicas: At least one.
        key: Digest of what the request shares with others.
        now: The time on the event loop's clock, in seconds.
        rest: How long other requests avoid a server that this one tries, in seconds.
        avoid: Servers at which this request has failed; chosen only if no other is up.
    """
    if len(replicas) == 1:
        return replicas[0]
    order = sorted(replicas, key=lambda replica: _weight(replica, key), reverse=True)
    up = [replica for replica in order if replica.down_until <= now]
    usable = [replica for replica in up if replica not in avoid] or up or order
    chosen = next((replica for replica in usable if replica.limits.free), None)
    if chosen is None:
        chosen = min(
            usable, key=lambda replica: (replica.limits.held + replica.limits.waiting) / replica.limits.cap
        )
    if chosen.failures:
        chosen.down_until = now + rest
    return chosen


def _weight(replica: Replica, key: bytes) -> bytes:
    return hashlib.blake2b(replica.url.encode(), key=key, digest_size=8).digest()
