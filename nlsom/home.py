"""The one folder for everything that is downloaded; deleting it undoes that."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def home() -> Path:
    """`NLSOM_HOME` if it is set, else `nlsom` in the user's cache folder."""
    if chosen := os.environ.get("NLSOM_HOME"):
        return Path(chosen).expanduser()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "nlsom"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "nlsom"
