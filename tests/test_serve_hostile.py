# ruff: noqa: E501 (tables of requests read better a line each)
"""Requests that mean no good: each gets the right refusal, and the server answers the next one."""

import asyncio
import base64
import gzip
import io
import json
import struct
import zlib
from dataclasses import dataclass, field

from PIL import Image as Pillow
from serving import CHAT, chat, png, serving, with_picture

from nlsom.media import FolderStore
from nlsom_serve.app import Settings

JSON = {"Content-Type": "application/json"}
ZERO = "0" * 16


@dataclass(frozen=True)
class Hostile:
    """A request and what it must be answered."""

    name: str
    status: int
    body: object = None
    path: str = CHAT
    method: str = "POST"
    headers: dict = field(default_factory=dict)

    @property
    def content(self):
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


def bomb(width=60_000, height=60_000):
    """A PNG whose header promises more pixels than any machine holds."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    data = zlib.compress(b"\0" * 100_000)
    whole = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", data) + chunk(b"IEND", b"")
    return "data:image/png;base64," + base64.b64encode(whole).decode()


def cut(kind, keep=0.5):
    file = io.BytesIO()
    Pillow.effect_noise((64, 64), 80).save(file, kind)
    data = file.getvalue()
    return f"data:image/{kind.lower()};base64," + base64.b64encode(data[: int(len(data) * keep)]).decode()


def data_url(raw, kind="image/png"):
    return f"data:{kind};base64," + base64.b64encode(raw).decode()


def deep(depth):
    return b"[" * depth + b"]" * depth


def requests():
    yield from bodies()
    yield from fields()
    yield from pictures()
    yield from paths()
    yield from headers()


def bodies():
    for name, body in {
        "empty": b"", "no json": b"hello", "half": b'{"model": ', "list": b"[]", "number": b"1", "text": b'"x"',
        "null": b"null", "not utf-8": b'{"model": "\xff\xfe"}', "utf-16": '{"model": "x"}'.encode("utf-16"),
        "nan": b'{"model": NaN}', "infinity": b'{"seed": Infinity}', "deep list": deep(200_000),
        "deep object": b'{"a":' * 50_000 + b"1" + b"}" * 50_000, "deep inside": b'{"messages":' + deep(5_000) + b"}",
        "many digits": b'{"seed": ' + b"9" * 10_000 + b"}", "exponent": b'{"seed": 1e999}', "comment": b"{/* */}",
        "single quotes": b"{'model': 'x'}", "null byte": b'{"model": "x"}\0', "two values": b"{}{}",
        "bare surrogate": b'{"model": "society/trio", "messages": [{"role": "user", "content": "\\ud800"}]}',
        "surrogate key": b'{"\\ud800": 1}', "bom": b'\xef\xbb\xbf{}', "form": b"model=x&messages=y",
        "a key twice": b'{"model": "society/trio", "model": "x", "messages": []}',
        "a key twice inside": b'{"model": "society/trio", "messages": [{"role": "system", "role": "user", "content": "x"}]}',
        "gzip": gzip.compress(b'{"model": "society/trio"}'), "utf-7": b"+AHs-", "control": b'{"model": "\x01"}',
        "hex number": b'{"seed": 0x10}', "plus": b'{"seed": +1}', "trailing comma": b'{"model": "x",}',
        "xml": b'<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>',
    }.items():  # fmt: skip
        yield Hostile(f"body {name}", 400, body)
    many = json.dumps({f"k{n}": n for n in range(200_000)}).encode()
    yield Hostile("body with 200,000 keys", 413, many)
    yield Hostile("body over the limit", 413, chat("x" * 1_200_000))


def fields():
    ask = [{"role": "user", "content": "Well?"}]
    wrong = {
        "model": [None, 1, [], {}, True], "messages": [None, "x", {}, [], [1], [[]], [{}], [{"role": "user"}] * 2001],
        "seed": [1.5, "1", True, [], 2**63, -(2**63) - 1, 10**400], "n": [0, -1, 9, 1.5, "2", [], True],
        "max_tokens": [0, -1, "5", 1e9, 2**31, 10**400], "temperature": [-1, 3, "hot", []], "top_p": [-0.1, 2, "x"],
        "stream": ["yes", 1, []], "stop": [1, {}, ["x"] * 17, [1], ["x"] * 10_000],
        "response_format": ["json", {"type": "xml"}, {"type": "json_schema"}, {"type": "json_schema", "json_schema": 1}],
        "nlsom": [1, "x", {"x": 1}, {"limits": {"seconds": 0}}, {"limits": {"tokens": -1}}, {"limits": {"calls": 0.5}},
                  {"choices": ["a", "a"]}, {"choices": [""]}, {"choices": [1]}, {"choices": ["x"] * 501},
                  {"limits": {"seconds": 1e12}}],
        "max_completion_tokens": [0, 10**30, True], "presence_penalty": [2.1, "x"], "stream_options": [1, "x", {"y": 1}, []],
        "chat_template_kwargs": ["x", [1]], "user": [1, {}], "modalities": [["audio"], "text"], "store": ["no"],
        "nonsense": [1], "__class__": ["x"], "tools": [[{"x": 1}]], "logit_bias": [{"1": 2}], "metadata": ["x"],
    }  # fmt: skip
    for name, values in wrong.items():
        for number, value in enumerate(values):
            body = {"model": "society/trio", "messages": ask, name: value}
            yield Hostile(f"{name} #{number}", 400, body)
    for name, content in {
        "an assistant last": [{"role": "assistant", "content": "x"}],
        "a tool": [{"role": "tool", "content": "x"}],
        "no content": [{"role": "user", "content": ""}],
        "null content": [{"role": "user", "content": None}],
        "a picture only": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": png()}}]}],
        "a part of no kind": [{"role": "user", "content": [{"text": "x"}]}],
        "sound": [{"role": "user", "content": [{"type": "input_audio", "input_audio": {}}]}],
        "a file": [{"role": "user", "content": [{"type": "file", "file": {"file_id": "x"}}]}],
        "a number": [{"role": "user", "content": 5}],
    }.items():
        yield Hostile(f"messages: {name}", 400, {"model": "society/trio", "messages": content})
    for name in (
        "gpt-4",
        "",
        "society/",
        "society/../trio",
        "society/trio/../..",
        "\u0000",
        "society/TRIO",
        "*",
        "society/trio\u202e",
        "society/\uff54\uff52\uff49\uff4f",
        "society/tri\u03bf",
        "..\\..\\trio",
        "society/%74rio",
    ):
        yield Hostile(f"model {name!r}", 404, {"model": name, "messages": ask})


def pictures():
    many = [part for n in range(9) for part in with_picture("", png(8 + n))]
    for name, url in {
        "bomb": bomb(), "wide": bomb(2**31 - 1, 1), "cut png": cut("PNG"), "cut jpeg": cut("JPEG", 0.2),
        "no comma": "data:image/png;base64", "bad base64": "data:image/png;base64,@@@@", "empty": "data:,",
        "svg": data_url(b"<svg xmlns='http://www.w3.org/2000/svg'/>", "image/svg+xml"), "html": data_url(b"<html>"),
        "pdf": data_url(b"%PDF-1.7"), "zip": data_url(b"PK\x03\x04" + b"\0" * 100), "elf": data_url(b"\x7fELF"),
        "a path": "/etc/passwd", "relative": "../../etc/passwd", "file": "file:///etc/passwd",
        "file host": "file://localhost/etc/passwd", "ftp": "ftp://example.org/x.png", "gopher": "gopher://127.0.0.1/",
        "javascript": "javascript:alert(1)", "blob": "blob:x", "nothing": "", "blank": " ",
        "metadata": "http://169.254.169.254/latest/meta-data/", "loopback": "http://127.0.0.1:1/x.png",
        "loopback 6": "http://[::1]:1/x.png", "localhost": "http://localhost:1/x.png", "short": "http://127.1/x.png",
        "decimal": "http://2130706433/x.png", "octal": "http://0177.0.0.1/x.png", "hex": "http://0x7f000001/x.png",
        "mapped": "http://[::ffff:127.0.0.1]/x.png", "private": "http://10.0.0.1/x.png", "zero": "http://0.0.0.0/",
        "credentials": "http://a:b@127.0.0.1/x.png", "port": "http://127.0.0.1:99999/x.png", "link": "http://[fe80::1]/",
        "no host": "http:///x.png", "bracket": "http://[::1/x.png", "crlf": "http://a\r\nb/",
        "upper": "HTTP://127.0.0.1/x.png", "nat64": "http://[64:ff9b::7f00:1]/",
    }.items():  # fmt: skip
        yield Hostile(f"picture {name}", 400, chat(with_picture("Well?", url)))
    for host in ("0", "127.0.0.1.", "[::ffff:7f00:1]", "[::]", "172.16.0.1", "100.64.0.1", "192.168.1.1",
                 "224.0.0.1", "255.255.255.255", "[fd00::1]", "[2002:7f00:1::]", "127\u30020\u30020\u30021",
                 "\u2460\u2461\u2466.0.0.1", "a" * 300, "\u202elocalhost"):  # fmt: skip
        yield Hostile(f"picture at host {host!r}", 400, chat(with_picture("Well?", f"http://{host}/x.png")))
    yield Hostile("a stream of nine", 400, chat("Well?", stream=True, n=9))
    yield Hostile("a stream of a bomb", 400, chat(with_picture("Well?", bomb(50_000, 50_000)), stream=True))
    yield Hostile("nine pictures", 400, chat(many))
    yield Hostile("picture: a number", 400, chat([{"type": "image_url", "image_url": {"url": 5}}]))
    yield Hostile("picture: a text", 400, chat([{"type": "image_url", "image_url": png()}]))
    native = {"society": "trio", "question": "Well?"}
    yield Hostile("native bomb", 400, {**native, "images": [bomb()]}, "/v1/mindstorms")
    yield Hostile("native path", 400, {**native, "images": ["/etc/passwd"]}, "/v1/mindstorms")


def paths():
    for path in (
        "/v1/mindstorms/x",
        "/v1/mindstorms/..%2f..",
        f"/v1/mindstorms/{ZERO}x",
        "/v1/mindstorms/' OR 1=1",
    ):
        yield Hostile(f"GET {path}", 404, b"", path, "GET")
    for path in (
        f"/v1/mindstorms/{ZERO}", f"/v1/mindstorms/{ZERO}/events", f"/v1/mindstorms/{ZERO}/images/0",
        "/v1/societies/none", "/v1/societies/none/graph.svg", "/v1/societies/..%2f..%2fetc", "/v1/models/none",
        "/page/../app/keys.py", "/page/..%2fapp%2fkeys.py", "/page/%2e%2e/server.py", "/page//etc/passwd",
        "/page/none.js", "/etc/passwd", "/docs", "/v1", "//", "/.env", "/v1/models/%00", "/page/%00",
    ):  # fmt: skip
        yield Hostile(f"GET {path}", 404, b"", path, "GET")
    yield Hostile("DELETE unknown", 404, b"", f"/v1/mindstorms/{ZERO}", "DELETE")
    yield Hostile("picture -1", 400, b"", f"/v1/mindstorms/{ZERO}/images/-1", "GET")
    yield Hostile("limit 0", 400, b"", "/v1/mindstorms?limit=0", "GET")
    yield Hostile("limit 10**9", 400, b"", "/v1/mindstorms?limit=1000000000", "GET")
    yield Hostile("before sql", 400, b"", "/v1/mindstorms?before=1'--", "GET")
    turn = f"/v1/mindstorms/{ZERO}/turns/{'0' * 64}"
    yield Hostile("turn of nobody", 404, {"answer": "x"}, turn)
    yield Hostile("turn without answer", 400, {}, turn)
    yield Hostile("turn with an empty answer", 400, {"answer": ""}, turn)
    yield Hostile("turn with a bad key", 404, {"answer": "x"}, f"/v1/mindstorms/{ZERO}/turns/x")
    for method in ("GET", "PUT", "DELETE", "PATCH", "TRACE"):
        yield Hostile(f"{method} chat", 405, b"", CHAT, method)
    for name in ("../../etc/passwd", "trio/../trio", "trio\0", "", "TRIO", "\u202etrio"):
        yield Hostile(f"native society {name!r}", 404, {"society": name, "question": "x"}, "/v1/mindstorms")
    native = {"society": "trio", "question": "x"}
    for name, value in {
        "images": ["x", [1], [None]], "choices": [[""], ["a", "a"], [1], "ab"], "seed": [True, "1", 2**64, 0.5],
        "wait": ["yes", 1], "find_choices": [1], "context": [None, []], "limits": [{"x": 1}, {"seconds": -1}, {"calls": True}, 5],
    }.items():  # fmt: skip
        for number, one in enumerate(value):
            yield Hostile(f"native {name} #{number}", 400, {**native, name: one}, "/v1/mindstorms")
    for body in ({}, {"society": "none"}, {"society": "trio"}, {"society": "trio", "question": "x", "y": 1}):
        status = 404 if body.get("society") == "none" else 400
        yield Hostile(f"native {body}", status, body, "/v1/mindstorms")


def headers():
    body = chat("Well?")
    for kind in (
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "text/json",
        "",
    ):
        yield Hostile(f"content type {kind!r}", 415, body, headers={"Content-Type": kind})
    for length in ("-1", "x", "1e3", "99999999999999999999"):
        yield Hostile(
            f"content length {length}",
            400 if length in ("-1", "x", "1e3") else 413,
            b"",
            headers={**JSON, "Content-Length": length},
        )
    for id in ("-1", "x", "1;2", "9" * 20, "\u00b2"):
        path = f"/v1/mindstorms/{ZERO}/events"
        yield Hostile(f"last event {id!r}", 400, b"", path, "GET", {"Last-Event-ID": id})
    for name, value in {
        "Transfer-Encoding": "gzip", "Transfer-Encoding ": "chunked", "Content-Length": "5, 6", "X y": "1", "": "1",
    }.items():  # fmt: skip
        yield Hostile(f"header {name!r}: {value}", 400, b"", headers={**JSON, name: value})
    yield Hostile("a huge header", 431, b"", "/v1/models", "GET", {"X-Large": "x" * 100_000})


ALL = list(requests())


async def send(port, hostile):
    """Sends a request byte by byte as it is, and returns the status and the body."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    content = b"" if hostile.body is None or hostile.body == b"" else hostile.content
    fields = {"Host": "127.0.0.1", "Connection": "close"}
    if hostile.method in ("POST", "PUT", "PATCH"):
        fields |= {**JSON, "Content-Length": str(len(content))}
    fields |= hostile.headers
    head = f"{hostile.method} {hostile.path.replace(' ', '%20')} HTTP/1.1\r\n"
    head += "".join(f"{name}: {value}\r\n" for name, value in fields.items()) + "\r\n"
    try:
        writer.write(head.encode("latin-1", "replace") + content)
        answer = await reader.read()
    except ConnectionError as error:
        return 0, repr(error)
    finally:
        writer.close()
    first, _, rest = answer.partition(b"\r\n")
    return int(first.split()[1]), rest.partition(b"\r\n\r\n")[2].decode("utf-8", "replace")


