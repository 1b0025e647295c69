"""Turns made by hand, for tests of agents."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Sequence

from PIL import Image as Picture

from nlsom.form import Form, TextForm
from nlsom.media import MediaStore
from nlsom.member import Member
from nlsom.message import Image, Message, Said
from nlsom.task import Task, VqaTask
from nlsom.turn import Transcript, Turn


def make_message(text: str, *, label: str = "answer", sender: str = "organizer", at: int = 1) -> Message:
    """A message as the scheduler would have stamped it, said in round `at`."""
    digest = hashlib.sha256(f"{sender}\n{label}\n{at}\n{text}".encode()).hexdigest()
    return Message(said=Said.words(text), sender=sender, label=label, phase=label, round=at, digest=digest)


def make_turn(
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
    """A turn of round `at` over pictures given as bytes; free text is wanted where no form is given."""
    media = MediaStore()
    images: list[Image] = []
    for data in pictures:
        with Picture.open(io.BytesIO(data)) as picture:
            width, height = picture.size
            kind = Picture.MIME[picture.format or ""]
        digest = media.keep(data)
        images.append(Image(sha256=digest, media_type=kind, width=width, height=height, source=digest))
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
