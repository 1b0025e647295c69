"""Events: what can be watched of a mindstorm. Observation only; nothing in a society depends on them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, SerializeAsAny

from nlsom.errors import NlsomError, cause_of, words_of
from nlsom.message import Frozen, Message, Usage, whole
from nlsom.task.base import Task
from nlsom.verdict import Abstention, Verdict


class _Event(Frozen):
    mindstorm: str


class Started(_Event):
    """The mindstorm begins, or goes on where an earlier run of it stopped."""

    kind: Literal["started"] = "started"
    society: str
    members: tuple[str, ...]
    task: SerializeAsAny[Task]
    seed: int


class Asked(_Event):
    """A member is asked; not sent for a turn whose outcome is known already."""

    kind: Literal["asked"] = "asked"
    member: str
    phase: str
    label: str
    round: int
    key: str
    ask: str


class Spoke(_Event):
    """A member spoke; `again` says that the words were stored by an earlier run."""

    kind: Literal["spoke"] = "spoke"
    message: Message
    again: bool = False


class Abstained(_Event):
    """A member did not answer, and why."""

    kind: Literal["abstained"] = "abstained"
    abstention: Abstention


class RoundClosed(_Event):
    """A phase is over: how many were asked, and how many of them replied.

    Whom an early end left unasked are not among them; those that it cut off are.
    """

    kind: Literal["round_closed"] = "round_closed"
    phase: str
    round: int
    asked: int
    replied: int
    usage: Usage


class Decided(_Event):
    """The last event of a mindstorm that came to a verdict."""

    kind: Literal["decided"] = "decided"
    verdict: Verdict


class Stopped(_Event):
    """The last event of a mindstorm that did not: an error, or it was cancelled."""

    kind: Literal["stopped"] = "stopped"
    reason: str


def stopped_by(mindstorm: str, error: BaseException) -> Stopped:
    """The last event of a mindstorm that ended with an error; cancelled, where it is no `Exception`."""
    if not isinstance(error, Exception):
        return Stopped(mindstorm=mindstorm, reason="cancelled")
    reason = words_of(error) if isinstance(error, NlsomError) else cause_of(error)
    return Stopped(mindstorm=mindstorm, reason=whole(reason))


class Lagged(_Event):
    """This observer was too slow and missed so many events; the society did not wait for it."""

    kind: Literal["lagged"] = "lagged"
    missed: int


Event = Annotated[
    Started | Asked | Spoke | Abstained | RoundClosed | Decided | Stopped | Lagged,
    Field(discriminator="kind"),
]
