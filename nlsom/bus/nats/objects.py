"""Objects too large for a message, or used by many workers: pictures and packs of blobs, by digest."""

from __future__ import annotations

import asyncio
import hashlib
from typing import Any

from nlsom.errors import MediaError, Unavailable, reason_of
from nlsom.media import MediaStore
from nlsom.message import File, Image

_LAST_SECONDS = 2.0
"""How long closing waits for objects that are being fetched."""


class Objects:
    """NATS's object store in JetStream. Names are digests, so an object never changes.

    Args:
        client: A connected client of nats-py.
        bucket: Which bucket.
        keep_seconds: How long an object is kept; whoever needs it longer puts it there again.
    """

    def __init__(self, client: Any, bucket: str, keep_seconds: float) -> None:
        self._client, self._bucket, self._keep = client, bucket, keep_seconds
        self._store: asyncio.Task[Any] | None = None
        self._putting: dict[str, asyncio.Task[None]] = {}
        self._getting: set[asyncio.Task[bytes]] = set()
        self._held: set[str] = set()

    def has(self, ref: Image | File) -> bool:
        """Whether this process has put a picture or file there, or fetched it from there."""
        return ref.sha256 in self._held

    async def put(self, digest: str, data: bytes) -> None:
        """Puts bytes there; only once, even if several ask for it at the same time.

        Raises:
            Unavailable: The server has no JetStream, or no room.
        """
        if digest in self._held:
            return
        task = self._putting.get(digest)
        if task is None:
            task = self._putting[digest] = asyncio.create_task(self._put(digest, data))
            task.add_done_callback(lambda _: self._putting.pop(digest, None))
        await asyncio.shield(task)

    async def fetch(self, ref: Image | File, media: MediaStore) -> None:
        """Fetches a picture or file into a local store, unless it holds it already.

        Raises:
            Unavailable: It is not there, or the server has no JetStream.
        """
        if ref.sha256 in self._held:
            return
        try:
            await media.read(ref)
        except MediaError:  # Not here yet, or damaged.
            data = await self.get(ref.sha256)
            name = ref.name if isinstance(ref, File) else ref.sha256
            await media.keep(data, media_type=ref.media_type, name=name)
        self._held.add(ref.sha256)

    async def get(self, digest: str) -> bytes:
        """Fetches bytes, and checks them against their digest.

        Raises:
            Unavailable: They are not there, or damaged.
        """
        # Shielded from cancellation of the caller: nats-py would leave tasks behind.
        task = asyncio.create_task(self._get(digest))
        self._getting.add(task)
        task.add_done_callback(self._got)
        return await asyncio.shield(task)

    def _got(self, task: asyncio.Task[bytes]) -> None:
        self._getting.discard(task)
        if not task.cancelled():
            task.exception()  # Marks it as seen: there may be nobody who waits any more.

    async def _get(self, digest: str) -> bytes:
        from nats.errors import Error

        try:
            found = await (await self._open()).get(digest)
        except (Error, TimeoutError) as error:
            raise Unavailable(f"object {digest[:12]} cannot be had from NATS: {reason_of(error)}") from error
        data = bytes(found.data or b"")
        if hashlib.sha256(data).hexdigest() != digest:
            raise Unavailable(f"object {digest[:12]} in NATS is damaged")
        return data

    async def close(self) -> None:
        """Cancels what is under way; waits a little for objects that are being fetched."""
        if self._getting:
            await asyncio.wait(self._getting, timeout=_LAST_SECONDS)
        tasks: list[asyncio.Task[Any]] = [
            *self._putting.values(),
            *self._getting,
            *([self._store] if self._store else []),
        ]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _put(self, digest: str, data: bytes) -> None:
        from nats.errors import Error
        from nats.js.errors import NotFoundError

        store = await self._open()
        try:
            try:
                await store.get_info(digest)
            except NotFoundError:
                await store.put(digest, data)
        except (Error, TimeoutError) as error:
            raise Unavailable(f"{len(data)} bytes cannot be put into NATS: {reason_of(error)}") from error
        self._held.add(digest)

    async def _open(self) -> Any:
        if self._store is None or (self._store.done() and self._store.exception() is not None):
            self._store = asyncio.create_task(self._make())
        return await asyncio.shield(self._store)

    async def _make(self) -> Any:
        from nats.errors import Error
        from nats.js.api import ObjectStoreConfig
        from nats.js.errors import BucketNotFoundError, NotFoundError

        stream = self._client.jetstream()
        try:
            try:
                return await stream.object_store(self._bucket)
            except (BucketNotFoundError, NotFoundError):
                config = ObjectStoreConfig(bucket=self._bucket, ttl=self._keep)
                return await stream.create_object_store(self._bucket, config)
        except (Error, TimeoutError) as error:
            raise Unavailable(
                f"NATS keeps no objects here ({reason_of(error)}); pictures and long talks need JetStream: "
                "start the server with -js"
            ) from error
