"""Pictures and files: the gate they come in by, and the store they live in."""

from __future__ import annotations

import base64
import hashlib

from nlsom.message import Image

GATE_VERSION = "1"


class MediaStore:
    """Bytes by their SHA-256, in memory."""

    def __init__(self) -> None:
        self._held: dict[str, bytes] = {}

    def get(self, image: Image) -> bytes:
        """The picture's bytes."""
        return self._held[image.sha256]

    async def data_url(self, image: Image) -> str:
        """The picture as a `data:` URL in base64."""
        return f"data:{image.media_type};base64,{base64.b64encode(self.get(image)).decode('ascii')}"

    def keep(self, data: bytes) -> str:
        """Stores bytes once; returns their SHA-256 (hex)."""
        digest = hashlib.sha256(data).hexdigest()
        self._held.setdefault(digest, data)
        return digest
