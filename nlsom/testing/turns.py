"""Turns made by hand, for tests of agents."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from nlsom.form import Form, TextForm
from nlsom.media import MediaStore
from nlsom.member import Member
from nlsom.message import Message, Said
from nlsom.task import Task, VqaTask
from nlsom.turn import Transcript, Turn


def make_message(text: str, *, label: str = "answer", sender: str = "organizer", at: int = 1) -> Message:
    """A message as the scheduler would have stamped it, said in round `at`."""
    digest = hashlib.sha256(f"{sender}\n{label}\n{at}\n{text}".encode()).hexdigest()
    return Message(said=Said.words(text), sender=sender, label=label, phase=label, round=at, digest=digest)


async def make_turn(
    question: str = "What is in the picture?",
    *,
    pictures: Sequence[bytes] = (),
    choices: Sequence[str] = (),
    ask: str = "",
    form: Form | None = None,
    heard: Sequence[Message] = (),
    member: Member | None = None,
    phase: str = "answer",
    at: int = 1,
    seed: int = 0,
    task: type[Task] = VqaTask,
) -> Turn:
    """A turn of round `at`. Pictures are given as bytes and let in through the gate.

    Free text is wanted where no form is given.
    """
    media = MediaStore()
    images = [await media.add(data) for data in pictures]
    asked = task(question=question, images=tuple(images), choices=tuple(choices))
    transcript = Transcript(tuple(heard))
    form = form or TextForm()
    told = f"{asked.digest}\n{transcript.digest}\n{ask}\n{form!r}\n{phase}\n{at}\n{seed}"
    return Turn(
        task=asked,
        ask=ask,
        form=form,
        heard=transcript,
        member=member or Member("eyes", role="expert"),
        phase=phase,
        round=at,
        seed=seed,
        key=hashlib.sha256(told.encode()).hexdigest(),
        media=media,
    )
