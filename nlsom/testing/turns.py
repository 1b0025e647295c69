"""Turns and messages made by hand, for tests of agents and buses."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from nlsom.form import Form, TextForm
from nlsom.media import DEFAULT_LIMITS, MediaStore
from nlsom.member import Member
from nlsom.message import Image, Message, Said
from nlsom.task import Task, VqaTask
from nlsom.turn import Transcript, Turn


class _Stocked(MediaStore):
    """A store with pictures, which have passed the gate."""

    def __init__(self, pictures: Sequence[bytes]) -> None:
        super().__init__()
        self.images: tuple[Image, ...] = ()
        if pictures:
            from nlsom.media.gate import admit  # Pillow, only once there is a picture

            for data in pictures:
                image, admitted = admit(data, "picture", DEFAULT_LIMITS)
                self._put(image.sha256, admitted)
                self.images += (image,)


def make_turn(
    question: str = "What is in the picture?",
    *,
    ask: str = "Answer the question.",
    pictures: Sequence[bytes] = (),
    choices: Sequence[str] = (),
    task: type[Task] = VqaTask,
    form: Form | None = None,
    heard: Sequence[Message] = (),
    own: Sequence[Message] = (),
    member: Member | None = None,
    phase: str = "answer",
    round: int = 1,
    seed: int = 0,
) -> Turn:
    """A turn with pictures given as bytes; by default it asks for free text."""
    media = _Stocked(pictures)
    about = task(question=question, images=media.images, choices=tuple(choices))
    member = member or Member("ann")
    heard_digests = [message.digest for message in (*heard, *own)]
    told = f"{about.digest} {ask} {form!r} {member.name} {phase} {round} {seed} {heard_digests}"
    return Turn(
        task=about,
        ask=ask,
        form=form or TextForm(),
        heard=Transcript(tuple(heard)),
        own=tuple(own),
        member=member,
        phase=phase,
        round=round,
        seed=seed,
        key=hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest(),
        media=media,
    )


def make_message(text: str, *, sender: str = "bob", label: str = "answer", round: int = 1) -> Message:
    """A message as the scheduler would make it."""
    digest = hashlib.sha256(f"{sender} {label} {round} {text}".encode("utf-8", "surrogatepass")).hexdigest()
    said = Said.words(text)
    return Message(said=said, sender=sender, label=label, phase=label, round=round, digest=digest)
