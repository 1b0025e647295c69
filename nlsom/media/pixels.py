"""From any picture of Pillow to plain 8-bit RGB: upright, on white, in sRGB."""

from __future__ import annotations

import io
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from PIL import ExifTags, Image
from PIL import ImageCms as _ImageCms

Picture = Image.Image

ImageCms: Any = _ImageCms  # its types are partly unknown to checkers

_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
_PROFILE_MODES = {"RGB": "RGB", "GRAY": "L", "CMYK": "CMYK"}
_SAME_COLOUR = 12
"""Levels (of 255) by which a profile may change a colour and still count as sRGB: greys of gamma 2.2 do,
Display P3 and Adobe RGB do not."""


def to_rgb(picture: Picture) -> Picture:
    """Makes a decoded picture plain: upright, 8-bit RGB in sRGB, transparent parts white."""
    turn = orientation(picture)
    profile = _profile(picture)
    plain = _on_white(_to_8_bit(picture))
    plain = _to_srgb(plain, profile)
    return plain.transpose(turn) if turn is not None else plain


def orientation(picture: Picture) -> Image.Transpose | None:
    """The rotation that EXIF (or XMP) asks for; None if there is none or it cannot be read."""
    try:
        value: object = picture.getexif().get(ExifTags.Base.Orientation)
    except Exception:  # noqa: BLE001 - Pillow's EXIF reader may raise anything; damaged metadata is ignored
        return None
    return _TURNS.get(value) if isinstance(value, int) else None


def near_srgb(picture: Picture) -> bool:
    """Whether showing the picture without its colour profile makes no visible difference."""
    profile = _profile(picture)
    if profile is None or _space(profile) != picture.mode:
        return True
    if picture.mode == "L":
        probe = Image.frombytes("L", (256, 1), bytes(range(256)))
    else:
        levels = np.stack(np.meshgrid(*[np.linspace(0, 255, 6)] * 3), axis=-1).reshape(1, -1, 3)
        probe = Image.fromarray(levels.astype(np.uint8))
    shown = np.asarray(_to_srgb(probe, profile), dtype=int)
    return bool(np.abs(shown - np.asarray(probe.convert("RGB"), dtype=int)).max() <= _SAME_COLOUR)


def fit(picture: Picture, max_side: int | None) -> Picture:
    """Scales a picture down until its longer side is at most `max_side` pixels."""
    if max_side is None or max(picture.size) <= max_side:
        return picture
    scale = max_side / max(picture.size)
    width, height = (max(1, round(side * scale)) for side in picture.size)
    return picture.resize((width, height), Image.Resampling.LANCZOS, reducing_gap=3.0)


def _to_8_bit(picture: Picture) -> Picture:
    """Scales 16-bit, 32-bit and float samples to 0..255; Pillow's own conversion clips them to white."""
    mode = picture.mode
    if not mode.startswith(("I", "F")):
        return picture
    dtype = np.float32 if mode.startswith("I;16") else np.float64  # 16 bits are exact in a float32
    samples = np.nan_to_num(np.asarray(picture).astype(dtype))
    low, high = _range(mode, picture.format, samples)
    levels = np.clip((samples - low) * (255.0 / (high - low)), 0, 255).round()
    return Image.fromarray(levels.astype(np.uint8))


def _range(mode: str, kind: str | None, samples: NDArray[np.floating]) -> tuple[float, float]:
    """The values of black and white: fixed by the kind of file, else taken from the samples."""
    if mode.startswith("I;16") or kind == "PNG":
        return 0.0, 65535.0
    low, high = float(samples.min()), float(samples.max())
    if low >= 0:
        for white in (1.0, 255.0, 65535.0) if mode == "F" else (255.0, 65535.0):
            if high <= white:
                return 0.0, white
    return low, high if high > low else low + 1.0


def _on_white(picture: Picture) -> Picture:
    """RGB, L or CMYK: palettes resolved, transparency composited on white."""
    if picture.has_transparency_data:
        shown = picture.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", shown.size, "white"), shown).convert("RGB")
    if picture.mode in ("RGB", "L", "CMYK"):
        return picture
    if picture.mode == "LAB":
        return _transform(picture, ImageCms.createProfile("LAB"))
    return picture.convert("L" if picture.mode == "1" else "RGB")


def _profile(picture: Picture) -> Any | None:
    embedded: object = cast("dict[Any, Any]", picture.info).get("icc_profile")
    if not isinstance(embedded, bytes) or not embedded:
        return None
    try:
        return ImageCms.ImageCmsProfile(io.BytesIO(embedded))
    except (OSError, ImportError):
        return None  # A damaged profile, or a Pillow without LittleCMS: colours stay as they are.


def _space(profile: Any) -> str | None:
    """The mode of pictures that a profile is for."""
    return _PROFILE_MODES.get(profile.profile.xcolor_space.strip())


def _to_srgb(picture: Picture, profile: Any | None) -> Picture:
    """RGB in sRGB; a profile that does not fit the picture is ignored."""
    if profile is not None and _space(profile) == picture.mode:
        try:
            return _transform(picture, profile)
        except ImageCms.PyCMSError:
            pass  # A profile without the tables for this direction: colours stay as they are.
    return picture.convert("RGB")


def _transform(picture: Picture, profile: Any) -> Picture:
    return ImageCms.profileToProfile(picture, profile, ImageCms.createProfile("sRGB"), outputMode="RGB")
