"""Removes file paths, credentials and URLs from error texts before clients see them."""

from __future__ import annotations

import re

_LONGEST = 600
_URL = re.compile(r"\b([a-z][a-z0-9+.-]{1,20})://[^\s'\"<>)]*", re.IGNORECASE)
_SECRET = re.compile(
    r"\b(?:sk|pk|hf|ghp|xox[a-z])[-_][A-Za-z0-9_-]{8,}|\b(bearer|basic)\s+\S{6,}", re.IGNORECASE
)
_PATH = re.compile(r"(?<![\w.<])(?:/[\w.@+~-]+){2,}/?|\b[A-Za-z]:\\[^\s'\"]+|~/[\w./@+-]+")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")


def redact(text: str) -> str:
    """Cuts URLs to their scheme, replaces secrets and file paths by "…", and limits the length.

    For texts that may reveal details of the machine, such as errors and causes of abstentions.
    """
    text = _URL.sub(lambda match: f"{match[1]}://…", text)
    text = _SECRET.sub("…", text)
    text = _PATH.sub("…", text)
    text = _CONTROL.sub(" ", text)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
