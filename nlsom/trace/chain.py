"""The hash chain over a mindstorm's records: changing, dropping or swapping one breaks it."""

from __future__ import annotations

import hashlib

from nlsom.trace.contract import Record


def first_link(mindstorm: str) -> bytes:
    """The first link of a mindstorm's chain."""
    return hashlib.sha256(mindstorm.encode()).digest()


def link(before: bytes, record: Record) -> bytes:
    """The next link of a chain: SHA-256 of the link before and the record."""
    parts = (record.kind, record.key, record.member, record.phase, record.label, str(record.round))
    told = "\x1f".join(parts).encode()
    return hashlib.sha256(before + told + b"\x1f" + record.body).digest()
