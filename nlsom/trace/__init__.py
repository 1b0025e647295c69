"""The trace: an append-only log from the keys of turns to their outcomes."""

from nlsom.trace.contract import Header, History, Record, Trace, message_of
from nlsom.trace.memory import MemoryTrace
from nlsom.trace.sqlite import SqliteTrace

__all__ = ["Header", "History", "MemoryTrace", "Record", "SqliteTrace", "Trace", "message_of"]
