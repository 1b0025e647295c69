"""Where the bytes of pictures and files live: each kept once, by digest. Messages contain references only."""

from __future__ import annotations

import asyncio
import base64
import hashlib
from collections.abc import Awaitable, Callable

from nlsom.errors import MediaError
from nlsom.media.limits import DEFAULT_LIMITS, GateLimits
from nlsom.media.source import Source, is_url, name_of, open_source
from nlsom.message import File, Image
from nlsom.recent import Recent

Fetch = Callable[[str, GateLimits], Awaitable[bytes]]
"""Fetches the bytes of a URL within limits: `nlsom.media.fetch.fetch`, or a replacement."""

CACHE_BYTES = 64 * 2**20
_AT_ONCE = 4
"""Pictures that a store decodes at the same time; one of 50 megapixels takes some 300 MB of memory."""


class MediaStore:
    """Pictures and files in memory, by SHA-256, for as long as the store lives. Safe between threads.

    For more pictures than fit into memory, and for those that a trace refers to, use `FolderStore`. A server
    keeps its memory flat by a store for each request.
    """

    def __init__(self, *, fetch: Fetch | None = None, cache_bytes: int = CACHE_BYTES) -> None:
        """Makes an empty store.

        Args:
            fetch: Fetches the bytes of a URL; None for `nlsom.media.fetch.fetch`.
            cache_bytes: Bytes of memory for `data:` URLs, which are made again when they are needed.
        """
        self._fetch = fetch
        self._held: dict[str, bytes] = {}
        self._urls = Recent[str, str](cache_bytes, len)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._decoding = asyncio.Semaphore(_AT_ONCE)
        self._encoding = asyncio.Lock()

    async def add(
        self,
        source: Source,
        *,
        limits: GateLimits = DEFAULT_LIMITS,
        allow_network: bool = True,
        allow_files: bool = True,
    ) -> Image:
        """Passes a picture through the gate, and keeps it.

        Args:
            source: A path, the bytes of a file, a `data:` URL, an http(s) URL, or a picture of Pillow.
            limits: What the gate admits.
            allow_network: Whether URLs may be fetched.
            allow_files: Whether paths may be read; use False for sources from strangers.

        Returns:
            A reference to the picture.

        Raises:
            MediaError: The picture cannot be read or fetched, is damaged, or is beyond the limits.
            ExtraMissing: This kind of picture needs an optional dependency.
        """
        name, fetched = name_of(source), None
        if isinstance(source, str) and is_url(source):
            if not allow_network:
                raise MediaError(f"{name}: fetching pictures from the network is not allowed here")
            fetched = await self._get_url(source, limits)
        self._bind()
        async with self._decoding:
            return await asyncio.to_thread(
                self._add, source if fetched is None else fetched, name, limits, allow_files
            )

    async def keep(self, data: bytes, *, media_type: str, name: str) -> File:
        """Keeps any other file as it is: video, audio, a mesh.

        Args:
            data: Its bytes.
            media_type: Its type, such as `audio/wav`; not checked.
            name: What people call it.
        """
        digest = await asyncio.to_thread(self._hash_and_put, data)
        return File(sha256=digest, media_type=media_type, name=name)

    def get(self, ref: Image | File) -> bytes:
        """The bytes of a picture or file. May block in other stores: on an event loop, await `read`.

        Raises:
            MediaError: It is not in this store, or damaged.
        """
        held = self._peek(ref.sha256)
        if held is None:
            raise missing(ref.sha256, "this store in memory")
        return held

    async def read(self, ref: Image | File) -> bytes:
        """The bytes of a picture or file; never blocks the event loop.

        Raises:
            MediaError: It is not in this store, or damaged.
        """
        held = self._peek(ref.sha256)
        return held if held is not None else await asyncio.to_thread(self.get, ref)

    async def data_url(self, ref: Image | File) -> str:
        """The bytes as a `data:` URL in base64, made once for all who ask.

        Raises:
            MediaError: It is not in this store, or damaged.
        """
        key = f"{ref.media_type} {ref.sha256}"
        url = self._urls.get(key)
        if url is not None:
            return url
        self._bind()
        async with self._encoding:  # many members ask for the same picture at once: one of them makes its URL
            url = self._urls.get(key)
            if url is None:
                url = await asyncio.to_thread(self._encode, ref)
                self._urls.put(key, url)
            return url

    def _peek(self, digest: str) -> bytes | None:
        """The bytes, if they are in memory."""
        return self._held.get(digest)

    def _put(self, digest: str, data: bytes) -> None:
        """Keeps bytes under their digest. Runs in a thread."""
        self._held.setdefault(digest, data)

    def _add(self, source: Source, name: str, limits: GateLimits, allow_files: bool) -> Image:
        from nlsom.media.gate import admit, admit_pixels  # Pillow, only once there is a picture

        opened = open_source(source, limits, allow_files=allow_files)
        image, data = (
            admit(opened, name, limits) if isinstance(opened, bytes) else admit_pixels(opened, name, limits)
        )
        self._put(image.sha256, data)
        return image

    def _hash_and_put(self, data: bytes) -> str:
        digest = hashlib.sha256(data).hexdigest()
        self._put(digest, bytes(data))
        return digest

    def _encode(self, ref: Image | File) -> str:
        return f"data:{ref.media_type};base64,{base64.b64encode(self.get(ref)).decode('ascii')}"

    async def _get_url(self, url: str, limits: GateLimits) -> bytes:
        if self._fetch is not None:
            return await self._fetch(url, limits)
        from nlsom.media.fetch import fetch  # httpx, only once there is a URL

        return await fetch(url, limits)

    def _bind(self) -> None:
        """Makes locks for the current event loop: a store may be used in one after another."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop, self._decoding, self._encoding = loop, asyncio.Semaphore(_AT_ONCE), asyncio.Lock()


def missing(digest: str, where: str) -> MediaError:
    """The error for a reference whose bytes are missing."""
    return MediaError(f"{digest[:12]}: no picture or file of this digest is in {where}; add it again")
