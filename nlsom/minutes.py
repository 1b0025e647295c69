"""The minutes of a mindstorm: what has been said so far, and which of it a member hears."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from nlsom.message import Message
from nlsom.phase import Hears
from nlsom.structure import Hearing, Structure
from nlsom.turn import SILENCE, Transcript


class Minutes:
    """Messages in the order that counts: by phase, round and declaration, never by arrival."""

    def __init__(self, members: int) -> None:
        self._members = members
        self._said: list[tuple[int, Message]] = []
        self._by_sender: dict[int, list[tuple[int, Message]]] = {}
        self._classes: dict[tuple[Hearing, Hears], Transcript] = {}

    def __iter__(self) -> Iterator[Message]:
        return (message for _, message in self._said)

    def add(self, sender: int, message: Message) -> None:
        """Appends what member number `sender` said."""
        self._by_sender.setdefault(sender, []).append((len(self._said), message))
        self._said.append((sender, message))
        self._classes.clear()

    def of(self, sender: int) -> Sequence[Message]:
        """What a member said, in order."""
        return [message for _, message in self._by_sender.get(sender, ())]

    def labelled(self, label: str) -> list[Message]:
        """All that was said under a label, in order."""
        return [message for _, message in self._said if message.label == label]

    def heard(self, structure: Structure, at: int, hears: Hears) -> tuple[Transcript, tuple[Message, ...]]:
        """What member number `at` hears, and its own words where those do not hold them.

        The transcript is the same object for all who hear the same.
        """
        if hears.scope == "none" or not self._said:
            return SILENCE, ()
        sources = structure.hears(at)
        transcript = self._classes.get((sources, hears))
        if transcript is None:
            messages = _narrow(self._from(sources), hears)
            transcript = Transcript(messages, hears.content) if messages else SILENCE
            self._classes[sources, hears] = transcript
        if at in sources or at not in self._by_sender:
            return transcript, ()
        return transcript, _narrow(self.of(at), hears)

    def _from(self, sources: Hearing) -> Iterable[Message]:
        if isinstance(sources, range):
            if len(sources) == self._members:
                return (message for _, message in self._said)
            return (message for sender, message in self._said if sender in sources)
        several = [said for source in sources for said in self._by_sender.get(source, ())]
        return (message for _, message in sorted(several, key=lambda said: said[0]))


def _narrow(messages: Iterable[Message], hears: Hears) -> tuple[Message, ...]:
    if hears.label is not None:
        messages = (message for message in messages if message.label in hears.label)
    if hears.scope == "all":
        return tuple(messages)
    latest: dict[tuple[str, str], Message] = {}
    for message in messages:
        latest.pop((message.sender, message.label), None)
        latest[message.sender, message.label] = message
    return tuple(latest.values())
