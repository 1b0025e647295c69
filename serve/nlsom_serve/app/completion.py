"""Chat completions: a mindstorm's dialogue as reasoning, its verdict as content."""

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
from nlsom_serve.app.wire import usage_json, verdict_json

Queue = asyncio.Queue[tuple[int, dict[str, Any] | None, str | None]]
"""Index of a choice, its delta (None once it is over), and its `finish_reason`."""


@dataclass(slots=True)
class Completion:
    """A chat completion in progress.

    Attributes:
        asked: The request.
        question: Its question, and how to write the answer.
        runs: One mindstorm per choice.
        created: Start time in seconds since 1970 (UTC).
    """

    asked: ChatRequest
    question: Asked
    runs: Sequence[Run]
    created: int = field(default_factory=lambda: int(time.time()))

    def body(self) -> dict[str, Any]:
        """The response body, once all runs are over.

        Raises:
            ApiError: A mindstorm stopped without a verdict.
        """
        verdicts = [_verdict(run) for run in self.runs]
        choices: list[dict[str, Any]] = []
        for number, (run, verdict) in enumerate(zip(self.runs, verdicts, strict=True)):
            content, refusal, finish = self._content(run, verdict)
            dialogue = _Dialogue()
            message = {"role": "assistant", "content": content, "refusal": refusal}
            message["reasoning_content"] = "".join(dialogue.line(seen) for seen in run.seen)
            choices.append({"index": number, "message": message, "finish_reason": finish, "logprobs": None})
        body = self._head("chat.completion", choices)
        body["usage"] = usage_json([verdict.usage for verdict in verdicts])
        extensions = [_extension(run, verdict) for run, verdict in zip(self.runs, verdicts, strict=True)]
        body["nlsom"] = extensions[0] if len(extensions) == 1 else extensions
        return body

    def _head(self, kind: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "id": f"chatcmpl-{self.runs[0].id}",
            "object": kind,
            "created": self.created,
            "model": self.asked.model,
            "choices": choices,
        }

    def _content(self, run: Run, verdict: Verdict) -> tuple[str | None, str | None, str]:
        """The content, or a refusal that says why there is no verdict; and the `finish_reason`."""
        if verdict.answer is None:
            return None, _no_answer(verdict), "stop"
        canonical = tuple(run.task.canonical(choice) for choice in run.task.choices)
        written = wrap(self.question.write(verdict.answer, canonical), self.asked.response_format)
        content, finish = shorten(written, stops=self.asked.stops, most_tokens=self.asked.most_tokens)
        return content, None, finish

    async def frames(self, held: AsyncExitStack) -> AsyncGenerator[bytes]:
        """Streams the completion: the dialogue as `reasoning_content`, then the verdict as `content`.

        Args:
            held: Closed when the stream ends.
        """
        async with held:
            for number in range(len(self.runs)):
                yield self._chunk(number, {"role": "assistant", "content": ""})
            queue = Queue(256)
            feeders = [
                asyncio.create_task(self._feed(number, run, queue)) for number, run in enumerate(self.runs)
            ]
            try:
                left = len(feeders)
                while left:
                    number, delta, finish = await queue.get()
                    if delta is None:
                        left -= 1
                        continue
                    yield self._chunk(number, delta, finish)
                failed = [error for run in self.runs if (error := _error(run)) is not None]
                if failed:
                    yield frame(failed[0].body)
                    return
                options = self.asked.stream_options
                if options is not None and options.include_usage:
                    usages = [_verdict(run).usage for run in self.runs]
                    yield frame({**self._head("chat.completion.chunk", []), "usage": usage_json(usages)})
                yield frame("[DONE]")
            finally:
                for task in feeders:
                    task.cancel()
                await asyncio.gather(*feeders, return_exceptions=True)

    async def _feed(self, number: int, run: Run, queue: Queue) -> None:
        """Puts the deltas of one choice into the queue, and None when it is over."""
        dialogue = _Dialogue()
        async with aclosing(run.watch()) as events:
            async for seen in events:
                if line := dialogue.line(seen):
                    await queue.put((number, {"reasoning_content": line}, None))
        await asyncio.shield(run.over)
        if run.verdict is not None and _error(run) is None:
            content, refusal, finish = self._content(run, run.verdict)
            delta = {"content": content} if refusal is None else {"refusal": refusal}
            await queue.put((number, delta, None))
            await queue.put((number, {}, finish))
        await queue.put((number, None, None))

    def _chunk(self, number: int, delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": number, "delta": delta, "finish_reason": finish, "logprobs": None}
        chunk = self._head("chat.completion.chunk", [choice])
        if finish is not None:
            run = self.runs[number]
            chunk["nlsom"] = _extension(run, _verdict(run))
        return frame(chunk)


class _Dialogue:
    """Formats events as lines of text, under a heading for each phase and round."""

    def __init__(self) -> None:
        self._part: tuple[str, int] | None = None

    def line(self, seen: Seen) -> str:
        """The text of an event; "" unless it is a reply or an abstention."""
        match seen.event:
            case Spoke(message=message):
                said = message.said
                words = " ".join(said.text.split())
                line = [f"{message.sender}:", *([words] if words else [])]
                if said.answer not in (None, words):
                    line.append(f"-> {said.answer}")
                elif said.why is not None and said.why != said.text:
                    line.append(f"(no answer: {redact(said.why)})")
                return self._heading(message.phase, message.round) + " ".join(line) + "\n"
            case Abstained(abstention=one):
                cause = redact(one.cause)
                return self._heading(one.phase, one.round) + f"{one.member} abstains: {cause}\n"
            case _:
                return ""

    def _heading(self, phase: str, round: int) -> str:
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
    body = verdict_json(verdict)
    return {
        "mindstorm": run.id,
        "society": run.society_id,
        "seed": run.seed,
        "choices": list(run.task.choices),
        **{name: body[name] for name in ("answer", "confidence", "rule", "tally", "tied", "abstained")},
        **{name: body[name] for name in ("cut_short", "rounds", "saved", "usage", "usage_total")},
    }
