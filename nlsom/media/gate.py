"""The gate: from bytes or pixels to a plain JPEG or PNG that any model reads. Blocks: run it in a thread."""

from __future__ import annotations

import hashlib
import importlib
import io
from typing import Any

import PIL.Image
from PIL import UnidentifiedImageError, features

from nlsom.errors import ExtraMissing, MediaError
from nlsom.media.limits import GateLimits
from nlsom.media.pixels import Picture, fit, near_srgb, orientation, to_rgb
from nlsom.media.sniff import Kind, sniff
from nlsom.message import Image

_JPEG_QUALITY = 92
_JPEG_MAX_SIDE = 65_500
_LOSSY_FORMATS = frozenset({"JPEG", "MPO", "WEBP", "AVIF", "HEIF"})
_LOSSY_TIFFS = frozenset({"jpeg", "tiff_jpeg", "webp"})


def admit(data: bytes, name: str, limits: GateLimits) -> tuple[Image, bytes]:
    """Admits a picture file.

    A JPEG (RGB or grey) or PNG (8-bit RGB) that is upright, undamaged, opaque, not animated, in sRGB and
    within `limits.max_side` passes unchanged. Others are decoded and encoded again without metadata: as JPEG
    if the source is lossy, else as PNG. Of several frames the first is used.

    Args:
        data: The file.
        name: What errors call it.
        limits: Limits; those on bytes and pixels are checked before anything is decoded.

    Returns:
        A reference whose `source` is the digest of `data`, and the bytes that it refers to.

    Raises:
        MediaError: It is not a picture, damaged, or beyond the limits.
        ExtraMissing: This kind of picture needs an optional dependency.
    """
    if len(data) > limits.max_bytes:
        raise limits.too_large(name)
    kind = sniff(data, name)
    try:
        picture = _open(data, kind, name)
        _check_pixels(picture.size, name, limits)
        picture.load()
        source = hashlib.sha256(data).hexdigest()
        if _fine(picture, data, kind, limits):
            return _reference(picture, kind, source, source), data
        return _encode(fit(to_rgb(picture), limits.max_side), _lossy(picture, data), source, limits)
    except (MediaError, ExtraMissing):
        raise
    except (PIL.Image.DecompressionBombError, PIL.Image.DecompressionBombWarning) as error:
        raise MediaError(f"{name}: more pixels than the limit of {limits.max_pixels:,}") from error
    except UnidentifiedImageError as error:
        raise MediaError(
            f"{name}: damaged or cut off; it begins like {kind} but its header is not"
        ) from error
    except Exception as error:
        # The boundary to Pillow, whose readers may raise anything over hostile bytes.
        raise MediaError(f"{name}: damaged or cut off; it cannot be decoded as {kind} ({error})") from error


def admit_pixels(picture: Picture, name: str, limits: GateLimits) -> tuple[Image, bytes]:
    """Admits a picture of Pillow; of several frames, the current one is used.

    Returns:
        A reference whose `source` is the digest of the plain pixels, and the bytes that it refers to.

    Raises:
        MediaError: The picture cannot be decoded, or is beyond the limits.
    """
    try:
        _check_pixels(picture.size, name, limits)
        plain = to_rgb(picture)
        source = hashlib.sha256(f"RGB {plain.width}x{plain.height}\n".encode() + plain.tobytes()).hexdigest()
        return _encode(fit(plain, limits.max_side), picture.format in _LOSSY_FORMATS, source, limits)
    except MediaError:
        raise
    except Exception as error:
        # The boundary to Pillow: an opened picture is decoded only now, and may be damaged.
        raise MediaError(f"{name}: cannot be decoded ({error})") from error


def _open(data: bytes, kind: Kind, name: str) -> Picture:
    """Reads the header only."""
    if kind == "HEIF":
        return _open_heif(data)
    if kind == "AVIF" and not ("avif" in features.modules and features.check("avif")):
        raise MediaError(f"{name}: this Pillow cannot read AVIF; pip install --upgrade 'pillow>=11.3'")
    return PIL.Image.open(io.BytesIO(data), formats=[kind])


def _open_heif(data: bytes) -> Picture:
    try:
        heif: Any = importlib.import_module("pillow_heif")
    except ImportError as error:
        raise ExtraMissing("reading a HEIC picture", "heif") from error
    # Does not register a plugin with Pillow, which would affect all other users of Pillow in the process.
    return heif.HeifImageFile(io.BytesIO(data))


def _check_pixels(size: tuple[int, int], name: str, limits: GateLimits) -> None:
    width, height = size
    if width < 1 or height < 1:
        raise MediaError(f"{name}: a picture of {width} x {height} has no pixels")
    if width * height > limits.max_pixels:
        raise MediaError(f"{name}: {width} x {height} is more pixels than the limit of {limits.max_pixels:,}")


def _fine(picture: Picture, data: bytes, kind: Kind, limits: GateLimits) -> bool:
    """Whether the bytes can pass unchanged: any reader shows them as the gate would."""
    if kind == "JPEG":
        plain = picture.mode in ("RGB", "L")
    elif kind == "PNG":
        depth, colour_type = data[24], data[25]
        plain = (depth, colour_type) == (8, 2) and not picture.has_transparency_data
        plain = plain and not getattr(picture, "is_animated", False)
        if plain:
            PIL.Image.open(io.BytesIO(data), formats=[kind]).verify()  # checksums, which decoding skips
    else:
        return False
    small = limits.max_side is None or max(picture.size) <= limits.max_side
    return plain and small and orientation(picture) is None and near_srgb(picture)


def _lossy(picture: Picture, data: bytes) -> bool:
    """Whether the source was compressed with loss; as PNG it would be several times as large."""
    if picture.format == "WEBP":
        lossless = data.find(b"VP8L")
        return lossless < 0 or 0 <= data.find(b"VP8 ") < lossless
    if picture.format == "TIFF":
        return picture.info.get("compression") in _LOSSY_TIFFS
    return picture.format in _LOSSY_FORMATS


def _encode(plain: Picture, lossy: bool, source: str, limits: GateLimits) -> tuple[Image, bytes]:
    jpeg_can = max(plain.size) <= _JPEG_MAX_SIDE
    if not (lossy and jpeg_can):
        data = _save(plain, "PNG")
        if len(data) <= limits.max_bytes or not jpeg_can:
            return _reference(plain, "PNG", hashlib.sha256(data).hexdigest(), source), data
    data = _save(plain, "JPEG", quality=_JPEG_QUALITY)
    return _reference(plain, "JPEG", hashlib.sha256(data).hexdigest(), source), data


def _reference(picture: Picture, kind: str, digest: str, source: str) -> Image:
    width, height = picture.size
    media_type = f"image/{kind.lower()}"
    return Image(sha256=digest, media_type=media_type, width=width, height=height, source=source)


def _save(plain: Picture, kind: str, **options: int) -> bytes:
    plain.info = {}  # no EXIF, which may say where the picture was taken; no profile, as the pixels are sRGB
    file = io.BytesIO()
    plain.save(file, kind, **options)
    return file.getvalue()
