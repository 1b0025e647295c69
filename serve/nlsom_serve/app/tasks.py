"""Makes tasks from what clients send."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from functools import cache

from nlsom.form import Form, JsonForm
from nlsom.message import Image
from nlsom.society import Society
from nlsom.task import Task
from nlsom_serve.app.errors import bad
from nlsom_serve.app.house import House

SCHEMA = "json_schema"


async def make_task(
    house: House,
    society: Society,
    *,
    question: str,
    pictures: Sequence[str],
    choices: Sequence[str] = (),
    context: str = "",
    schema: dict[str, object] | None = None,
) -> Task:
    """Makes a task of the society's kind. Pictures pass the media gate, which accepts no file paths here.

    Raises:
        ApiError: 400: there is no question, or there are too many pictures.
        MediaError: The media gate refuses a picture.
    """
    most = house.settings.pictures
    if len(pictures) > most:
        message = f"{len(pictures)} pictures; at most {most} are allowed"
        raise bad(message, code="too_many_images", param="messages")
    images = await asyncio.gather(*(_admit(house, url) for url in pictures))
    kind = society.task if schema is None else structured(society.task)
    asked = question.strip()
    field = kind.model_fields["question"]
    if not asked and (field.is_required() or not images):
        raise bad("there is no question in the last message", param="messages", code="no_question")
    extra = {} if schema is None else {SCHEMA: schema}
    given = {"question": asked} if asked else {}
    return kind.model_validate(
        {**given, "images": tuple(images), "choices": tuple(choices), "context": context, "extra": extra}
    )


async def _admit(house: House, url: str) -> Image:
    settings = house.settings
    return await house.media.add(url, limits=settings.gate, allow_network=settings.fetch, allow_files=False)


@cache
def structured(kind: type[Task]) -> type[Task]:
    """A kind of task like `kind`, but answered in JSON by the schema in the task's `extra`."""

    class Structured(kind):  # pyright: ignore[reportGeneralTypeIssues]
        def form(self) -> Form:
            schema = self.extra[SCHEMA]
            assert isinstance(schema, dict)
            return JsonForm(json_schema=schema)

        def canonical(self, answer: str) -> str | None:
            """Normalises JSON, so that spacing and the order of keys do not matter when votes are counted."""
            try:
                return json.dumps(json.loads(answer), sort_keys=True, ensure_ascii=False)
            except ValueError:
                return None

        def wording(self, answer: str) -> str:
            """The canonical JSON."""
            return self.canonical(answer) or answer

    return Structured
