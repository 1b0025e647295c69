"""The cache folder of nlsom."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def home() -> Path:
    """The cache folder of nlsom: `NLSOM_HOME`, else a folder of the user's cache."""
    if given := os.environ.get("NLSOM_HOME"):
        return Path(given).expanduser().absolute()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "nlsom"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "nlsom"
