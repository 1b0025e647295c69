"""The native part of the API: mindstorms that can be watched, taken up again, cancelled and joined."""

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
from nlsom_serve.app.cards import card_of, card_of_run, detail_of, header_of, inside
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
from nlsom_serve.app.told import told_event

router = APIRouter(prefix="/v1/mindstorms", route_class=JsonRoute, tags=["mindstorms"])


def _hex(digits: int, error: Callable[[], ApiError]) -> AfterValidator:
    """Lets lower-case hexadecimal digits through, so many."""
    pattern = re.compile(f"[0-9a-f]{{{digits}}}")

    def check(given: str) -> str:
        if not pattern.fullmatch(given):
            raise error()
        return given

    return AfterValidator(check)


_LOOKS = "the id of a mindstorm is 16 hexadecimal digits, such as 00c0ffee00c0ffee"

Id = Annotated[
    str,
    Path(description="Id of a mindstorm: 16 hexadecimal digits."),
    _hex(16, lambda: not_found(f"there is no such mindstorm: {_LOOKS}", code="mindstorm_not_found")),
]
Key = Annotated[
    str,
    Path(description="Key of a turn: 64 hexadecimal digits."),
    _hex(
        64,
        lambda: not_found("there is no such turn: its key is 64 hexadecimal digits", code="turn_not_found"),
    ),
]
LastKnown = Annotated[
    str,
    Query(description="The last one that is known."),
    _hex(16, lambda: bad(f"before: {_LOOKS}", param="before")),
]


class NewMindstorm(Strict):
    """A mindstorm to begin.

    Attributes:
        society: Id of the society.
        question: What is asked.
        images: Pictures: `data:` URLs; http(s) URLs where the server allows it.
        choices: The options of a multiple choice.
        find_choices: Whether options are looked for in the question, as in a chat.
        context: What was said before, in plain words.
        seed: The run's seed; the same question with the same seed is the same mindstorm.
        limits: What it may spend.
        wait: Whether the answer waits until it is over.
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
    """What a person answers."""

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
    """Begins a mindstorm, which goes on whoever leaves, and after a restart of the server."""
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
    before: LastKnown | None = None,
) -> MindstormList:
    """Lists mindstorms, those begun last first."""
    headers = await house.trace.latest(limit + 1, before=before)
    cards = [await card_of(house, header) for header in headers[:limit]]
    return MindstormList(data=cards, more=len(headers) > limit)


@router.get("/{id}", responses=failures(400, 401, 404))
async def get_mindstorm(id: Id, house: TheHouse) -> MindstormDetail:
    """Tells a mindstorm: its state, what was said, and its verdict."""
    return await detail_of(house, id)


@router.delete("/{id}", responses=failures(400, 401, 404))
async def cancel(id: Id, house: TheHouse) -> MindstormDetail:
    """Cancels a mindstorm down to the models' servers; one that is over stays as it is."""
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
    """Streams its events. After a break, send the last id that came as `Last-Event-ID`."""
    given = request.headers.get("last-event-id", "0") or "0"
    if not (given.isascii() and given.isdigit()) or len(given) > 9:
        raise bad("Last-Event-ID is the id of an event: a number", param="Last-Event-ID")
    run = house.running(id)
    events = _live(house, run, int(given)) if run is not None else await _replay(house, id, int(given))
    return EventStream(events, heartbeat=house.settings.heartbeat)


@router.post("/{id}/turns/{key}", responses=failures(400, 401, 404, 408, 409, 413, 415, 429))
async def answer_turn(id: Id, key: Key, given: PersonsAnswer, house: TheHouse) -> Taken:
    """Answers a turn as the person who sits in that seat. The first answer counts."""
    run = house.running(id)
    waiting = {open_turn.turn.key: open_turn for open_turn in run.waiting()} if run is not None else {}
    if key not in waiting:
        async for record in house.trace.records(id):
            if record.key == key:
                late = "it was answered already" if record.kind == "replied" else "its time is over"
                raise ApiError(409, f"this turn does not wait any more: {late}", code="turn_over")
        raise not_found("no turn of this key waits in this mindstorm", code="turn_not_found")
    form = waiting[key].turn.form
    reading = form.read(given.answer)
    if reading.answer is None and reading.ballot is None:
        raise bad(f"{reading.why}. {form.instruct()}".strip(), param="answer")
    try:
        house.answers.give(key, given.answer)
    except NotOpen:
        raise ApiError(409, "this turn was answered already", code="turn_over") from None
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
    """A picture that the mindstorm is about; numbered from 0."""
    run = house.running(id)
    if run is not None:
        images = run.task.images
    else:
        task = (await header_of(house, id)).task
        images = tuple(Image.model_validate(one) for one in inside(task, "images"))
    if number >= len(images):
        raise not_found("it has no picture of that number")
    image = images[number]
    caching = {"Cache-Control": "private, max-age=86400, immutable"}
    return Response(await house.media.read(image), media_type=image.media_type, headers=caching)


async def _live(house: House, run: Run, after: int) -> AsyncGenerator[bytes]:
    async with aclosing(run.watch(after)) as events:
        ending = asyncio.ensure_future(house.draining.wait())
        coming = asyncio.ensure_future(anext(events))
        try:
            while True:
                await asyncio.wait((coming, ending), return_when=asyncio.FIRST_COMPLETED)
                if not coming.done():
                    return  # the server ends; whoever watches comes back with Last-Event-ID
                try:
                    seen = coming.result()
                except StopAsyncIteration:
                    return
                waits = house.answers.get(seen.event.key) if isinstance(seen.event, event.Asked) else None
                yield frame(told_event(seen.event, waits), event=seen.event.kind, id=seen.number)
                coming = asyncio.ensure_future(anext(events))
        finally:
            # Before `events` is closed, which cannot be done while somebody waits for its next.
            for waiting in (coming, ending):
                waiting.cancel()
            await asyncio.gather(coming, ending, return_exceptions=True)


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
                yield frame(told_event(one.event), event=one.event.kind, id=one.number)

    return frames()
