"""A picture is given as a path, bytes, a URL or pixels; whatever cannot be read is refused at once."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image as Pillow

from nlsom.errors import MediaError
from nlsom.media import GateLimits, Source
from nlsom.media.source import name_of, open_source

LIMITS = GateLimits(max_bytes=1000)


def refused(source: object, limits: GateLimits = LIMITS, **options: bool) -> str:
    with pytest.raises(MediaError) as error:
        open_source(source, limits, **options)  # pyright: ignore[reportArgumentType]
    return str(error.value)


def test_a_path_may_be_a_text_or_a_path(tmp_path: Path) -> None:
    path = tmp_path / "ein Bild mit Umlaut ä.jpg"
    path.write_bytes(b"abc")
    assert open_source(path, LIMITS) == b"abc"
    assert open_source(str(path), LIMITS) == b"abc"


@pytest.mark.parametrize("made", [bytes, bytearray, memoryview])
def test_bytes_of_any_kind_are_read(made: type) -> None:
    read = open_source(made(b"abc"), LIMITS)
    assert read == b"abc"
    assert isinstance(read, bytes)


def test_a_picture_of_pillow_is_itself() -> None:
    picture = Pillow.new("RGB", (1, 1))
    assert open_source(picture, LIMITS) is picture


def test_a_missing_file_is_named() -> None:
    assert refused("no/such/cat.jpg") == "no/such/cat.jpg: no such file"


def test_a_folder_is_refused(tmp_path: Path) -> None:
    assert "a folder" in refused(tmp_path)


def test_a_fifo_is_refused_without_waiting_for_its_writer(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    assert "not a regular file" in refused(tmp_path / "fifo")


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/random", "/dev/null"])
def test_a_device_is_refused(device: str) -> None:
    assert "not a regular file" in refused(device)


def test_a_link_is_followed_to_a_file_only(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"abc")
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "zero").symlink_to("/dev/zero")
    (tmp_path / "loop").symlink_to("loop")
    assert open_source(tmp_path / "link", LIMITS) == b"abc"
    assert "not a regular file" in refused(tmp_path / "zero")
    assert "cannot be read" in refused(tmp_path / "loop")


@pytest.mark.parametrize("path", ["a\0b", "x" * 5000])
def test_an_impossible_path_is_refused_in_few_words(path: str) -> None:
    assert len(refused(path)) < 200


def test_a_file_too_large_is_refused_by_its_size(tmp_path: Path) -> None:
    with open(tmp_path / "big", "wb") as file:
        file.truncate(10**12)
    assert "limit of 1,000 bytes" in refused(tmp_path / "big")
    assert "limit of 1,000 bytes" in refused(bytes(1001))
    assert open_source(bytes(1000), LIMITS) == bytes(1000)


@given(st.binary(max_size=300), st.booleans())
def test_a_data_url_in_base64_gives_its_bytes(data: bytes, padded: bool) -> None:
    body = base64.b64encode(data).decode()
    body = body if padded else body.rstrip("=")
    for head in ("data:image/jpeg;base64,", "data:;base64,", "DATA:text/plain;charset=utf-8;BASE64,"):
        assert open_source(head + body, LIMITS) == data
    assert open_source("data:;base64," + body.replace("+", "%2B").replace("/", "%2F"), LIMITS) == data
    assert open_source("data:;base64," + "\n".join(body), LIMITS) == data


@given(st.binary(max_size=300))
def test_a_percent_encoded_data_url_gives_its_bytes(data: bytes) -> None:
    assert open_source("data:image/gif," + "".join(f"%{byte:02x}" for byte in data), LIMITS) == data


@pytest.mark.parametrize("body", ["a", "!!!!", "ab=cd", "äöü="])
def test_base64_that_is_none_is_refused(body: str) -> None:
    assert "base64 is not valid" in refused("data:image/png;base64," + body)


def test_half_a_surrogate_pair_in_a_data_url_is_refused():
    assert "no URL has" in refused("data:image/png;base64,\ud800")


def test_a_data_url_without_a_comma_is_refused() -> None:
    assert "comma" in refused("data:image/png;base64")


@pytest.mark.parametrize(
    "url", ["data:," + "a" * 1001, "data:," + "a" * 10_000, "data:;base64," + "AAAA" * 400]
)
def test_a_data_url_too_large_is_refused(url: str) -> None:
    message = refused(url)
    assert "limit of 1,000 bytes" in message
    assert len(message) < 200


@pytest.mark.parametrize("url", ["ftp://host/cat.jpg", "file:///etc/passwd", "s3://bucket/cat.jpg"])
def test_other_urls_are_refused(url: str) -> None:
    assert "only http, https and data" in refused(url)


@pytest.mark.parametrize("source", [None, 7, ["cat.jpg"], object()])
def test_what_is_no_source_is_refused_with_its_type(source: object) -> None:
    assert type(source).__name__ in refused(source)


def test_where_strangers_ask_no_path_is_read(tmp_path: Path) -> None:
    (tmp_path / "cat.jpg").write_bytes(b"abc")
    for path in (tmp_path / "cat.jpg", str(tmp_path / "cat.jpg"), "no/such/file"):
        assert (
            refused(path, allow_files=False) == "a path is not allowed here; send a data: or an http(s) URL"
        )
    assert open_source("data:,abc", LIMITS, allow_files=False) == b"abc"
    assert open_source(b"abc", LIMITS, allow_files=False) == b"abc"


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("cat.jpg", "cat.jpg"),
        (b"abc", "picture"),
        ("data:image/png;base64,secret", "data: URL"),
        ("https://user:secret@pictures.example:8443/secret?key=secret", "picture from pictures.example"),
        ("http://[", "picture from the network"),
        ("ftp://secret", "ftp URL"),
        (Pillow.new("RGB", (1, 1)), "picture"),
    ],
)
def test_errors_call_a_source_by_a_name_without_secrets(source: Source, name: str) -> None:
    assert name_of(source) == name
