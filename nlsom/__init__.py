"""Natural-language societies of mind: agents that talk over a bus, in rounds of dialogue.

    import nlsom

    async with nlsom.load("vqa-monarchy") as society:
        verdict = await society.ask("What animal is this?", images=["cat.jpg"])

Each name is imported when it is first used, so `import nlsom` costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nlsom.agent import Agent
    from nlsom.blueprint import Seat, VerdictBy
    from nlsom.bus import Bus, MemoryBus
    from nlsom.config import load
    from nlsom.errors import NlsomError
    from nlsom.event import Event
    from nlsom.form import Form
    from nlsom.media import MediaStore
    from nlsom.member import Member
    from nlsom.message import Ballot, Data, File, Image, Message, Said, Text, Usage
    from nlsom.mindstorm import Mindstorm
    from nlsom.model import Completion, Model, Prompt, Settings
    from nlsom.phase import Ask, Hears, Inline, Limits, Repeat, Until
    from nlsom.running import run_sync
    from nlsom.society import Society
    from nlsom.task import CaptionTask, Task, VqaTask
    from nlsom.trace import MemoryTrace, SqliteTrace, Trace
    from nlsom.turn import Turn
    from nlsom.verdict import Rule, Verdict, Vote

__version__ = "0.1.0"

_HOMES = {
    "nlsom.agent": ("Agent",),
    "nlsom.blueprint": ("Seat", "VerdictBy"),
    "nlsom.bus": ("Bus", "MemoryBus"),
    "nlsom.config": ("load",),
    "nlsom.errors": ("NlsomError",),
    "nlsom.event": ("Event",),
    "nlsom.form": ("Form",),
    "nlsom.media": ("MediaStore",),
    "nlsom.member": ("Member",),
    "nlsom.message": ("Ballot", "Data", "File", "Image", "Message", "Said", "Text", "Usage"),
    "nlsom.mindstorm": ("Mindstorm",),
    "nlsom.model": ("Completion", "Model", "Prompt", "Settings"),
    "nlsom.phase": ("Ask", "Hears", "Inline", "Limits", "Repeat", "Until"),
    "nlsom.running": ("run_sync",),
    "nlsom.society": ("Society",),
    "nlsom.task": ("CaptionTask", "Task", "VqaTask"),
    "nlsom.trace": ("MemoryTrace", "SqliteTrace", "Trace"),
    "nlsom.turn": ("Turn",),
    "nlsom.verdict": ("Rule", "Verdict", "Vote"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Agent",
    "Ask",
    "Ballot",
    "Bus",
    "CaptionTask",
    "Completion",
    "Data",
    "Event",
    "File",
    "Form",
    "Hears",
    "Image",
    "Inline",
    "Limits",
    "MediaStore",
    "Member",
    "MemoryBus",
    "MemoryTrace",
    "Message",
    "Mindstorm",
    "Model",
    "NlsomError",
    "Prompt",
    "Repeat",
    "Rule",
    "Said",
    "Seat",
    "Settings",
    "Society",
    "SqliteTrace",
    "Task",
    "Text",
    "Trace",
    "Turn",
    "Until",
    "Usage",
    "Verdict",
    "VerdictBy",
    "Vote",
    "VqaTask",
    "load",
    "run_sync",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'nlsom' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
