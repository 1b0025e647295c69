"""The one bridge from scripts without an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run_sync(work: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine to its end in an event loop of its own; for scripts and notebooks' plain cells.

    Raises:
        RuntimeError: An event loop runs here already; await the coroutine instead.
    """
    return asyncio.run(work)
