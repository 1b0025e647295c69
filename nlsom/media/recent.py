"""A bounded cache."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Generic, TypeVar

T = TypeVar("T", str, bytes)


class Recent(Generic[T]):
    """What was used last, up to `limit` bytes (of ASCII text: characters) together. Safe between threads."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._size = 0
        self._held: OrderedDict[str, T] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: str) -> T | None:
        """The value, which is now the one used last; None where it is not held."""
        with self._lock:
            value = self._held.get(key)
            if value is not None:
                self._held.move_to_end(key)
            return value

    def put(self, key: str, value: T) -> None:
        """Holds a value, and lets go of those that were not used for longest."""
        with self._lock:
            if key in self._held or len(value) > self._limit:
                return
            self._held[key] = value
            self._size += len(value)
            while self._size > self._limit:
                self._size -= len(self._held.popitem(last=False)[1])
