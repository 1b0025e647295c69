"""The outcomes of a superstep's turns."""

from __future__ import annotations

from collections.abc import Sequence

from nlsom.event import Abstained, Asked, Spoke
from nlsom.message import Message, Said, digest_of
from nlsom.turn import Turn
from nlsom.underway import Underway
from nlsom.verdict import Abstention
from nlsom.voting import abstained_within


class Outcomes:
    """Keeps who spoke, who abstained and who is still waited for; tells observers of each turn.

    Args:
        storm: The mindstorm.
        label: What the phase calls its messages.
        places: Places of the members who are asked, in declaration order.

    Attributes:
        messages: What was said, by the member's place.
        waiting: Places of the members without an outcome: not spoken, abstained or cancelled.
    """

    def __init__(self, storm: Underway, label: str, places: Sequence[int]) -> None:
        self.messages: dict[int, Message] = {}
        self.waiting = set(places)
        self._storm, self._label, self._places = storm, label, places
        self._abstentions: dict[int, Abstention] = {}

    def asked(self, turn: Turn) -> None:
        """Tells observers that a member is asked."""
        storm = self._storm
        if storm.bus.observed:
            storm.bus.publish(
                Asked(
                    mindstorm=storm.id,
                    member=turn.member.name,
                    phase=turn.phase,
                    label=self._label,
                    round=turn.round,
                    key=turn.key,
                    ask=turn.ask,
                )
            )

    def spoke(self, at: int, turn: Turn, said: Said, body: bytes, *, again: bool) -> None:
        """Makes the message that others hear.

        Args:
            at: The member's place.
            turn: Its turn.
            said: What it said.
            body: The same as JSON, from which the message's digest is made.
            again: Whether it comes from the trace.
        """
        storm = self._storm
        message = Message(
            said=said,
            sender=turn.member.name,
            label=self._label,
            phase=turn.phase,
            round=turn.round,
            digest=digest_of(turn.key, body),
        )
        self.waiting.discard(at)
        self.messages[at] = message
        storm.total.add(said.usage)
        if not again:
            storm.journal.note(message)
        if storm.bus.observed:
            storm.bus.publish(Spoke(mindstorm=storm.id, message=message, again=again))

    def abstained(self, at: int, turn: Turn, cause: str) -> None:
        """Makes the abstention that the verdict lists."""
        storm = self._storm
        abstention = Abstention(member=turn.member.name, phase=turn.phase, round=turn.round, cause=cause)
        self.waiting.discard(at)
        self._abstentions[at] = abstention
        if storm.bus.observed:
            storm.bus.publish(Abstained(mindstorm=storm.id, abstention=abstention))

    def append(self) -> None:
        """Adds messages to the minutes, and abstentions to those of the mindstorm, in declaration order."""
        storm = self._storm
        for at in self._places:
            if (message := self.messages.get(at)) is not None:
                storm.minutes.add(at, message)
                if hasattr(storm.agents[at], "society"):
                    storm.abstained += abstained_within(message)
            elif (abstention := self._abstentions.get(at)) is not None:
                storm.abstained.append(abstention)
