"""The OpenAI-compatible part of the API: a society is a model."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, field
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from nlsom.errors import NlsomError
from nlsom.event import Abstained, Spoke
from nlsom.verdict import Verdict
from nlsom_serve.app.body import JsonRoute
from nlsom_serve.app.chat import Conversation, read_chat, shorten, wrap
from nlsom_serve.app.choices import Asked
from nlsom_serve.app.errors import ApiError, bad, from_nlsom
from nlsom_serve.app.house import House
from nlsom_serve.app.needs import TheAccount, TheHouse
from nlsom_serve.app.redact import redact
from nlsom_serve.app.replies import ChatCompletion, ModelCard, ModelList, failures
from nlsom_serve.app.run import Run, Seen
from nlsom_serve.app.shapes import AsSchema, ChatRequest
from nlsom_serve.app.sse import EventStream, frame, gone
from nlsom_serve.app.tasks import make_task
from nlsom_serve.app.told import told_usage, told_verdict

router = APIRouter(route_class=JsonRoute, tags=["openai"])

PREFIX = "society/"


@router.get("/v1/models", responses=failures(400, 401))
async def list_models(house: TheHouse) -> ModelList:
    """Lists the societies as models."""
    return ModelList(data=[ModelCard(id=PREFIX + id) for id in house.societies])


@router.get("/v1/models/{model:path}", responses=failures(400, 401, 404))
async def get_model(model: str, house: TheHouse) -> ModelCard:
    """Says whether a society is served."""
    id = model.removeprefix(PREFIX)
    house.society(id)
    return ModelCard(id=PREFIX + id)


@router.post(
    "/v1/chat/completions",
    response_model=ChatCompletion,
    responses={
        200: {
            "content": {"text/event-stream": {}},
            "description": "The completion; with `stream` its chunks as `data:` lines, then `[DONE]`.",
        },
        **failures(400, 401, 404, 408, 413, 415, 429, 500, 502, 503),
    },
)
async def complete(asked: ChatRequest, request: Request, house: TheHouse, account: TheAccount) -> Response:
    """Asks a society. The mindstorm is cancelled, down to the models, when the client leaves."""
    count = asked.n or 1
    if count > house.settings.choices:
        raise bad(f"the most answers to one request is {house.settings.choices}", param="n")
    society_id = asked.model.removeprefix(PREFIX)
    society = house.society(society_id)
    conversation = read_chat(asked.messages)
    if asked.nlsom.choices:
        choices = tuple(asked.nlsom.choices)
        if len(set(choices)) != len(choices):
            raise bad("two choices are the same", param="nlsom.choices")
        conversation = Conversation(
            Asked(conversation.asked.question, choices), conversation.context, conversation.pictures
        )
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
        want = asked.nlsom.limits
        limits = society.limits.narrowed(seconds=want.seconds, calls=want.calls, tokens=want.tokens)
        seed = secrets.randbelow(2**31) if asked.seed is None else asked.seed
        runs: list[Run] = []
        for number in range(count):
            run = await house.begin(
                places.pop(), account, society_id, task, seed=seed + number, limits=limits, kept=False
            )
            runs.append(await stack.enter_async_context(house.wanted(run)))
        request.scope["state"]["mindstorm"] = runs[0].id
        answer = _Answer(asked, conversation.asked, house, runs)
        if not asked.stream:
            return await _whole(answer, request)
        held = stack.pop_all()
    return EventStream(answer.frames(held), heartbeat=house.settings.heartbeat)


async def _whole(answer: _Answer, request: Request) -> Response:
    """Waits for all verdicts, or until the client leaves."""
    leaving = asyncio.ensure_future(gone(request.receive))
    waiting = asyncio.ensure_future(asyncio.wait([run.over for run in answer.runs]))
    try:
        await asyncio.wait((leaving, waiting), return_when=asyncio.FIRST_COMPLETED)
    finally:
        leaving.cancel()
        waiting.cancel()
        await asyncio.gather(leaving, waiting, return_exceptions=True)
    if not all(run.over.done() for run in answer.runs):
        raise ApiError(499, "the client left", code="client_left")
    return JSONResponse(answer.body())


@dataclass(slots=True)
class _Answer:
    """A chat completion under way: one run for each of its choices."""

    asked: ChatRequest
    question: Asked
    house: House
    runs: Sequence[Run]
    created: int = field(default_factory=lambda: int(time.time()))

    def body(self) -> dict[str, Any]:
        """The whole completion.

        Raises:
            ApiError: A mindstorm stopped without a verdict.
        """
        verdicts = [_verdict(run) for run in self.runs]
        choices: list[dict[str, Any]] = []
        for number, (run, verdict) in enumerate(zip(self.runs, verdicts, strict=True)):
            content, refusal, ends = self._content(run, verdict)
            dialogue = _Dialogue()
            thought = "".join(dialogue.line(seen) for seen in run.seen)
            message = {
                "role": "assistant",
                "content": content,
                "refusal": refusal,
                "reasoning_content": thought,
            }
            choices.append({"index": number, "message": message, "finish_reason": ends, "logprobs": None})
        told = self._head("chat.completion", choices)
        told["usage"] = told_usage([verdict.usage for verdict in verdicts])
        told["nlsom"] = [_extension(run, verdict) for run, verdict in zip(self.runs, verdicts, strict=True)][
            0 if len(self.runs) == 1 else slice(None)
        ]
        return told

    def _head(self, kind: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "id": f"chatcmpl-{self.runs[0].id}",
            "object": kind,
            "created": self.created,
            "model": self.asked.model,
            "choices": choices,
        }

    def _content(self, run: Run, verdict: Verdict) -> tuple[str | None, str | None, str]:
        """Content, or a refusal that says why there is none; and why it ends."""
        if verdict.answer is None:
            return None, _no_answer(verdict), "stop"
        canonical = tuple(run.task.canonical(choice) for choice in run.task.choices)
        written = wrap(self.question.write(verdict.answer, canonical), self.asked.response_format)
        content, ends = shorten(written, stops=self.asked.stops, most_tokens=self.asked.most_tokens)
        return content, None, ends

    async def frames(self, held: AsyncExitStack) -> AsyncGenerator[bytes]:
        """The completion as a stream: the dialogue as `reasoning_content`, then the verdict as `content`."""
        async with held:
            for number in range(len(self.runs)):
                yield self._chunk(number, {"role": "assistant", "content": ""})
            queue: asyncio.Queue[tuple[int, dict[str, Any] | None, str | None]] = asyncio.Queue(256)
            talking = [
                asyncio.create_task(self._talk(number, run, queue)) for number, run in enumerate(self.runs)
            ]
            try:
                left = len(talking)
                while left:
                    number, delta, ends = await queue.get()
                    if delta is None:
                        left -= 1
                        continue
                    yield self._chunk(number, delta, ends)
                failed = [error for run in self.runs if (error := _error(run)) is not None]
                if failed:
                    yield frame(failed[0].body)
                    return
                options = self.asked.stream_options
                if options is not None and options.include_usage:
                    usages = [_verdict(run).usage for run in self.runs]
                    yield frame({**self._head("chat.completion.chunk", []), "usage": told_usage(usages)})
                yield frame("[DONE]")
            finally:
                for task in talking:
                    task.cancel()
                await asyncio.gather(*talking, return_exceptions=True)

    async def _talk(
        self, number: int, run: Run, queue: asyncio.Queue[tuple[int, dict[str, Any] | None, str | None]]
    ) -> None:
        """Puts what one mindstorm says into the queue, and None when it is over."""
        dialogue = _Dialogue()
        async with aclosing(run.watch()) as events:
            async for seen in events:
                if line := dialogue.line(seen):
                    await queue.put((number, {"reasoning_content": line}, None))
        await asyncio.shield(run.over)
        if run.verdict is not None and _error(run) is None:
            content, refusal, ends = self._content(run, run.verdict)
            delta = {"content": content} if refusal is None else {"refusal": refusal}
            await queue.put((number, delta, None))
            await queue.put((number, {}, ends))
        await queue.put((number, None, None))

    def _chunk(self, number: int, delta: dict[str, Any], ends: str | None = None) -> bytes:
        choice = {"index": number, "delta": delta, "finish_reason": ends, "logprobs": None}
        told = self._head("chat.completion.chunk", [choice])
        if ends is not None:
            run = self.runs[number]
            told["nlsom"] = _extension(run, _verdict(run))
        return frame(told)


class _Dialogue:
    """Who says what, in plain lines under a heading a round."""

    def __init__(self) -> None:
        self._part: tuple[str, int] | None = None

    def line(self, seen: Seen) -> str:
        """What an event adds; "" for one that says nothing."""
        match seen.event:
            case Spoke(message=message):
                said = message.said
                words = " ".join(said.text.split())
                told = [f"{message.sender}:", *([words] if words else [])]
                if said.answer not in (None, words):
                    told.append(f"-> {said.answer}")
                elif said.why is not None and said.why != said.text:
                    told.append(f"(no answer: {redact(said.why)})")
                return self._under(message.phase, message.round) + " ".join(told) + "\n"
            case Abstained(abstention=one):
                cause = redact(one.cause)
                return self._under(one.phase, one.round) + f"{one.member} abstains: {cause}\n"
            case _:
                return ""

    def _under(self, phase: str, round: int) -> str:
        if self._part == (phase, round):
            return ""
        first, self._part = self._part is None, (phase, round)
        return f"{'' if first else chr(10)}[{phase}, round {round}]\n"


def _error(run: Run) -> ApiError | None:
    if run.error is not None:
        return from_nlsom(run.error if isinstance(run.error, NlsomError) else NlsomError(str(run.error)))
    if run.verdict is None:
        return ApiError(503, "the mindstorm was cancelled", code="cancelled")
    if run.verdict.answer is None and not any(isinstance(seen.event, Spoke) for seen in run.seen):
        causes = "; ".join(dict.fromkeys(redact(one.cause) for one in run.verdict.abstained[:3]))
        return ApiError(
            503, f"no member answered: {causes or run.verdict.cut_short}", code="no_member_answered"
        )
    return None


def _verdict(run: Run) -> Verdict:
    error = _error(run)
    if error is not None:
        raise error
    assert run.verdict is not None
    return run.verdict


def _no_answer(verdict: Verdict) -> str:
    if verdict.tied:
        return f"no verdict: tied between {', '.join(verdict.tied)}"
    if verdict.cut_short:
        return f"no verdict: cut short ({redact(verdict.cut_short)})"
    return "no verdict: nobody gave an answer that could be counted"


def _extension(run: Run, verdict: Verdict) -> dict[str, Any]:
    told = told_verdict(verdict)
    return {
        "mindstorm": run.id,
        "society": run.society_id,
        "seed": run.seed,
        "choices": list(run.task.choices),
        **{name: told[name] for name in ("answer", "confidence", "rule", "tally", "tied", "abstained")},
        **{name: told[name] for name in ("cut_short", "rounds", "saved", "usage", "usage_total")},
    }
