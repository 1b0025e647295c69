"""`nlsom doctor`."""

from __future__ import annotations


def doctor() -> None:
    """Says what is installed."""
