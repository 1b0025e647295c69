"""Running async code from a script."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run_sync(work: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine in an event loop of its own and returns what it returns; for scripts.

    Raises:
        RuntimeError: An event loop runs already, as in a notebook; await the coroutine instead.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    work.close()
    raise RuntimeError("an event loop runs here already, as it does in a notebook: `await` this instead")
