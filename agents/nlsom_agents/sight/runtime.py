"""The runtime that the vision experts see with: models compiled once, worker threads, and a memory."""

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
"""Where the weights are that come with the package."""


@cache
def digest_of(weights: str) -> str:
    """First twelve hex digits of the SHA-256 of a shipped file, for the identity of an agent."""
    return hashlib.sha256((FOLDER / weights).read_bytes()).hexdigest()[:12]


def pixels(data: bytes) -> Pixels:
    """Decodes a picture into RGB, shape (height, width, 3), upright.

    Raises:
        MediaError: Pillow cannot read the bytes as a picture.
    """
    try:
        with Picture.open(io.BytesIO(data)) as picture:
            return np.asarray(ImageOps.exif_transpose(picture).convert("RGB"))
    except (OSError, SyntaxError, ValueError, Picture.DecompressionBombError) as error:
        raise MediaError(f"a vision expert cannot decode the picture: {error}") from error


class Sight:
    """Runs vision models in a few worker threads and remembers what it saw.

    Experts may share one (`Detect(sight=sight)`); an expert that is given none opens and closes its own.
    Nothing is loaded and no thread is started before the first look; after `close` the next look starts
    again, so a society can be opened twice.

    Args:
        at_once: How many looks run at the same time, over all who share this.
        remembered: How many looks are remembered, the least recently used forgotten first.
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
        """Ends the worker threads, after the look that each is at; what was seen stays remembered."""
        pool, self._pool = self._pool, None
        if pool is not None:
            await asyncio.to_thread(pool.shutdown, cancel_futures=True)

    async def look(self, media: MediaStore, image: Image, name: str, see: Callable[[Pixels], T]) -> T:
        """Looks at a picture in a worker thread, once for each name and picture.

        Whoever asks while a look is under way waits for it. Who asks may be cancelled; the look goes on for
        the others. A look that failed is not remembered.

        Args:
            media: Where the picture's bytes are.
            image: The picture.
            name: Of what is looked for; equal names have to mean equal functions.
            see: What is done with the pixels.
        """
        key = (name, image.sha256)
        under_way = self._looks.get(key)
        if under_way is None or under_way.cancelled() or (under_way.done() and under_way.exception()):
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self._at_once, thread_name_prefix="nlsom-sight")
            under_way = self._looks[key] = self._pool.submit(lambda: see(pixels(media.get(image))))
        self._looks.move_to_end(key)
        while len(self._looks) > self._remembered:
            self._looks.popitem(last=False)
        return cast("T", await asyncio.shield(asyncio.wrap_future(under_way)))

    def infer(self, weights: str, planes: Floats) -> list[Floats]:
        """Runs a shipped ONNX model; called from a worker thread.

        Args:
            weights: Name of the file.
            planes: The input, as the model wants it.

        Returns:
            The model's outputs in its own order.
        """
        with self._compiling:
            if weights not in self._models:
                self._models[weights] = compiled(FOLDER / weights, "looking at pictures")
        # A request of its own: a compiled model may be shared between threads, a request may not.
        request = self._models[weights].create_infer_request()
        request.infer([planes])
        return [np.array(output.data, dtype=np.float32) for output in request.output_tensors]
