"""Limits of the media gate."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network

from nlsom.errors import MediaError

GATE_VERSION = "1"
"""Part of the key of every turn; raised whenever the gate begins to make other pixels from the same bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GateLimits:
    """What the media gate admits.

    Attributes:
        max_bytes: Largest file, in bytes.
        max_pixels: Largest picture, width times height; read from the header before anything is decoded.
        max_side: Pixels of the longer side to which larger pictures are scaled down; None keeps their size.
        seconds: Longest time to fetch a picture from the network, redirects included.
        max_redirects: Most redirects to follow.
        allow: Networks that may be fetched from in addition to public addresses. By default none, so this
            machine and private networks are refused.
    """

    max_bytes: int = 20 * 2**20
    max_pixels: int = 50_000_000
    max_side: int | None = None
    seconds: float = 30.0
    max_redirects: int = 5
    allow: tuple[IPv4Network | IPv6Network, ...] = ()

    def __post_init__(self) -> None:
        if self.max_side is not None and self.max_side < 1:
            raise ValueError(f"max_side must be at least 1 pixel, not {self.max_side}")

    def too_large(self, name: str) -> MediaError:
        """The error for a file with too many bytes."""
        return MediaError(f"{name}: larger than the limit of {self.max_bytes:,} bytes; send a smaller file")


DEFAULT_LIMITS = GateLimits()
