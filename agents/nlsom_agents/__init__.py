"""The agents that come with nlsom: one file an agent, each named by entry point."""

import sys

# On import, openvino sends a record of its use to its makers and starts a thread for it. Where this library
# of theirs cannot be imported it does without; None here says so, before any of our modules imports openvino.
sys.modules.setdefault("openvino_telemetry", None)  # pyright: ignore[reportArgumentType]
