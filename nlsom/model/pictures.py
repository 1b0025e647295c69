"""Pictures on their way to a server: encoded once each, not once a request."""

from __future__ import annotations

import base64

from nlsom.media import MediaStore
from nlsom.message import Image
from nlsom.model.wire import picture_part

_MOST_CACHED = 64 * 1024 * 1024


class Pictures:
    """Pictures as parts of a message, as JSON; the oldest are forgotten when they grow too many."""

    def __init__(self) -> None:
        self._made: dict[str, str] = {}
        self._size = 0

    async def part(self, image: Image, media: MediaStore) -> str:
        """A picture as `nlsom.model.wire.picture_part` makes it."""
        made = self._made.get(image.sha256)
        if made is None:
            encoded = base64.b64encode(media.get(image)).decode("ascii")
            made = self._made[image.sha256] = picture_part(image.media_type, encoded)
            self._size += len(made)
            while self._size > _MOST_CACHED and len(self._made) > 1:
                self._size -= len(self._made.pop(next(iter(self._made))))
        return made
