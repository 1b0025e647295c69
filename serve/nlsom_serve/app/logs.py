"""Logs: one JSON object a line. Neither secrets nor pictures nor what was asked stand in them."""

from __future__ import annotations

import contextvars
import json
import logging
import sys
from datetime import UTC, datetime

request_id: contextvars.ContextVar[str | None] = contextvars.ContextVar("request_id", default=None)
"""The request in whose course this code runs."""

FIELDS = ("method", "path", "status", "seconds", "key", "mindstorm", "society", "ended")


class JsonLines(logging.Formatter):
    """Writes a record as JSON, with the request's id and the fields given as `extra`."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as a line."""
        told: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if (id := request_id.get()) is not None:
            told["request"] = id
        told |= {name: getattr(record, name) for name in FIELDS if hasattr(record, name)}
        if record.exc_info:
            told["traceback"] = self.formatException(record.exc_info)
        return json.dumps(told, ensure_ascii=False, default=str)


def configure() -> None:
    """Sends the logs of nlsom and uvicorn to standard error as JSON lines."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name in ("nlsom", "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers[:] = [handler]
        logger.setLevel(logging.INFO)
        logger.propagate = False
    logging.getLogger("uvicorn.access").disabled = True  # `guard` writes one line a request itself
