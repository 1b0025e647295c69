"""The agents that come with nlsom, one per file, each registered as an entry point."""

import sys

# On import, openvino sends telemetry and starts a thread for it, unless this library cannot be imported.
# None makes its import fail; set here, before any module of this package imports openvino.
sys.modules.setdefault("openvino_telemetry", None)  # pyright: ignore[reportArgumentType]
