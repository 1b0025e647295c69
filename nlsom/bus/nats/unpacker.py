"""Unpacking: messages become turns again on a worker; see `nlsom.bus.nats.wire`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import TypeAdapter
from pydantic_core import to_json

from nlsom import plugins
from nlsom.form import Form
from nlsom.media import MediaStore
from nlsom.member import Member
from nlsom.message import Message
from nlsom.recent import Recent
from nlsom.task import Task
from nlsom.turn import Transcript, Turn

_FORM: TypeAdapter[Form] = TypeAdapter(Form)


class Needed(Exception):
    """The worker lacks blobs that a turn refers to."""

    def __init__(self, digests: Sequence[str]) -> None:
        self.digests = tuple(digests)
        super().__init__(f"{len(self.digests)} blobs")


class Unpacker:
    """Makes turns from messages of one caller, and keeps the blobs that it was sent.

    Turns that hear the same share one `Transcript`, so the head of their prompts is made only once here too.
    """

    def __init__(self, media: MediaStore) -> None:
        self._media = media
        self._tasks = Recent[str, Task](1_000)
        self._messages = Recent[str, Message](65_000)
        self._heard = Recent[str, Transcript](500)
        self._partly = Recent[str, list[str]](500)
        self._forms = Recent[str, Form](500)

    def take(self, blobs: Mapping[str, Any]) -> None:
        """Keeps blobs."""
        heard: list[tuple[str, Any]] = []
        for digest, (kind, *value) in blobs.items():
            if kind == "task":
                made: type[Task] = plugins.load("tasks", value[0])
                self._tasks.put(digest, made.model_validate_json(to_json(value[1])))
            elif kind == "message":
                self._messages.put(digest, Message.model_validate_json(to_json(value[0])))
            else:
                heard.append((digest, value))
        for digest, (content, digests) in heard:
            messages = {one: self._messages.get(one) for one in digests}
            if missing := [one for one, message in messages.items() if message is None]:
                self._partly.put(digest, missing)
            else:
                whole = tuple(message for one in digests if (message := messages[one]) is not None)
                self._heard.put(digest, Transcript(whole, content))

    def turn(self, row: Sequence[Any], shared: Sequence[Any]) -> Turn:
        """Makes a turn from its row and its shared part.

        Raises:
            Needed: It refers to blobs that are not held here.
        """
        _, key, _, _, (name, role, persona, id), seed, own, _, _ = row
        task_id, heard_id, form, ask, phase, number = shared
        task = self._tasks.get(task_id)
        own_messages = [self._messages.get(digest) for digest in own]
        heard = Transcript((), heard_id) if len(heard_id) < 64 else self._heard.get(heard_id)
        missing = [digest for digest, held in zip(own, own_messages, strict=True) if held is None]
        if task is None:
            missing.append(task_id)
        if heard is None:
            missing += [heard_id, *(self._partly.get(heard_id) or ())]
        if task is None or heard is None or missing:
            raise Needed(missing)
        return Turn(
            task=task,
            ask=ask,
            form=self._form(form),
            heard=heard,
            own=tuple(message for message in own_messages if message is not None),
            member=Member(name, role, persona, id),
            phase=phase,
            round=number,
            seed=seed,
            key=key,
            media=self._media,
        )

    def _form(self, told: Mapping[str, Any]) -> Form:
        key = json.dumps(told)
        form = self._forms.get(key)
        if form is None:
            form = _FORM.validate_json(key)
            self._forms.put(key, form)
        return form
