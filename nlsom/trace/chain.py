"""The hash chain of a mindstorm's records: whoever changes, drops or swaps one breaks it."""

from __future__ import annotations

import hashlib

from nlsom.trace.contract import Record


def first_link(mindstorm: str) -> bytes:
    """The link that a mindstorm's chain begins with."""
    return hashlib.sha256(mindstorm.encode()).digest()


def link(before: bytes, record: Record) -> bytes:
    """The next link of a mindstorm's hash chain: SHA-256 over the link before and the record."""
    parts = (record.kind, record.key, record.member, record.phase, record.label, str(record.round))
    told = "\x1f".join(parts).encode()
    return hashlib.sha256(before + told + b"\x1f" + record.body).digest()
