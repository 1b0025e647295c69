"""The runtime of the vision experts: compiled models, worker threads, and a cache of results."""

from __future__ import annotations

import asyncio
import hashlib
import io
import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, Self, TypeVar, cast

import numpy as np
import numpy.typing as npt
from PIL import Image as Picture
from PIL import ImageOps

from nlsom.errors import MediaError
from nlsom.media import MediaStore
from nlsom.message import Image
from nlsom_agents.inference import compiled

T = TypeVar("T")
Pixels = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float32]

FOLDER = Path(__file__).parents[1] / "weights"
"""The folder of the shipped weights."""


@cache
def digest_of(weights: str) -> str:
    """The first 12 hex digits of the SHA-256 of shipped weights, for an agent's identity."""
    return hashlib.sha256((FOLDER / weights).read_bytes()).hexdigest()[:12]


def pixels(data: bytes) -> Pixels:
    """Decodes a picture to RGB, shape (height, width, 3), rotated as its EXIF data says.

    Raises:
        MediaError: Pillow cannot decode it.
    """
    try:
        with Picture.open(io.BytesIO(data)) as picture:
            return np.asarray(ImageOps.exif_transpose(picture).convert("RGB"))
    except (OSError, SyntaxError, ValueError, Picture.DecompressionBombError) as error:
        raise MediaError(f"a vision expert cannot decode the picture: {error}") from error


class Sight:
    """Runs vision models in worker threads and caches the results.

    Experts may share one (`Detect(sight=sight)`); otherwise each has its own. Models are loaded and threads
    started on first use, and again after `close`, so that a society can be opened twice.

    Args:
        at_once: How many looks run concurrently.
        remembered: How many results are cached; the least recently used ones are dropped first.
    """

    def __init__(self, *, at_once: int = 2, remembered: int = 256) -> None:
        self._at_once = at_once
        self._remembered = remembered
        self._looks: OrderedDict[tuple[str, str], Future[Any]] = OrderedDict()
        self._pool: ThreadPoolExecutor | None = None
        self._models: dict[str, Any] = {}
        self._compiling = threading.Lock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Ends the worker threads once their current looks are done; the cache is kept."""
        pool, self._pool = self._pool, None
        if pool is not None:
            await asyncio.to_thread(pool.shutdown, cancel_futures=True)

    async def look(self, media: MediaStore, image: Image, name: str, see: Callable[[Pixels], T]) -> T:
        """Applies a function to a picture in a worker thread, once for each name and picture.

        Concurrent callers share one look, which continues if one of them is cancelled. A look that failed
        is not cached.

        Args:
            media: Where the picture's bytes are stored.
            image: The picture.
            name: Names the function in the cache; different functions need different names.
            see: Computes the result from the pixels.
        """
        key = (name, image.sha256)
        look = self._looks.get(key)
        if look is None or look.cancelled() or (look.done() and look.exception()):
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self._at_once, thread_name_prefix="nlsom-sight")
            look = self._looks[key] = self._pool.submit(lambda: see(pixels(media.get(image))))
        self._looks.move_to_end(key)
        while len(self._looks) > self._remembered:
            self._looks.popitem(last=False)
        return cast("T", await asyncio.shield(asyncio.wrap_future(look)))

    def infer(self, weights: str, planes: Floats) -> list[Floats]:
        """Runs a shipped ONNX model; blocks, so it is called from worker threads.

        Args:
            weights: Name of the file.
            planes: The model's input.

        Returns:
            The model's outputs in order.
        """
        with self._compiling:
            if weights not in self._models:
                self._models[weights] = compiled(FOLDER / weights, "looking at pictures")
        # A new request each time: threads may share a compiled model, but not a request.
        request = self._models[weights].create_infer_request()
        request.infer([planes])
        return [np.array(output.data, dtype=np.float32) for output in request.output_tensors]
