"""The native API: begin, list, watch and cancel mindstorms, and answer turns as a person."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import AfterValidator, StringConstraints
from starlette.responses import JSONResponse

from nlsom import event, plugins
from nlsom.answers import NotOpen
from nlsom.message import Image
from nlsom_serve.app.body import JsonRoute
from nlsom_serve.app.cards import card_of, card_of_run, detail_of, header_of, list_field
from nlsom_serve.app.choices import Asked, read_choices
from nlsom_serve.app.dependencies import TheAccount, TheHouse
from nlsom_serve.app.errors import ApiError, bad, not_found
from nlsom_serve.app.house import House
from nlsom_serve.app.past import beginning, ending, recall
from nlsom_serve.app.replies import MindstormCard, MindstormDetail, MindstormList, Taken, failures
from nlsom_serve.app.run import Run, Seen, until_over
from nlsom_serve.app.shapes import AskedLimits, Choices, Seed, Strict
from nlsom_serve.app.sse import EventStream, frame
from nlsom_serve.app.tasks import make_task
from nlsom_serve.app.wire import event_json

router = APIRouter(prefix="/v1/mindstorms", route_class=JsonRoute, tags=["mindstorms"])


def _hex(digits: int, error: Callable[[], ApiError]) -> AfterValidator:
    """A validator for exactly `digits` lower-case hexadecimal digits."""
    pattern = re.compile(f"[0-9a-f]{{{digits}}}")

    def check(given: str) -> str:
        if not pattern.fullmatch(given):
            raise error()
        return given

    return AfterValidator(check)


_ID_FORMAT = "the id of a mindstorm is 16 hexadecimal digits, such as 00c0ffee00c0ffee"

Id = Annotated[
    str,
    Path(description="Id of a mindstorm: 16 hexadecimal digits."),
    _hex(16, lambda: not_found(f"there is no such mindstorm: {_ID_FORMAT}", code="mindstorm_not_found")),
]
Key = Annotated[
    str,
    Path(description="Key of a turn: 64 hexadecimal digits."),
    _hex(
        64,
        lambda: not_found("there is no such turn: its key is 64 hexadecimal digits", code="turn_not_found"),
    ),
]
Before = Annotated[
    str,
    Query(description="Lists mindstorms begun before this one: the last id of the page before."),
    _hex(16, lambda: bad(f"before: {_ID_FORMAT}", param="before")),
]


class NewMindstorm(Strict):
    """A mindstorm to begin.

    Attributes:
        society: Id of the society.
        question: What is asked.
        images: Pictures: `data:` URLs; http(s) URLs where the server allows it.
        choices: The options of a multiple choice.
        find_choices: Whether to look for options in the question, as in a chat.
        context: What was said before, as plain text.
        seed: The run's seed; the same question with the same seed is the same mindstorm.
        limits: What it may spend.
        wait: Whether to respond only when it is over.
    """

    society: Annotated[str, StringConstraints(max_length=200)]
    question: str = ""
    images: list[str] = []
    choices: Choices = []
    find_choices: bool = False
    context: str = ""
    seed: Seed | None = None
    limits: AskedLimits = AskedLimits()
    wait: bool = False


class PersonsAnswer(Strict):
    """A person's answer to a turn."""

    answer: Annotated[str, StringConstraints(min_length=1)]


@router.post(
    "",
    status_code=202,
    response_model=MindstormCard,
    responses={
        200: {"model": MindstormDetail, "description": "It is over (`wait`)."},
        **failures(400, 401, 404, 408, 413, 415, 429, 500, 503),
    },
)
async def begin(new: NewMindstorm, request: Request, house: TheHouse, account: TheAccount) -> Response:
    """Begins a mindstorm. It continues if the client disconnects, and after a restart of the server."""
    society = house.society(new.society)
    asked = read_choices(new.question) if new.find_choices else Asked(new.question)
    places = house.admit(account)
    try:
        task = await make_task(
            house,
            society,
            question=asked.question,
            pictures=new.images,
            choices=new.choices or asked.choices,
            context=new.context,
        )
        limits = new.limits.within(society.limits)
        run = await house.begin(
            places.pop(), account, new.society, task, seed=new.seed, limits=limits, kept=True
        )
    finally:
        for place in places:
            place.drop()
    request.scope["state"]["mindstorm"] = run.id
    if new.wait:
        await until_over([run], request.receive)
        return JSONResponse((await detail_of(house, run.id)).model_dump(mode="json"))
    card = card_of_run(run)
    where = {"Location": f"/v1/mindstorms/{run.id}"}
    return JSONResponse(card.model_dump(mode="json"), 202, headers=where)


@router.get("", responses=failures(400, 401))
async def list_mindstorms(
    house: TheHouse,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    before: Before | None = None,
) -> MindstormList:
    """Lists mindstorms, newest first."""
    headers = await house.trace.latest(limit + 1, before=before)
    cards = [await card_of(house, header) for header in headers[:limit]]
    return MindstormList(data=cards, more=len(headers) > limit)


