"""Pictures and files: the gate that admits them, and the store that holds them."""

from nlsom.media.folder import FolderStore
from nlsom.media.limits import DEFAULT_LIMITS, GATE_VERSION, GateLimits
from nlsom.media.source import Source
from nlsom.media.store import Fetch, MediaStore

__all__ = ["DEFAULT_LIMITS", "GATE_VERSION", "Fetch", "FolderStore", "GateLimits", "MediaStore", "Source"]
