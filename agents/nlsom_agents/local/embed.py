"""Sentence vectors by all-MiniLM-L6-v2 (int8) on the CPU, for retrieval and for telling answers apart."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nlsom.errors import ExtraMissing
from nlsom_agents.inference import compiled
from nlsom_agents.local import catalog

if TYPE_CHECKING:
    from numpy.typing import NDArray

MODEL = "minilm-l6-v2"
WIDTH = 384
LONGEST = 256  # tokens; the model was trained on sentences and short paragraphs
AT_ONCE = 32


class Sentences:
    """Turns texts into vectors. Loaded when first asked; calls take turns, in worker threads."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._encode: Callable[[list[str]], NDArray[np.float32]] | None = None

    def missing(self) -> str | None:
        """The name to pull (`nlsom_agents.local.fetch.pull`) before texts can be embedded, if any.

        Raises:
            ExtraMissing: `nlsom[local]` is not installed.
        """
        if not all(map(find_spec, ("openvino", "tokenizers"))):
            raise ExtraMissing("sentence vectors", "local")
        return catalog.missing(MODEL)

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of length 1, shape (len(texts), 384): a dot product is a cosine. Longer texts are cut.

        Raises:
            ModelUnavailable: The model's file is not in the cache.
            ExtraMissing: `nlsom[local]` is not installed.
        """
        return await asyncio.to_thread(self.vectors, texts)

    def vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The same, for a thread that may wait."""
        texts = list(texts)
        with self._turn:
            if self._encode is None:
                self._encode = _load(catalog.present(MODEL))
            groups = [self._encode(texts[at : at + AT_ONCE]) for at in range(0, len(texts), AT_ONCE)]
        return np.concatenate(groups) if groups else np.zeros((0, WIDTH), np.float32)


def _load(file: Path) -> Callable[[list[str]], NDArray[np.float32]]:
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise ExtraMissing("sentence vectors", "local") from error

    tokenizer: Any = Tokenizer.from_str(
        files("nlsom_agents").joinpath("weights", "minilm-tokenizer.json").read_text("utf-8")
    )
    tokenizer.enable_truncation(LONGEST)
    tokenizer.enable_padding()
    model = compiled(file, "sentence vectors")

    def encode(texts: list[str]) -> NDArray[np.float32]:
        encoded = tokenizer.encode_batch([text.encode(errors="replace").decode() for text in texts])
        ids = np.array([one.ids for one in encoded], np.int64)
        mask = np.array([one.attention_mask for one in encoded], np.int64)
        inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        hidden: NDArray[np.float32] = model({port.any_name: inputs[port.any_name] for port in model.inputs})[
            0
        ]
        mean: NDArray[np.float64] = (hidden * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
        return (mean / np.linalg.norm(mean, axis=1, keepdims=True)).astype(np.float32)

    return encode
