"""Members: the seats of a society."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Member:
    """A seat in a society.

    Attributes:
        name: What others call it; any printable text.
        role: Its role in the society: organizer, leader, expert, critic, …
        persona: Who it should be, in plain words; part of the tail of its prompts.
        id: The name in ASCII letters, digits, `_`, `-` and `.` only; unique; made from `name` by default.
        part: Which share of pictures and evidence it sees (from 0), and how many shares there are; None: all.
    """

    name: str
    role: str = "member"
    persona: str = ""
    id: str = field(default="", compare=False)
    part: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        if not self.id:
            object.__setattr__(self, "id", wire_id(self.name))


def wire_id(name: str) -> str:
    """A name as an identifier in plain ASCII; unchanged if it is one already."""
    if re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", name):
        return name
    stem = re.sub(r"[^A-Za-z0-9_-]+", "_", name).strip("_")[:40]
    return f"{stem or 'member'}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
