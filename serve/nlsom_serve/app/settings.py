"""Limits that a server sets for its clients."""

from __future__ import annotations

from dataclasses import dataclass

from nlsom.media import GateLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Limits of a server.

    Attributes:
        at_once: Mindstorms that run concurrently.
        queue: Mindstorms that may wait; more are refused with 429.
        body_bytes: Largest request body, in bytes.
        bodies_bytes: Total size of all request bodies in memory, in bytes.
        body_seconds: Time that a client has to send a body.
        pictures: Most pictures per request.
        picture_bytes: Largest picture file, in bytes.
        pixels: Largest picture, in pixels.
        fetch: Whether pictures may be fetched by http(s) URL, from public addresses.
        seconds: Longest mindstorm, in seconds.
        tokens: Most tokens per mindstorm; None leaves it to the society's file.
        choices: Most answers per request (`n`).
        origins: Web origins that may call the server from a browser (CORS); `*` for any.
        hosts: Accepted values of the Host header; empty accepts any.
        heartbeat: Seconds between keep-alive comments in a stream of events.
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
        """The media gate's limits for pictures from clients."""
        return GateLimits(max_bytes=self.picture_bytes, max_pixels=self.pixels, seconds=15.0)
