"""What a server lets its clients do."""

from __future__ import annotations

from dataclasses import dataclass

from nlsom.media import GateLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The bounds of a server.

    Attributes:
        at_once: Mindstorms that run at the same time.
        queue: Mindstorms that wait for their turn; more are refused with 429.
        body_bytes: Largest body of a request.
        bodies_bytes: All bodies that are being received or worked on, together.
        body_seconds: How long a client may take to send a body.
        pictures: Most pictures of a request.
        picture_bytes: Largest picture, as a file.
        pixels: Largest picture, in pixels.
        fetch: Whether pictures may be fetched by http(s) URL, from public addresses.
        seconds: Longest mindstorm.
        tokens: Most tokens of a mindstorm; None leaves it to the society's file.
        choices: Most answers to one request (`n`).
        origins: Web pages that may call the server from a browser (CORS); `*` for any.
        hosts: Values of the Host header that are answered; empty answers any.
        heartbeat: Seconds between signs of life in a stream of events.
    """

    at_once: int = 16
    queue: int = 64
    body_bytes: int = 32 * 2**20
    bodies_bytes: int = 256 * 2**20
    body_seconds: float = 30.0
    pictures: int = 8
    picture_bytes: int = 20 * 2**20
    pixels: int = 50_000_000
    fetch: bool = False
    seconds: float = 600.0
    tokens: int | None = None
    choices: int = 8
    origins: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    heartbeat: float = 10.0

    @property
    def gate(self) -> GateLimits:
        """What the media gate lets in from a client."""
        return GateLimits(max_bytes=self.picture_bytes, max_pixels=self.pixels, seconds=15.0)
