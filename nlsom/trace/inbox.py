"""What the event loop hands to the thread that writes: taken in batches, without waking it for each item."""

from __future__ import annotations

import threading
from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class Inbox(Generic[T]):
    """A queue with one reader, who lets items pile up for a moment unless somebody waits for them.

    Waking a thread for every item would make it fight the event loop for the interpreter's lock.
    """

    def __init__(self, linger: float = 0.005) -> None:
        """Makes an empty one.

        Args:
            linger: Seconds that items nobody waits for may pile up.
        """
        self._items: deque[T] = deque()
        self._linger = linger
        self._bell, self._urgent = threading.Event(), threading.Event()

    def put(self, item: T, *, urgent: bool = False) -> None:
        """Adds an item; `urgent` if somebody waits for it."""
        self._items.append(item)
        if urgent:
            self._urgent.set()
        if not self._bell.is_set():
            self._bell.set()

    def take(self, most: int) -> list[T]:
        """Waits for items, and takes up to so many, in their order."""
        while not self._items:
            self._bell.wait()
            self._bell.clear()
        if len(self._items) < most:
            self._urgent.wait(self._linger)
        self._urgent.clear()
        return [self._items.popleft() for _ in range(min(most, len(self._items)))]
