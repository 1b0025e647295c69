"""A chat completion made of mindstorms: their dialogue as reasoning, their verdicts as content."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, field
from typing import Any

from nlsom.event import Abstained, Spoke
from nlsom.verdict import Verdict
from nlsom_serve.app.chat import shorten, wrap
from nlsom_serve.app.choices import Asked
from nlsom_serve.app.errors import ApiError, from_nlsom
from nlsom_serve.app.redact import redact
from nlsom_serve.app.run import Run, Seen
from nlsom_serve.app.shapes import ChatRequest
from nlsom_serve.app.sse import frame
from nlsom_serve.app.told import told_usage, told_verdict

Queue = asyncio.Queue[tuple[int, dict[str, Any] | None, str | None]]
"""The number of a choice, what is new in it (None: it is over), and why it ends."""


@dataclass(slots=True)
class Completion:
    """A chat completion under way.

    Attributes:
        asked: The request.
        question: What it asks, and how the answer is to be written.
        runs: A mindstorm for each of its choices.
        created: When it was begun, in seconds since 1970 (UTC).
    """

    asked: ChatRequest
    question: Asked
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
            message = {"role": "assistant", "content": content, "refusal": refusal}
            message["reasoning_content"] = thought
            choices.append({"index": number, "message": message, "finish_reason": ends, "logprobs": None})
        told = self._head("chat.completion", choices)
        told["usage"] = told_usage([verdict.usage for verdict in verdicts])
        extensions = [_extension(run, verdict) for run, verdict in zip(self.runs, verdicts, strict=True)]
        told["nlsom"] = extensions[0] if len(extensions) == 1 else extensions
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
            queue = Queue(256)
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

    async def _talk(self, number: int, run: Run, queue: Queue) -> None:
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
        return from_nlsom(run.error)
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
