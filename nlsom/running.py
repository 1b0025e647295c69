"""The one bridge from scripts without an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run_sync(work: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine to its end in an event loop of its own; for scripts. In a notebook, await it.

    Raises:
        RuntimeError: An event loop runs here already; await the coroutine instead.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    work.close()
    raise RuntimeError("an event loop runs here already, as it does in a notebook: `await` this instead")
