"""The message bus: carries turns to agents and events to observers. It decides nothing."""

from nlsom.bus.contract import Bus
from nlsom.bus.memory import MemoryBus

__all__ = ["Bus", "MemoryBus"]
