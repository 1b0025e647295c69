"""Turns made by hand, for tests of agents and buses."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from nlsom.form import Form, TextForm
from nlsom.media import MediaStore
from nlsom.member import Member
from nlsom.message import Image, Message, Said
from nlsom.task import Task, VqaTask
from nlsom.turn import Transcript, Turn


def make_turn(
    ask: str = "Answer the question.",
    *,
    question: str = "What is it?",
    images: Sequence[Image] = (),
    choices: Sequence[str] = (),
    task: Task | None = None,
    form: Form | None = None,
    heard: Sequence[Message] = (),
    own: Sequence[Message] = (),
    member: Member | None = None,
    phase: str = "answer",
    round: int = 1,
    seed: int = 0,
    media: MediaStore | None = None,
) -> Turn:
    """A turn; what is not given is made up."""
    task = task or VqaTask(question=question, images=tuple(images), choices=tuple(choices))
    member = member or Member("ann")
    told = f"{task.digest} {ask} {member.name} {phase} {round} {seed} {[m.digest for m in heard]}"
    return Turn(
        task=task,
        ask=ask,
        form=form or TextForm(),
        heard=Transcript(tuple(heard)),
        own=tuple(own),
        member=member,
        phase=phase,
        round=round,
        seed=seed,
        key=hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest(),
        media=media or MediaStore(),
    )


def make_message(text: str, *, sender: str = "bob", label: str = "answer", round: int = 1) -> Message:
    """A message that somebody said."""
    digest = hashlib.sha256(f"{sender} {label} {round} {text}".encode("utf-8", "surrogatepass")).hexdigest()
    return Message(said=Said.words(text), sender=sender, label=label, phase=label, round=round, digest=digest)
