"""What a picture may be given as, and how its bytes are read. Blocks: run it in a thread."""

from __future__ import annotations

import base64
import binascii
import os
import stat
import sys
from typing import TYPE_CHECKING, TypeAlias, cast
from urllib.parse import unquote_to_bytes, urlsplit

from nlsom.errors import MediaError
from nlsom.media.limits import GateLimits

if TYPE_CHECKING:
    import PIL.Image

Source: TypeAlias = "str | os.PathLike[str] | bytes | bytearray | memoryview | PIL.Image.Image"
"""A path, the bytes of a file, a `data:` URL, an http(s) URL, or a picture of Pillow."""


def is_url(source: object) -> bool:
    """Whether a source has to be fetched from the network."""
    return isinstance(source, str) and source[:8].lower().startswith(("http://", "https://"))


def name_of(source: Source) -> str:
    """What errors call a source: never a whole `data:` URL, nor secrets in a URL."""
    if isinstance(source, str):
        if source[:5].lower() == "data:":
            return "data: URL"
        if is_url(source):
            return f"picture from {_host(source)}"
        if "://" in source:
            return f"{source.partition('://')[0][:16]} URL"
    if isinstance(source, str | os.PathLike):
        path = os.fspath(source)
        return path if len(path) <= 120 else f"{path[:60]}…{path[-40:]}"
    return "picture"


def open_source(source: Source, limits: GateLimits, *, allow_files: bool = True) -> bytes | PIL.Image.Image:
    """Reads the bytes of a path, a `data:` URL or bytes; returns a picture of Pillow as it is.

    Raises:
        MediaError: The source cannot be read, is too large, or is of a kind that is not allowed.
    """
    name = name_of(source)
    pillow = sys.modules.get("PIL.Image")  # if not imported, `source` cannot be one of its pictures
    if pillow is not None and isinstance(source, pillow.Image):
        return cast("PIL.Image.Image", source)
    if isinstance(source, bytes | bytearray | memoryview):
        if len(source) > limits.max_bytes:
            raise limits.too_large(name)
        return bytes(source)
    if isinstance(source, str):
        if source[:5].lower() == "data:":
            return _read_data_url(source, limits)
        if "://" in source:
            raise MediaError(f"{name}: only http, https and data URLs are read; a file is given by its path")
    if not isinstance(source, str | os.PathLike):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise MediaError(
            f"a picture is a path, bytes, a URL or a picture of Pillow, not a {type(source).__name__}"
            " (of an array, PIL.Image.fromarray makes a picture)"
        )
    if not allow_files:
        raise MediaError("a path is not allowed here; send a data: or an http(s) URL")
    return _read_file(os.fspath(source), name, limits)


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or "nowhere"
    except ValueError:  # an unbalanced bracket; fetching it will say what is wrong
        return "the network"


def _read_file(path: str | bytes, name: str, limits: GateLimits) -> bytes:
    try:
        # Checked before it is opened: opening a FIFO would wait for its writer, and a device might act.
        _check_file(os.stat(path), name, limits)
        # And again when it is open, as it may have been replaced in between.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as file:
            _check_file(os.fstat(file.fileno()), name, limits)
            data = file.read(limits.max_bytes + 1) or b""  # None: nothing there without waiting
    except FileNotFoundError as error:
        raise MediaError(f"{name}: no such file") from error
    except (OSError, ValueError) as error:  # ValueError: a null byte in the path
        reason = error.strerror if isinstance(error, OSError) else error
        raise MediaError(f"{name}: cannot be read ({reason})") from error
    if len(data) > limits.max_bytes:
        raise limits.too_large(name)
    return data


def _check_file(found: os.stat_result, name: str, limits: GateLimits) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise MediaError(f"{name}: a folder; name a file in it")
    if not stat.S_ISREG(found.st_mode):
        raise MediaError(f"{name}: not a regular file")
    if found.st_size > limits.max_bytes:
        raise limits.too_large(name)


def _read_data_url(url: str, limits: GateLimits) -> bytes:
    head, comma, body = url[5:].partition(",")
    if not comma:
        raise MediaError("data: URL: there is no comma before its data")
    if len(body) > 4 * limits.max_bytes:  # a byte takes three characters percent-encoded, and fewer in base64
        raise limits.too_large("data: URL")
    try:
        data = unquote_to_bytes(body)
    except UnicodeError as error:  # half a surrogate pair
        raise MediaError("data: URL: it has characters that no URL has") from error
    if head.lower().replace(" ", "").endswith(";base64"):
        data = b"".join(data.split()).rstrip(b"=")
        try:
            data = base64.b64decode(data + b"=" * (-len(data) % 4), validate=True)
        except binascii.Error as error:
            raise MediaError(f"data: URL: its base64 is not valid ({error})") from error
    if len(data) > limits.max_bytes:
        raise limits.too_large("data: URL")
    return data
