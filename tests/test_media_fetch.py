"""Pictures are fetched from public addresses only, and from the very address that was checked."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from ipaddress import ip_address, ip_network

import pytest
import trustme
from hypothesis import given
from hypothesis import strategies as st

from nlsom.errors import MediaError
from nlsom.media import GateLimits
from nlsom.media.address import Address, reachable
from nlsom.media.fetch import Resolve, fetch, resolve_by_system

LOOPBACK = GateLimits(allow=(ip_network("127.0.0.0/8"),), seconds=60)
BODY = b"\xff\xd8\xff" + bytes(range(256)) * 40


class Server:
    """A small HTTP server on an address of loopback that answers with fixed bytes and remembers requests."""

    def __init__(self, answer: Callable[[str], bytes]) -> None:
        self.answer = answer
        self.requests: list[str] = []
        self.server_names: list[str] = []
        self.port = 0
        self.hold: asyncio.Event | None = None

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = (await reader.readuntil(b"\r\n\r\n")).decode()
            self.requests.append(request)
            writer.write(self.answer(request.split(" ")[1]))
            await writer.drain()
            if self.hold is not None:
                await self.hold.wait()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client has disconnected, as some tests intend
        finally:
            writer.close()


@asynccontextmanager
async def serving(
    answer: Callable[[str], bytes] | bytes,
    host: str = "127.0.0.1",
    *,
    port: int = 0,
    tls: ssl.SSLContext | None = None,
    hold: bool = False,
) -> AsyncIterator[Server]:
    server = Server(answer if callable(answer) else lambda _: answer)
    server.hold = asyncio.Event() if hold else None
    listening = await asyncio.start_server(server.serve, host, port, ssl=tls)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        if server.hold is not None:
            server.hold.set()
        listening.close()
        await listening.wait_closed()


def reply(body: bytes = BODY, status: str = "200 OK", **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", "Connection: close"]
    if "content_length" not in headers:
        lines.append(f"Content-Length: {len(body)}")
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


def redirect(to: str, status: str = "302 Found") -> bytes:
    return reply(b"", status, location=to)


def resolving(**hosts: str) -> Resolve:
    """Names of hosts, with `_` for a dot, to addresses separated by spaces."""

    async def resolve(host: str, port: int) -> Sequence[Address]:
        known = hosts.get(host.replace(".", "_"))
        if known is None:
            try:
                return [ip_address(host)]
            except ValueError:
                raise OSError("Name or service not known") from None
        return [ip_address(address) for address in known.split()]

    return resolve


async def refused(fetching: Awaitable[bytes]) -> str:
    with pytest.raises(MediaError) as error:
        await fetching
    return str(error.value)


# Addresses


@pytest.mark.parametrize(
    "address",
    ["1.1.1.1", "8.8.8.8", "93.184.215.14", "2606:4700::1111", "2a00:1450:4001::1", "64:ff9b::808:808"],
)
def test_public_addresses_are_reachable(address: str) -> None:
    assert reachable(ip_address(address), ())


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "127.8.8.8", "0.0.0.0", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1"),
        *("169.254.169.254", "100.64.0.1", "224.0.0.1", "239.1.1.1", "233.252.0.1", "240.0.0.1"),
        *(
            "255.255.255.255",
            "192.0.2.1",
            "198.18.0.1",
            "198.51.100.1",
            "203.0.113.1",
            "192.0.0.8",
            "192.88.99.1",
            "3fff::1",
        ),
        *(
            "::",
            "::1",
            "fe80::1",
            "fe80::1%1",
            "fc00::1",
            "fd12::1",
            "fec0::1",
            "ff02::1",
            "ff0e::1",
            "100::1",
        ),
        *(
            "2001:db8::1",
            "2001::1",
            "2001:0:a00:1::",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "::127.0.0.1",
        ),
        *("64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "2002:7f00:1::", "2002:a9fe:a9fe::1"),
    ],
)
def test_other_addresses_are_not(address: str) -> None:
    assert not reachable(ip_address(address), ())


def test_allowed_networks_are_reachable_and_no_more() -> None:
    allow = (ip_network("10.1.0.0/16"), ip_network("fd12::/16"))
    for address in ("10.1.2.3", "fd12::9", "::ffff:10.1.2.3", "1.1.1.1"):
        assert reachable(ip_address(address), allow)
    for address in ("10.2.0.1", "fd13::9", "::ffff:10.2.0.1", "127.0.0.1"):
        assert not reachable(ip_address(address), allow)


@given(st.ip_addresses(v=4))
def test_an_ipv4_address_hidden_in_an_ipv6_address_is_judged_by_itself(address: Address) -> None:
    plain = reachable(address, ())
    assert reachable(ip_address(f"::ffff:{address}"), ()) == plain
    assert reachable(ip_address(int(ip_address("64:ff9b::")) + int(address)), ()) == plain


# Fetching


async def test_a_file_is_fetched_by_name_with_its_own_host_header() -> None:
    async with serving(reply()) as server:
        url = f"http://pictures.example:{server.port}/cat.jpg?size=1#top"
        assert await fetch(url, LOOPBACK, resolve=resolving(pictures_example="127.0.0.1")) == BODY
    request = server.requests[0].lower()
    assert request.startswith("get /cat.jpg?size=1 http/1.1\r\n")
    assert f"host: pictures.example:{server.port}\r\n" in request
    assert request.count("host:") == 1
    assert "cookie" not in request


async def test_an_address_of_this_machine_is_refused_without_a_connection() -> None:
    async with serving(reply()) as server:
        message = await refused(fetch(f"http://127.0.0.1:{server.port}/"))
        assert message.startswith("127.0.0.1: leads to 127.0.0.1, which is not a public address")
        assert "not a public" in await refused(fetch(f"http://localhost:{server.port}/"))
        for disguise in ("2130706433", "0x7f000001", "127.1", "[::ffff:127.0.0.1]", "[::1]"):
            with pytest.raises(MediaError, match=r"not a public address|not known"):
                await fetch(f"http://{disguise}:{server.port}/")
    assert server.requests == []


async def test_one_address_that_is_not_public_refuses_the_host() -> None:
    async with serving(reply()) as server:
        url = f"http://pictures.example:{server.port}/"
        resolve = resolving(pictures_example="1.1.1.1 10.0.0.1 127.0.0.1")
        assert "leads to 10.0.0.1" in await refused(fetch(url, LOOPBACK, resolve=resolve))
    assert server.requests == []


@pytest.mark.parametrize(
    "target",
    [
        "http://169.254.169.254/latest/meta-data/",
        "http://metadata.example/",
        "http://[::ffff:169.254.169.254]/",
        "//10.0.0.1/",
    ],
)
async def test_a_redirect_to_a_private_address_is_refused(target: str) -> None:
    async with serving(redirect(target)) as server:
        url = f"http://pictures.example:{server.port}/"
        resolve = resolving(pictures_example="127.0.0.1", metadata_example="169.254.169.254")
        assert "not a public address" in await refused(fetch(url, LOOPBACK, resolve=resolve))
    assert len(server.requests) == 1


async def test_a_redirect_to_loopback_is_refused() -> None:
    async with serving(reply(), "127.0.0.1") as inner, serving(b"", "127.0.0.2") as outer:
        outer.answer = lambda _: redirect(f"http://127.0.0.1:{inner.port}/")
        limits = GateLimits(allow=(ip_network("127.0.0.2/32"),), seconds=60)
        message = await refused(fetch(f"http://127.0.0.2:{outer.port}/", limits, resolve=resolving()))
    assert "leads to 127.0.0.1" in message
    assert len(outer.requests) == 1
    assert inner.requests == []


async def test_the_connection_goes_to_the_address_that_was_checked() -> None:
    answers = ["127.0.0.2", "127.0.0.1"]  # a name that is rebound right after it was looked up

    async def rebinding(host: str, port: int) -> Sequence[Address]:
        return [ip_address(answers.pop(0))]

    async with (
        serving(reply(b"checked"), "127.0.0.2") as public,
        serving(reply(b"private"), "127.0.0.1", port=public.port) as private,
    ):
        limits = GateLimits(allow=(ip_network("127.0.0.2/32"),), seconds=60)
        url = f"http://rebind.example:{public.port}/"
        assert await fetch(url, limits, resolve=rebinding) == b"checked"
        assert "leads to 127.0.0.1" in await refused(fetch(url, limits, resolve=rebinding))
    assert len(public.requests) == 1
    assert private.requests == []


async def test_the_next_address_is_tried_where_one_cannot_be_reached() -> None:
    async with serving(reply(), "127.0.0.2") as server:
        resolve = resolving(pictures_example="127.0.0.3 127.0.0.2")
        assert await fetch(f"http://pictures.example:{server.port}/", LOOPBACK, resolve=resolve) == BODY
        resolve = resolving(pictures_example="127.0.0.3")
        message = await refused(fetch(f"http://pictures.example:{server.port}/", LOOPBACK, resolve=resolve))
    assert message.startswith("pictures.example: cannot be reached")


@pytest.mark.parametrize(
    "status", ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"]
)
async def test_redirects_are_followed(status: str) -> None:
    paths = {"/a": redirect("b", status), "/b": redirect("/c?x=1", status), "/c?x=1": reply()}
    async with serving(paths.__getitem__) as server:
        assert await fetch(f"http://127.0.0.1:{server.port}/a", LOOPBACK) == BODY
    assert len(server.requests) == 3


async def test_redirects_in_a_circle_end() -> None:
    async with serving(redirect("/again")) as server:
        message = await refused(fetch(f"http://127.0.0.1:{server.port}/", LOOPBACK))
    assert message == "127.0.0.1: more than 5 redirects"
    assert len(server.requests) == 6


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("file:///etc/passwd", "only http and https"),
        ("ftp://pictures.example/", "only http and https"),
        ("data:,abc", "only http and https"),
        ("http://pictures.example:port/", "no URL of a picture"),
        ("http://user:secret@pictures.example/", "user name or password"),
    ],
)
async def test_a_redirect_to_anything_else_is_refused(target: str, reason: str) -> None:
    async with serving(redirect(target)) as server:
        assert reason in await refused(fetch(f"http://127.0.0.1:{server.port}/", LOOPBACK))


async def test_a_body_is_counted_whatever_its_declared_length() -> None:
    limits = GateLimits(allow=LOOPBACK.allow, seconds=60, max_bytes=len(BODY))
    async with serving(reply()) as server:
        assert await fetch(f"http://127.0.0.1:{server.port}/", limits) == BODY
    endless = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + bytes(10 * len(BODY))
    async with serving(endless, hold=True) as server:
        message = await refused(fetch(f"http://127.0.0.1:{server.port}/", limits))
    assert message == f"127.0.0.1: the file is larger than the limit of {len(BODY):,} bytes"


async def test_a_body_that_is_cut_off_is_refused() -> None:
    async with serving(reply(content_length=str(len(BODY) + 1))) as server:
        assert (await refused(fetch(f"http://127.0.0.1:{server.port}/", LOOPBACK))).startswith("127.0.0.1: ")


async def test_a_server_that_never_ends_is_left_in_time() -> None:
    limits = GateLimits(allow=LOOPBACK.allow, seconds=0.3)
    async with serving(b"HTTP/1.1 200 OK\r\n\r\n123", hold=True) as server:
        message = await refused(fetch(f"http://127.0.0.1:{server.port}/", limits))
    assert message == "127.0.0.1: no picture within 0.3 seconds"


async def test_a_compressed_body_is_refused() -> None:
    async with serving(reply(content_encoding="gzip")) as server:
        assert "compressed" in await refused(fetch(f"http://127.0.0.1:{server.port}/", LOOPBACK))


@pytest.mark.parametrize(
    "status", ["404 Not Found", "403 Forbidden", "500 Oops", "204 No Content", "304 Same"]
)
async def test_an_answer_without_a_picture_names_host_and_status_only(status: str) -> None:
    async with serving(reply(b"", status)) as server:
        message = await refused(fetch(f"http://127.0.0.1:{server.port}/secret?token=secret", LOOPBACK))
    assert message == f"127.0.0.1: answered with status {status[:3]}"


async def test_what_is_no_http_is_an_error() -> None:
    async with serving(b"SSH-2.0-OpenSSH\r\n\r\n") as server:
        assert (await refused(fetch(f"http://127.0.0.1:{server.port}/", LOOPBACK))).startswith("127.0.0.1: ")


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://user:secret@pictures.example/", "user name or password"),
        ("http://secret@pictures.example/", "user name or password"),
        ("http:///cat.jpg", "no host"),
        ("https://pictures.example:99999/secret", "no port 99999"),
        ("https://pictures.example:port/secret", "not a URL"),
        ("http://[broken/secret", "not known"),
        ("http://xn--/secret", "not a URL"),
        ("ftp://pictures.example/secret", "only http and https"),
        ("http://nowhere.example/secret", "not known"),
        ("http://empty.example/secret", "no address"),
    ],
)
async def test_what_cannot_be_fetched_is_refused_without_its_secrets(url: str, reason: str) -> None:
    message = await refused(fetch(url, resolve=resolving(empty_example="")))
    assert reason in message
    assert "secret" not in message


async def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    async with serving(reply()) as server:
        assert await fetch(f"http://127.0.0.1:{server.port}/", LOOPBACK) == BODY


async def test_a_cancelled_fetch_closes_its_connection() -> None:
    async with serving(b"HTTP/1.1 200 OK\r\n\r\n123", hold=True) as server:
        fetching = asyncio.create_task(fetch(f"http://127.0.0.1:{server.port}/", LOOPBACK))
        while not server.requests:
            await asyncio.sleep(0.01)
        fetching.cancel()
        with pytest.raises(asyncio.CancelledError):
            await fetching


async def test_the_system_resolves_names_to_addresses() -> None:
    assert {str(address) for address in await resolve_by_system("localhost", 80)} & {"127.0.0.1", "::1"}


# TLS


def certificate(authority: trustme.CA, *names: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """What the server shows for its names, and what the client trusts."""
    server, client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    authority.issue_cert(*names).configure_cert(server)
    authority.configure_trust(client)
    return server, client


async def test_the_certificate_is_checked_for_the_name_although_the_connection_goes_to_an_address() -> None:
    shown, trust = certificate(trustme.CA(), "pictures.example")
    names: list[str | None] = []
    shown.sni_callback = lambda _, name, __: names.append(name)
    resolve = resolving(pictures_example="127.0.0.1", other_example="127.0.0.1")
    async with serving(reply(), tls=shown) as server:
        url = f"https://pictures.example:{server.port}/"
        assert await fetch(url, LOOPBACK, resolve=resolve, trust=trust) == BODY
        other = fetch(f"https://other.example:{server.port}/", LOOPBACK, resolve=resolve, trust=trust)
        assert "certificate" in (await refused(other)).lower()
    assert names == ["pictures.example", "other.example"]


async def test_a_certificate_of_nobody_known_is_refused() -> None:
    shown, _ = certificate(trustme.CA(), "pictures.example")
    async with serving(reply(), tls=shown) as server:
        url = f"https://pictures.example:{server.port}/"
        message = await refused(fetch(url, LOOPBACK, resolve=resolving(pictures_example="127.0.0.1")))
    assert "certificate" in message.lower()
