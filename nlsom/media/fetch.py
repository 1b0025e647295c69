"""Fetching a picture from the network, from public addresses only."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence
from ipaddress import ip_address

import httpx

from nlsom.errors import MediaError, reason_of
from nlsom.media.address import Address, reachable
from nlsom.media.limits import DEFAULT_LIMITS, GateLimits

Resolve = Callable[[str, int], Awaitable[Sequence[Address]]]
"""From host and port to addresses, the preferred one first. Raises OSError for an unknown host."""

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_CONNECT_SECONDS = 5.0
_HEADERS = {"Accept": "image/*", "Accept-Encoding": "identity", "User-Agent": "nlsom"}


async def resolve_by_system(host: str, port: int) -> Sequence[Address]:
    """Resolves a host by the operating system, off the event loop."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [ip_address(where[0]) for *_, where in found]


async def fetch(
    url: str,
    limits: GateLimits = DEFAULT_LIMITS,
    *,
    resolve: Resolve = resolve_by_system,
    trust: ssl.SSLContext | None = None,
) -> bytes:
    """Fetches a file over http or https.

    The host is resolved first; all its addresses must be public (or in `limits.allow`), and the connection is
    made to one of the checked addresses, whatever the name resolves to later. Each redirect is checked too.
    Proxies and credentials in the environment are not used.

    Args:
        url: Where the file is.
        limits: Limits on bytes, seconds and redirects; networks allowed in addition to public ones.
        resolve: Resolves a host.
        trust: Certificates to trust for https; None for the defaults of httpx.

    Raises:
        MediaError: The address is not allowed, or the file cannot be fetched within the limits. The message
            has host and reason, but never path or query, which may contain a token.
    """
    here = _parse(url)
    try:
        async with asyncio.timeout(limits.seconds):
            for _ in range(limits.max_redirects + 1):
                answer = await _visit(here, limits, resolve, trust)
                if isinstance(answer, bytes):
                    return answer
                here = _parse(answer)
    except TimeoutError as error:
        raise MediaError(f"{here.host}: no picture within {limits.seconds:g} seconds") from error
    raise MediaError(f"{here.host}: more than {limits.max_redirects} redirects")


def _parse(url: str | httpx.URL) -> httpx.URL:
    try:
        parsed = httpx.URL(url)
        host = parsed.host  # decodes Punycode, which may fail
    except (httpx.InvalidURL, ValueError) as error:
        raise MediaError("this is not a URL that can be fetched") from error
    if parsed.scheme not in ("http", "https"):
        raise MediaError(f"{host or 'URL'}: only http and https are fetched, not {parsed.scheme!r}")
    if not host:
        raise MediaError("the URL names no host")
    if parsed.port is not None and not 0 < parsed.port < 65536:
        raise MediaError(f"{host}: there is no port {parsed.port}")
    if parsed.userinfo:
        raise MediaError(f"{host}: a user name or password in a URL is not allowed")
    return parsed.copy_with(fragment=None)


async def _visit(
    url: httpx.URL, limits: GateLimits, resolve: Resolve, trust: ssl.SSLContext | None
) -> bytes | httpx.URL:
    """The file, or the URL to which the server redirects."""
    addresses = await _addresses(url, limits, resolve)
    if url.scheme == "https" and trust is None:
        trust = await asyncio.to_thread(httpx.create_ssl_context)  # reads a file of 200 KB
    verify = trust if trust is not None else False  # False only where there is no TLS to verify
    # Only the transport, without a client: no redirects, cookies, proxies or credentials.
    async with httpx.AsyncHTTPTransport(verify=verify, trust_env=False) as transport:
        for at, address in enumerate(addresses):
            try:
                return await _get(transport, url, address, limits)
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                if at + 1 == len(addresses):
                    raise MediaError(f"{url.host}: cannot be reached ({reason_of(error)})") from error
            except httpx.HTTPError as error:
                raise MediaError(f"{url.host}: {reason_of(error)}") from error
    raise MediaError(f"{url.host}: has no address")


async def _addresses(url: httpx.URL, limits: GateLimits, resolve: Resolve) -> list[Address]:
    """The addresses of a host, all of which must be allowed, since any of them may be used."""
    host = url.raw_host.decode("ascii")
    try:
        found = await resolve(host, url.port or (443 if url.scheme == "https" else 80))
    except (OSError, UnicodeError, ValueError) as error:
        raise MediaError(f"{url.host}: this host is not known ({reason_of(error)})") from error
    for address in found:
        if not reachable(address, limits.allow):
            raise MediaError(
                f"{url.host}: leads to {address}, which is not a public address; "
                "pictures of a private network have to be allowed by `GateLimits(allow=...)`"
            )
    return list(dict.fromkeys(found))


async def _get(
    transport: httpx.AsyncHTTPTransport, url: httpx.URL, address: Address, limits: GateLimits
) -> bytes | httpx.URL:
    request = httpx.Request(
        "GET",
        url.copy_with(host=str(address)),
        headers={"Host": url.netloc.decode("ascii"), **_HEADERS},
        extensions={
            "sni_hostname": url.raw_host.decode("ascii"),  # the certificate must match this name
            "timeout": httpx.Timeout(limits.seconds, connect=_CONNECT_SECONDS).as_dict(),
        },
    )
    response = await transport.handle_async_request(request)
    try:
        if response.status_code in _REDIRECTS and "location" in response.headers:
            return _target(url, response.headers["location"])
        if response.status_code != 200:
            raise MediaError(f"{url.host}: answered with status {response.status_code}")
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            raise MediaError(f"{url.host}: sent a compressed file although none was asked for")
        return await _read(response, url.host, limits)
    finally:
        await response.aclose()


def _target(url: httpx.URL, location: str) -> httpx.URL:
    try:
        return url.join(location)
    except httpx.InvalidURL as error:
        raise MediaError(f"{url.host}: redirects to what is no URL of a picture") from error


async def _read(response: httpx.Response, host: str, limits: GateLimits) -> bytes:
    """Reads the body, and counts its bytes: the length that a server declares is not trusted."""
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > limits.max_bytes:
            raise MediaError(f"{host}: the file is larger than the limit of {limits.max_bytes:,} bytes")
    return bytes(body)
