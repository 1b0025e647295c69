"""What a trace holds, as it was when it was said."""

from __future__ import annotations

import hashlib

from nlsom.message import Message, Said
from nlsom.trace import Record
from nlsom.trace.stored import read_stored


def message_of(record: Record) -> Message:
    """The message that a stored reply became.

    Raises:
        TraceError: The reply cannot be read.
    """
    return Message(
        said=read_stored(Said, record.body),
        sender=record.member,
        label=record.label,
        phase=record.phase,
        round=record.round,
        digest=hashlib.sha256(record.key.encode() + record.body).hexdigest(),
    )
