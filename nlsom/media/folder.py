"""A media store on disk: for more pictures than fit into memory, and for resuming and replaying."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import time
from collections.abc import Container
from pathlib import Path

from nlsom.errors import MediaError
from nlsom.media.store import CACHE_BYTES, Fetch, MediaStore, missing
from nlsom.message import File, Image
from nlsom.recent import Recent


class FolderStore(MediaStore):
    """Files in a folder, named by SHA-256. Several processes may share it.

    A file is written under another name and renamed once it is complete, so no reader sees a part of it.
    Bytes are checked against their digest when they are read.
    """

    def __init__(
        self, folder: str | os.PathLike[str], *, fetch: Fetch | None = None, cache_bytes: int = CACHE_BYTES
    ) -> None:
        """Uses a folder, which is made when the first file is kept.

        Args:
            folder: Where the files are.
            fetch: Fetches the bytes of a URL; None for `nlsom.media.fetch.fetch`.
            cache_bytes: Bytes of memory for the files read last, and as much again for their `data:` URLs.
        """
        super().__init__(fetch=fetch, cache_bytes=cache_bytes)
        self._folder = Path(folder)
        self._recent = Recent[str, bytes](cache_bytes, len)

    def get(self, ref: Image | File) -> bytes:
        """The bytes of a picture or file. May block on the disk: call it in a thread, or await `read`.

        Raises:
            MediaError: It is not in this store, or damaged.
        """
        held = self._peek(ref.sha256)
        if held is not None:
            return held
        path = self._path(ref.sha256)
        try:
            data = path.read_bytes()
        except FileNotFoundError as error:
            raise missing(ref.sha256, f"the folder {self._folder}") from error
        except OSError as error:
            raise MediaError(f"{path}: cannot be read ({error.strerror})") from error
        if hashlib.sha256(data).hexdigest() != ref.sha256:
            raise MediaError(
                f"{path}: damaged, its bytes do not match its name; add the picture or file again"
            )
        self._recent.put(ref.sha256, data)
        return data

    def drop_all_but(self, digests: Container[str], *, older_than: float) -> tuple[int, int]:
        """Deletes files that nothing refers to any more. Blocks on the disk: call it in a thread.

        Args:
            digests: Digests of the files to keep.
            older_than: Seconds; files added (also again) within that time are kept too, since something may
                be about to refer to them.

        Returns:
            How many files were deleted, and how many were kept only because they are recent.

        Raises:
            MediaError: A file cannot be deleted.
        """
        dropped = young = 0
        before = time.time() - older_than
        for path in self._folder.glob("??/*"):
            if path.name in digests or not re.fullmatch("[0-9a-f]{64}", path.name):
                continue
            try:
                if path.stat().st_mtime > before:
                    young += 1
                    continue
                path.unlink(missing_ok=True)
            except OSError as error:
                raise MediaError(f"{path}: cannot be dropped ({error.strerror})") from error
            dropped += 1
        return dropped, young

    def _peek(self, digest: str) -> bytes | None:
        return self._recent.get(digest)

    def _put(self, digest: str, data: bytes) -> None:
        path = self._path(digest)
        try:
            if not _holds(path, data):
                _write(path, data)
        except OSError as error:
            raise MediaError(f"{path}: cannot be written ({error.strerror})") from error
        self._recent.put(digest, data)

    def _path(self, digest: str) -> Path:
        """The path of a file. Checks the digest, as a reference may come from an untrusted source."""
        if not re.fullmatch("[0-9a-f]{64}", digest):
            raise MediaError(f"{digest[:80]!r} is not a SHA-256 in lower-case hex")
        return self._folder / digest[:2] / digest


def _holds(path: Path, data: bytes) -> bool:
    """Whether a file is there and undamaged."""
    try:
        os.utime(path)  # It is in use again, so `drop_all_but` should keep it.
        return path.stat().st_size == len(data) and path.read_bytes() == data
    except FileNotFoundError:
        return False


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{secrets.token_hex(8)}.part")
    try:
        with open(part, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())  # or a power cut might leave an empty file
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
