"""Loads OpenVINO safely, and compiles models with it."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np

from nlsom.errors import ExtraMissing, ModelUnavailable

_FIRST = threading.Lock()


def openvino_for(what: str) -> Any:
    """Imports OpenVINO, and makes its first use of NumPy in one thread alone.

    If two threads make that first use, they deadlock: one holds the guard of a static variable in OpenVINO's
    binding and waits for the GIL, the other holds the GIL and waits for the guard.

    Args:
        what: What it is needed for, for the error message.

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
    """Compiles an ONNX model for this machine's CPU.

    Raises:
        ExtraMissing: OpenVINO is not installed.
        ModelUnavailable: The file cannot be loaded.
    """
    openvino = openvino_for(what)
    try:
        return openvino.Core().compile_model(file, "CPU", {"PERFORMANCE_HINT": "LATENCY"})
    except RuntimeError as error:
        raise ModelUnavailable(f"the weights {file.name} cannot be loaded: {error}") from error
