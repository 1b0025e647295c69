"""A bounded cache."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Recent(Generic[K, V]):
    """Keeps the values that were used last. Safe between threads.

    Args:
        limit: The most that the sizes of all values may add up to.
        size: The size of a value; by default 1, so that `limit` is a number of values.
    """

    def __init__(self, limit: int, size: Callable[[V], int] = lambda _: 1) -> None:
        self._limit, self._size = limit, size
        self._total = 0
        self._held: OrderedDict[K, V] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: K) -> V | None:
        """Returns the value under a key and counts that as a use; None where it is not held."""
        with self._lock:
            value = self._held.get(key)
            if value is not None:
                self._held.move_to_end(key)
            return value

    def put(self, key: K, value: V) -> None:
        """Holds a value, and drops those unused for longest. One larger than the limit is not held."""
        with self._lock:
            if (old := self._held.pop(key, None)) is not None:
                self._total -= self._size(old)
            if (size := self._size(value)) > self._limit:
                return
            self._held[key] = value
            self._total += size
            while self._total > self._limit:
                self._total -= self._size(self._held.popitem(last=False)[1])