async def test_hostile_requests_are_refused_and_the_server_lives(tmp_path):
    assert len(ALL) >= 150
    assert len({one.name for one in ALL}) == len(ALL)
    settings = Settings(body_bytes=2**20, pixels=4_000_000, fetch=True)
    wrong = []
    async with serving(tmp_path, settings=settings) as (client, house):
        assert isinstance(house.media, FolderStore)
        for hostile in ALL:
            status, body = await send(client.base_url.port, hostile)
            well_told = status < 500 and "Traceback" not in body and "site-packages" not in body
            if status >= 400 and hostile.path.startswith("/v1") and body.startswith("{"):
                well_told = well_told and set(json.loads(body)["error"]) == {
                    "message",
                    "type",
                    "param",
                    "code",
                }
            if status != hostile.status or not well_told:
                wrong.append(f"{hostile.name}: {status}, not {hostile.status}: {body[:200]}")
        assert not wrong, "\n".join(wrong)
        assert (await client.post(CHAT, json=chat("Well?"))).status_code == 200
        assert house.places.running == house.places.waiting == 0


async def test_nothing_is_fetched_from_a_private_address_nor_by_way_of_a_redirect(tmp_path):
    asked = []

    async def trap(reader, writer):
        asked.append(await reader.readline())
        writer.close()

    trapped = await asyncio.start_server(trap, "127.0.0.1", 0)
    port = trapped.sockets[0].getsockname()[1]
    async with trapped, serving(tmp_path, settings=Settings(fetch=True)) as (client, _):
        for host in (
            "127.0.0.1",
            "localhost",
            "127.1",
            "2130706433",
            "0x7f.1",
            "[::ffff:127.0.0.1]",
            "0.0.0.0",
        ):
            body = chat(with_picture("Well?", f"http://{host}:{port}/x.png"))
            assert (await client.post(CHAT, json=body)).json()["error"]["code"] == "invalid_image"
    assert asked == []


async def test_pictures_are_fetched_only_where_the_server_allows_it(tmp_path):
    async with serving(tmp_path) as (client, _):
        told = await client.post(CHAT, json=chat(with_picture("Well?", "https://example.org/x.png")))
    assert told.status_code == 400
    assert "not allowed here" in told.json()["error"]["message"]
