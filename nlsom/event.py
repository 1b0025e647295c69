"""Events: what observers see of a mindstorm. Nothing in a society depends on them."""

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
    """The mindstorm begins, or continues where an earlier run of it stopped.

    Attributes:
        society: Name of the society.
        members: Names of the members, in declaration order.
        task: What is asked.
        seed: The run's seed.
    """

    kind: Literal["started"] = "started"
    society: str
    members: tuple[str, ...]
    task: SerializeAsAny[Task]
    seed: int


class Asked(_Event):
    """A member is asked. Not sent for turns whose outcome a trace knows already.

    Attributes:
        member: Name of the member.
        phase: Name of the phase.
        label: What the phase calls its messages.
        round: How many times the phase has run, from 1.
        key: Key of the turn, under which a person's answer is given (`nlsom.answers`).
        ask: What the member is asked: the phase's prompt, rendered.
    """

    kind: Literal["asked"] = "asked"
    member: str
    phase: str
    label: str
    round: int
    key: str
    ask: str


class Spoke(_Event):
    """A member spoke; `again` is true if the words come from the trace of an earlier run."""

    kind: Literal["spoke"] = "spoke"
    message: Message
    again: bool = False


class Abstained(_Event):
    """A member did not answer, and why."""

    kind: Literal["abstained"] = "abstained"
    abstention: Abstention


class RoundClosed(_Event):
    """A phase is over.

    Attributes:
        phase: Name of the phase.
        round: How many times it has run, from 1.
        asked: How many members were asked; those cut off by an early end count, those never asked do not.
        replied: How many of them replied.
        usage: Spent by this run of the mindstorm so far.
    """

    kind: Literal["round_closed"] = "round_closed"
    phase: str
    round: int
    asked: int
    replied: int
    usage: Usage


class Decided(_Event):
    """The last event of a mindstorm that reached a verdict."""

    kind: Literal["decided"] = "decided"
    verdict: Verdict


class Stopped(_Event):
    """The last event of a mindstorm that reached none: it failed or was cancelled."""

    kind: Literal["stopped"] = "stopped"
    reason: str


def stopped_by(mindstorm: str, error: BaseException) -> Stopped:
    """The last event of a mindstorm that failed; cancelled, if the error is no `Exception`."""
    if not isinstance(error, Exception):
        return Stopped(mindstorm=mindstorm, reason="cancelled")
    reason = words_of(error) if isinstance(error, NlsomError) else cause_of(error)
    return Stopped(mindstorm=mindstorm, reason=whole(reason))


class Lagged(_Event):
    """This observer was too slow and missed events; the society did not wait for it."""

    kind: Literal["lagged"] = "lagged"
    missed: int


Event = Annotated[
    Started | Asked | Spoke | Abstained | RoundClosed | Decided | Stopped | Lagged,
    Field(discriminator="kind"),
]
"""Any event; `kind` tells which. The last of a mindstorm is a `Decided` or a `Stopped`."""
