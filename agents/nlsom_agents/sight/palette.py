"""Names colours by the nearest of some named samples in CIELAB."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import numpy.typing as npt
from PIL import Image as Picture

from nlsom_agents.sight.runtime import Pixels

# Samples of each colour in sRGB: pure, light, dark, and as it occurs in photographs.
_SAMPLES = {
    "black": "000000 1a1a1a 141a20 201814",
    "grey": "484848 606468 808080 a0a0a0 b8bcc0 787068",
    "white": "ffffff ececec f4efe6 e4e8ee",
    "red": "ff0000 d02020 a81818 8b0000 c83c28 e04040",
    "orange": "ff8c00 f07030 ffa550 e06820 ffb080 d87a3a d4583a",
    "brown": "8b4513 5c3317 3a2414 9a6a42 785540 b0784e 6a4a2c",
    "beige": "d8c0a0 c4a882 ede0c8 b09c80",
    "yellow": "ffff00 f0d020 e8d860 c8b400 ffe680",
    "green": "008000 30a030 80c040 2c4420 6b8e23 00ff00 18381c 4f6a4a 98b890",
    "turquoise": "00c8c8 40e0d0 208080 005a64 a0d8d8 003c44",
    "blue": "0000ff 000080 1e50c0 4080e0 87bfeb 101c50 4a6c98 2c3e60 a8c4e4",
    "purple": "800080 6a3fa0 b080d0 3a1050 9070a8",
    "pink": "ffc0cb ff69b4 e08898 f0a0b0 ff1493",
}
_ALSO = {
    "gray": "grey", "silver": "grey", "gold": "yellow", "golden": "yellow", "tan": "beige", "cream": "beige",
    "navy": "blue", "teal": "turquoise", "aqua": "turquoise", "cyan": "turquoise", "violet": "purple",
    "lavender": "purple", "lilac": "purple", "maroon": "red", "crimson": "red", "magenta": "pink",
    "peach": "orange", "blond": "yellow", "blonde": "yellow",
}  # fmt: skip
NAMES = tuple(_SAMPLES)
SIDE = 96

Box = tuple[float, float, float, float]
Shares = dict[str, float]


@cache
def _samples() -> tuple[npt.NDArray[np.float64], npt.NDArray[np.intp]]:
    """The samples in CIELAB, shape (n, 3), and the index of each one's name in `NAMES`."""
    named = [(at, sample) for at, name in enumerate(NAMES) for sample in _SAMPLES[name].split()]
    rgb = np.array(
        [[int(sample[at : at + 2], 16) for at in (0, 2, 4)] for _, sample in named], dtype=np.uint8
    )
    return lab(rgb), np.array([at for at, _ in named])


def lab(rgb: Pixels) -> npt.NDArray[np.float64]:
    """Converts sRGB bytes, shape (…, 3), to CIELAB under D65 (IEC 61966-2-1 and CIE 15)."""
    share = rgb / 255.0
    linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    matrix = np.array(
        [
            [0.4124564, 0.3575761, 0.1804375],
            [0.2126729, 0.7151522, 0.0721750],
            [0.0193339, 0.1191920, 0.9503041],
        ]
    )
    xyz = linear @ matrix.T / np.array([0.95047, 1.0, 1.08883])
    root = np.where(xyz > (6 / 29) ** 3, np.cbrt(xyz), xyz / (3 * (6 / 29) ** 2) + 4 / 29)
    x, y, z = root[..., 0], root[..., 1], root[..., 2]
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=-1)


def name_pixels(picture: Pixels) -> npt.NDArray[np.intp]:
    """Names the colour of each pixel, after scaling the picture down.

    Args:
        picture: RGB, shape (height, width, 3).

    Returns:
        Indices into `NAMES`, shape (96, 96).
    """
    small = Picture.fromarray(picture).resize((SIDE, SIDE), Picture.Resampling.BOX)
    seen = lab(np.asarray(small))
    samples, names = _samples()
    away = ((seen[:, :, None, :] - samples) ** 2).sum(axis=-1)
    return names[away.argmin(axis=-1)]


def shares(named: npt.NDArray[np.intp], box: Box = (0, 0, 1, 1), *, outside: bool = False) -> Shares:
    """The share of each colour in a part of the picture, largest first; shares below 0.02 are left out.

    Args:
        named: From `name_pixels`.
        box: Left, top, right, bottom, as fractions of width and height.
        outside: Whether to take the part outside the box.
    """
    left, top, right, bottom = (round(edge * SIDE) for edge in box)
    mask = np.zeros(named.shape, dtype=bool)
    mask[top : max(bottom, top + 1), left : max(right, left + 1)] = True
    counts = np.bincount(named[~mask if outside else mask], minlength=len(NAMES))
    parts = counts / max(1, counts.sum())
    return {
        NAMES[int(at)]: round(float(parts[at]), 3)
        for at in (-parts).argsort(kind="stable")
        if parts[at] >= 0.02
    }


def colours_named(text: str) -> tuple[str, ...]:
    """The colours that a text names, by their names in `NAMES`."""
    found = (_ALSO.get(word, word) for word in re.findall(r"[a-z]+", text.casefold()))
    return tuple(dict.fromkeys(word for word in found if word in _SAMPLES))
