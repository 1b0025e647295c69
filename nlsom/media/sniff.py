"""The kind of a file by its first bytes; extensions and declared types are not trusted."""

from __future__ import annotations

from typing import Literal

from nlsom.errors import MediaError

Kind = Literal["JPEG", "PNG", "GIF", "WEBP", "BMP", "TIFF", "AVIF", "HEIF"]

_ACCEPTED = "JPEG, PNG, GIF, WebP, BMP, TIFF, AVIF and HEIC"
_MAGIC: tuple[tuple[bytes, Kind], ...] = (
    (b"\xff\xd8\xff", "JPEG"),
    (b"\x89PNG\r\n\x1a\n", "PNG"),
    (b"GIF87a", "GIF"),
    (b"GIF89a", "GIF"),
    (b"II*\x00", "TIFF"),
    (b"MM\x00*", "TIFF"),
    (b"II+\x00", "TIFF"),
    (b"MM\x00+", "TIFF"),
)
_OTHERS: tuple[tuple[bytes, str], ...] = (
    (b"%PDF", "a PDF document; save the page as PNG first"),
    (b"%!PS", "a PostScript document; save the page as PNG first"),
    (b"PK\x03\x04", "a ZIP archive or an office document"),
    (b"\x1f\x8b", "gzip-compressed"),
    (b"\xff\x0a", "a JPEG XL picture; save it as JPEG or PNG first"),
    (b"\x00\x00\x00\x0cJXL ", "a JPEG XL picture; save it as JPEG or PNG first"),
    (b"\x00\x00\x00\x0cjP  ", "a JPEG 2000 picture; save it as JPEG or PNG first"),
    (b"\x00\x00\x01\x00", "an icon; save it as PNG first"),
    (b"\x1aE\xdf\xa3", "a video"),
    (b"version https://git-lfs", "a pointer of Git LFS; run `git lfs pull` to get the picture itself"),
)
_HEIF_BRANDS = frozenset({b"heic", b"heix", b"hevc", b"hevx", b"heim", b"heis", b"mif1", b"msf1"})
_AVIF_BRANDS = frozenset({b"avif", b"avis"})
_BMP_HEADERS = frozenset({12, 16, 40, 52, 56, 64, 108, 124})


def sniff(data: bytes, name: str) -> Kind:
    """Tells the kind of picture by its first bytes.

    Args:
        data: The whole file.
        name: What errors call it.

    Raises:
        MediaError: It is not a kind of picture that is admitted; the message says what it is.
    """
    for magic, kind in _MAGIC:
        if data.startswith(magic):
            return kind
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "WEBP"
    if data[:2] == b"BM" and int.from_bytes(data[14:18], "little") in _BMP_HEADERS:
        return "BMP"
    if data[4:8] == b"ftyp":
        brands = _brands(data)
        if brands & _AVIF_BRANDS:
            return "AVIF"
        if brands & _HEIF_BRANDS:
            return "HEIF"
    raise MediaError(f"{name}: this is {_describe(data)}. Pictures may be {_ACCEPTED}.")


def _brands(data: bytes) -> set[bytes]:
    """Major and compatible brands of an ISO media file."""
    end = min(int.from_bytes(data[:4], "big"), len(data), 256)
    return {data[8:12], *(data[at : at + 4] for at in range(16, end, 4))}


def _describe(data: bytes) -> str:
    if not data:
        return "empty (0 bytes)"
    for magic, what in _OTHERS:
        if data.startswith(magic):
            return what
    if data[4:8] == b"ftyp":
        return "a video"
    head = data[:1024].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if b"<svg" in head:
        return "an SVG drawing; save it as PNG first"
    if head.startswith((b"<!doctype html", b"<html")):
        return "a web page, not a picture"
    if all(byte >= 32 or byte in b"\t\r\n\f\x1b" for byte in data[:1024]):
        return "text, not a picture"
    return f"no picture of a known kind (its first bytes are {data[:8].hex(' ')})"
