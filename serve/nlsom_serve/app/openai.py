"""The OpenAI-compatible API: each society is a model."""

from __future__ import annotations

import secrets
from contextlib import AsyncExitStack
from dataclasses import replace

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from nlsom_serve.app.body import JsonRoute
from nlsom_serve.app.chat import read_chat
from nlsom_serve.app.choices import Asked
from nlsom_serve.app.completion import Completion
from nlsom_serve.app.dependencies import TheAccount, TheHouse
from nlsom_serve.app.errors import ApiError, bad
from nlsom_serve.app.replies import ChatCompletion, ModelCard, ModelList, failures
from nlsom_serve.app.run import Run, until_over
from nlsom_serve.app.shapes import AsSchema, ChatRequest
from nlsom_serve.app.sse import EventStream
from nlsom_serve.app.tasks import make_task

router = APIRouter(route_class=JsonRoute, tags=["openai"])

PREFIX = "society/"


@router.get("/v1/models", responses=failures(400, 401))
async def list_models(house: TheHouse) -> ModelList:
    """Lists the societies as models."""
    return ModelList(data=[ModelCard(id=PREFIX + id) for id in house.societies])


@router.get("/v1/models/{model:path}", responses=failures(400, 401, 404))
async def get_model(model: str, house: TheHouse) -> ModelCard:
    """Returns a society as a model."""
    id = model.removeprefix(PREFIX)
    house.society(id)
    return ModelCard(id=PREFIX + id)


@router.post(
    "/v1/chat/completions",
    response_model=ChatCompletion,
    responses={
        200: {
            "content": {"text/event-stream": {}},
            "description": "The completion; with `stream`, its chunks as `data:` lines, then `[DONE]`.",
        },
        **failures(400, 401, 404, 408, 413, 415, 429, 500, 502, 503),
    },
)
async def complete(asked: ChatRequest, request: Request, house: TheHouse, account: TheAccount) -> Response:
    """Asks a society. If the client disconnects, the mindstorm and its requests to models are cancelled."""
    count = asked.n or 1
    if count > house.settings.choices:
        raise bad(f"at most {house.settings.choices} answers per request", param="n")
    society_id = asked.model.removeprefix(PREFIX)
    society = house.society(society_id)
    conversation = read_chat(asked.messages)
    if choices := tuple(asked.nlsom.choices):
        conversation = replace(conversation, asked=Asked(conversation.asked.question, choices))
    places = house.admit(account, count)
    async with AsyncExitStack() as stack:
        stack.callback(lambda: [place.drop() for place in places])
        shape = asked.response_format
        task = await make_task(
            house,
            society,
            question=conversation.asked.question,
            pictures=conversation.pictures,
            choices=conversation.asked.choices,
            context=conversation.context,
            schema=dict(shape.json_schema.json_schema) if isinstance(shape, AsSchema) else None,
        )
        limits = asked.nlsom.limits.within(society.limits)
        seed = secrets.randbelow(2**31) if asked.seed is None else asked.seed
        runs: list[Run] = []
        for number in range(count):
            run = await house.begin(
                places.pop(), account, society_id, task, seed=seed + number, limits=limits, kept=False
            )
            runs.append(await stack.enter_async_context(house.wanted(run)))
        request.scope["state"]["mindstorm"] = runs[0].id
        completion = Completion(asked, conversation.asked, runs)
        if not asked.stream:
            if not await until_over(runs, request.receive):
                raise ApiError(499, "the client disconnected", code="client_left")
            return JSONResponse(completion.body())
        held = stack.pop_all()
    return EventStream(completion.frames(held), heartbeat=house.settings.heartbeat)
