"""Pictures and files: the gate they come in by, and the store they live in."""

from __future__ import annotations

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

    def keep(self, data: bytes) -> str:
        """Stores bytes once; returns their SHA-256 (hex)."""
        digest = hashlib.sha256(data).hexdigest()
        self._held.setdefault(digest, data)
        return digest