@router.get("/{id}", responses=failures(400, 401, 404))
async def get_mindstorm(id: Id, house: TheHouse) -> MindstormDetail:
    """Returns a mindstorm: its state, what was said, and its verdict."""
    return await detail_of(house, id)


@router.delete("/{id}", responses=failures(400, 401, 404))
async def cancel(id: Id, house: TheHouse) -> MindstormDetail:
    """Cancels a mindstorm and its requests to models; no effect on one that is over."""
    await house.cancel(id)
    return await detail_of(house, id)


@router.get(
    "/{id}/events",
    response_class=Response,
    responses={
        200: {
            "content": {"text/event-stream": {}},
            "description": "Events: `started`, `asked`, `spoke`, `abstained`, `round_closed`; the last is "
            "`decided` or `stopped`. Their data is JSON.",
        },
        **failures(400, 401, 404),
    },
)
async def watch(id: Id, request: Request, house: TheHouse) -> Response:
    """Streams a mindstorm's events. To reconnect, send the last id received as `Last-Event-ID`."""
    given = request.headers.get("last-event-id", "0") or "0"
    if not (given.isascii() and given.isdigit()) or len(given) > 9:
        raise bad("Last-Event-ID must be the number of an event", param="Last-Event-ID")
    run = house.running(id)
    events = _live(house, run, int(given)) if run is not None else await _replay(house, id, int(given))
    return EventStream(events, heartbeat=house.settings.heartbeat)


@router.post("/{id}/turns/{key}", responses=failures(400, 401, 404, 408, 409, 413, 415, 429))
async def answer_turn(id: Id, key: Key, given: PersonsAnswer, house: TheHouse) -> Taken:
    """Answers a turn for a member that a person speaks for. Only the first answer counts."""
    run = house.running(id)
    waiting = {open_turn.turn.key: open_turn for open_turn in run.waiting()} if run is not None else {}
    if key not in waiting:
        async for record in house.trace.records(id):
            if record.key == key:
                why = "it was already answered" if record.kind == "replied" else "its time is over"
                raise ApiError(409, f"this turn is closed: {why}", code="turn_over")
        raise not_found("this mindstorm has no open turn with this key", code="turn_not_found")
    form = waiting[key].turn.form
    reading = form.read(given.answer)
    if reading.answer is None and reading.ballot is None:
        raise bad(f"{reading.why}. {form.instruct()}".strip(), param="answer")
    try:
        house.answers.give(key, given.answer)
    except NotOpen:
        raise ApiError(409, "this turn is closed: it was already answered", code="turn_over") from None
    return Taken(key=key)


@router.get(
    "/{id}/images/{number}",
    response_class=Response,
    responses={
        200: {"content": {"image/*": {}}, "description": "The picture."},
        **failures(400, 401, 404),
    },
)
async def picture(id: Id, number: Annotated[int, Path(ge=0, le=999)], house: TheHouse) -> Response:
    """Returns a picture of the task, by its number from 0."""
    run = house.running(id)
    if run is not None:
        images = run.task.images
    else:
        task = (await header_of(house, id)).task
        images = tuple(Image.model_validate(one) for one in list_field(task, "images"))
    if number >= len(images):
        raise not_found(f"the mindstorm has no picture {number}: it has {len(images)}, numbered from 0")
    image = images[number]
    caching = {"Cache-Control": "private, max-age=86400, immutable"}
    return Response(await house.media.read(image), media_type=image.media_type, headers=caching)


async def _live(house: House, run: Run, after: int) -> AsyncGenerator[bytes]:
    async with aclosing(run.watch(after)) as events:
        draining = asyncio.ensure_future(house.draining.wait())
        coming = asyncio.ensure_future(anext(events))
        try:
            while True:
                await asyncio.wait((coming, draining), return_when=asyncio.FIRST_COMPLETED)
                if not coming.done():
                    return  # the server is shutting down; clients reconnect with Last-Event-ID
                try:
                    seen = coming.result()
                except StopAsyncIteration:
                    return
                turn = house.answers.get(seen.event.key) if isinstance(seen.event, event.Asked) else None
                yield frame(event_json(seen.event, turn), event=seen.event.kind, id=seen.number)
                coming = asyncio.ensure_future(anext(events))
        finally:
            # Before `events` is closed: an async generator cannot be closed while its `anext` is pending.
            for waiting in (coming, draining):
                waiting.cancel()
            await asyncio.gather(coming, draining, return_exceptions=True)


async def _replay(house: House, id: str, after: int) -> AsyncGenerator[bytes]:
    header = await header_of(house, id)
    seen, verdict = await recall(house.trace, id)
    kind = plugins.load("tasks", header.kind)
    entry = await house.entry(id)
    reason = entry.reason if entry is not None and entry.reason else "it did not come to a verdict"
    last = ending(id, verdict) if verdict is not None else event.Stopped(mindstorm=id, reason=reason)

    async def frames() -> AsyncGenerator[bytes]:
        for one in [Seen(beginning(header, kind), None), *seen, Seen(last, None)]:
            if one.number is None or one.number > after:
                yield frame(event_json(one.event), event=one.event.kind, id=one.number)

    return frames()
