"""OpenVINO, as everything in this process comes to it."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np

from nlsom.errors import ExtraMissing, ModelUnavailable

_FIRST = threading.Lock()


def openvino_for(what: str) -> Any:
    """OpenVINO, once it has met NumPy in one thread alone.

    When two threads use them together for the first time, its binding fills a static that one of them guards
    while it waits for the interpreter's lock, which the other holds while it waits for the guard: both hang
    for ever, and with them every other thread.

    Args:
        what: What it is for, in the words of an error.

    Raises:
        ExtraMissing: OpenVINO is not installed.
    """
    with _FIRST:
        try:
            import openvino
        except ModuleNotFoundError as error:
            raise ExtraMissing(what, "local") from error
        assert openvino.Tensor(np.zeros(1, np.float32)).data.size == 1
        return openvino


def compiled(file: Path, what: str) -> Any:
    """A model in ONNX, compiled for this machine's CPU.

    Raises:
        ExtraMissing: OpenVINO is not installed.
        ModelUnavailable: The file cannot be loaded.
    """
    openvino = openvino_for(what)
    try:
        return openvino.Core().compile_model(file, "CPU", {"PERFORMANCE_HINT": "LATENCY"})
    except RuntimeError as error:
        raise ModelUnavailable(f"the weights {file.name} cannot be loaded: {error}") from error
