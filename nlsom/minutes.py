"""The minutes of a mindstorm: what has been said so far, and what of it a member hears."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence

from nlsom.message import Message
from nlsom.phase import Hears
from nlsom.structure import Hearing, Structure
from nlsom.turn import Transcript


class Minutes:
    """All messages, ordered by phase, round and declaration of members, never by arrival."""

    def __init__(self, members: int) -> None:
        self._members = members
        # One per mindstorm: a transcript keeps what is derived from it, such as the head of a prompt.
        self._silence = Transcript()
        self._said: list[Message] = []
        self._by_sender: dict[int, list[int]] = {}
        self._by_label: dict[str, list[Message]] = {}
        self._classes: dict[object, tuple[Hearing, Container[int], Transcript]] = {}

    def __iter__(self) -> Iterator[Message]:
        return iter(self._said)

    def add(self, sender: int, message: Message) -> None:
        """Appends a message of the member at place `sender`."""
        self._by_sender.setdefault(sender, []).append(len(self._said))
        self._by_label.setdefault(message.label, []).append(message)
        self._said.append(message)
        self._classes.clear()

    def of(self, sender: int) -> Sequence[Message]:
        """What the member at place `sender` said, in order."""
        return [self._said[place] for place in self._by_sender.get(sender, ())]

    def labelled(self, label: str) -> Sequence[Message]:
        """All that was said under a label, in order."""
        return self._by_label.get(label, [])

    def heard(self, structure: Structure, at: int, hears: Hears) -> tuple[Transcript, tuple[Message, ...]]:
        """What the member at place `at` hears.

        Returns:
            The transcript, one object for all who hear the same; and the member's own messages, if the
            transcript does not contain them.
        """
        if hears.scope == "none" or not self._said:
            return self._silence, ()
        sources = structure.hears(at)
        # Members who hear the same share one tuple. Comparing it by identity saves hashing thousands of
        # places for each member; the cache holds the tuple, so that its identity cannot pass to another.
        key = (sources if isinstance(sources, range) else id(sources), id(hears))
        found = self._classes.get(key)
        if found is None:
            messages = _narrow(self._from(sources), hears)
            transcript = Transcript(messages, hears.content) if messages else self._silence
            among = sources if isinstance(sources, range) else frozenset(sources)
            found = self._classes[key] = (sources, among, transcript)
        _, among, transcript = found
        if at in among or at not in self._by_sender:
            return transcript, ()
        return transcript, _narrow(self.of(at), hears)

    def _from(self, sources: Hearing) -> Iterable[Message]:
        if len(sources) == self._members:
            return self._said
        several = [place for source in sources for place in self._by_sender.get(source, ())]
        return (self._said[place] for place in sorted(several))


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
