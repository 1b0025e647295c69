"""Schedules requests into steps of one continuous batch, and works around limits of the engine.

- The engine computes a prefix separately for all prompts that arrive together. So of several waiting prompts
  with a common prefix, one goes first, and the others follow when the prefix is in the cache. With eight
  members over one transcript this is five times as fast.
- The tokenizer silently cuts prompts at 8,192 tokens, and the engine ignores the model's context length. So
  prompts are tokenized in pieces, and refused if they do not fit.
- When the KV cache has no room for any step, the engine drops all requests. So the longest one fails, and the
  others are restarted.
- An invalid constraint makes the next step fail for all requests. So at most one untried constraint is added
  at a time; if a step fails, that one is refused, and the others are restarted.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import openvino
import openvino_genai as genai

Tokens = np.ndarray[tuple[int], np.dtype[np.int64]]

WORTH_WAITING = 64  # tokens shared with a running prompt that make it worth waiting: two cache blocks
REMEMBERED = 32  # last prompts whose prefixes are assumed to be in the engine's cache
STARTS = 3  # attempts for a request that is not itself the cause of a failed step


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request to the engine, in plain values, since it comes from another process."""

    id: int
    text: str
    max_tokens: int
    temperature: float = 0.0
    top_p: float = 1.0
    seed: int = 0
    stop: tuple[str, ...] = ()
    grammar: dict[str, str] | None = None


@dataclass(slots=True, eq=False)
class _Job:
    request: Request
    prompt: Tokens
    cached: int  # tokens of the prompt that are assumed to be in the cache
    handle: Any = None
    written: list[int] = field(default_factory=list[int])
    logprobs: list[float] = field(default_factory=list[float])
    starts: int = 0

    @property
    def constraint(self) -> str | None:
        """Its constraint as a hashable key; None if there is none."""
        return repr(self.request.grammar) if self.request.grammar else None


# Pieces below the tokenizer's limit. A piece ends where no token spans the cut: after a line break or before
# a space; only a text without either is cut elsewhere.
_PIECE = re.compile(r"(?s).{1,2000}(?:(?<=\n)(?=\S)|(?<=\S)(?= \w)|\Z)|.{1,2000}")

Outcome = dict[str, Any]
"""`{"id", "text", "logprob", "prompt", "completion"}`, or `{"id", "error", …}`."""


class Batch:
    """The requests of one pipeline. Not thread-safe."""

    def __init__(self, pipeline: Any, context: int) -> None:
        self._pipeline = pipeline
        self._tokenizer = pipeline.get_tokenizer()
        self._ends = {*pipeline.get_config().stop_token_ids, self._tokenizer.get_eos_token_id()}
        self._context = context
        self._waiting: deque[_Job] = deque()
        self._running: list[_Job] = []
        self._tried: set[str | None] = {None}  # constraints that the engine has accepted
        self._seen: deque[Tokens] = deque(maxlen=REMEMBERED)
        self._number = 0  # the engine's last request id; a restarted job needs a new one

    @property
    def busy(self) -> bool:
        """Whether `step` has anything to do."""
        return bool(self._waiting or self._running or self._pipeline.has_non_finished_requests())

    def add(self, request: Request) -> Outcome | None:
        """Queues a request; returns an outcome at once if it is refused."""
        prompt = self._tokens(request.text)
        if len(prompt) + request.max_tokens > self._context:
            return {"id": request.id, "error": "too long", "tokens": len(prompt), "limit": self._context}
        cached = max((_shared(prompt, other) for other in self._seen), default=0)
        self._waiting.append(_Job(request, prompt, cached))
        return None

    def cancel(self, number: int) -> None:
        """Removes a request and frees its resources."""
        self._waiting = deque(job for job in self._waiting if job.request.id != number)
        for job in self._running:
            if job.request.id == number:
                job.handle.cancel()
        self._running = [job for job in self._running if job.request.id != number]

    def step(self) -> Iterator[Outcome]:
        """Admits waiting requests, computes one step, and yields the outcomes of requests that ended.

        Raises:
            RuntimeError: The engine cannot recover from a failed step.
        """
        self._admit()
        try:
            self._pipeline.step()
        except RuntimeError as error:
            yield from self._recover(error)
            return
        for job in list(self._running):
            yield from self._collect(job)
        yield from self._make_room()

    def _tokens(self, text: str) -> Tokens:
        templated = self._tokenizer.apply_chat_template(
            [{"role": "user", "content": text}], add_generation_prompt=True
        )
        ids = [
            self._tokenizer.encode(piece, add_special_tokens=False).input_ids.data[0]
            for piece in _PIECE.findall(templated)
        ]
        return np.concatenate(ids).astype(np.int64)

    def _admit(self) -> None:
        """Admits, in order, every job that gains nothing by waiting for a running one."""
        ahead = [job for job in self._running if not job.written]
        held: deque[_Job] = deque()
        for job in self._waiting:
            trying = job.constraint not in self._tried
            if any(
                (trying and other.constraint not in self._tried)
                or _shared(job.prompt, other.prompt) - job.cached >= WORTH_WAITING
                for other in ahead
            ):
                held.append(job)
                continue
            self._number += 1
            job.starts += 1
            job.handle = self._pipeline.add_request(
                self._number, openvino.Tensor(job.prompt[None, :]), _settings(job.request)
            )
            self._running.append(job)
            ahead.append(job)
        self._waiting = held

    def _collect(self, job: _Job) -> Iterator[Outcome]:
        first = not job.written
        while job.handle.can_read():
            for output in job.handle.read().values():
                job.written += output.generated_ids
                job.logprobs += output.generated_log_probs
        if first and job.written:
            self._mark_cached(job)
        if job.handle.get_status() != genai.GenerationStatus.FINISHED:
            return
        self._running.remove(job)
        ended = bool(job.written) and job.written[-1] in self._ends
        logprobs = job.logprobs[:-1] if ended else job.logprobs
        yield {
            "id": job.request.id,
            "text": self._tokenizer.decode(job.written, skip_special_tokens=True),
            "logprob": float(sum(logprobs)),
            "prompt": len(job.prompt),
            "completion": len(job.written),
            "ended": ended,
        }

    def _make_room(self) -> Iterator[Outcome]:
        """Handles a full KV cache, on which the engine drops all requests: refuses only the longest."""
        dropped = [j for j in self._running if j.handle.get_status() == genai.GenerationStatus.IGNORED]
        if not dropped:
            return
        longest = max(dropped, key=lambda job: len(job.prompt) + job.request.max_tokens)
        yield {"id": longest.request.id, "error": "no room", "tokens": len(longest.prompt)}
        self._running = [job for job in self._running if job not in dropped]
        self._requeue([job for job in dropped if job is not longest])

    def _mark_cached(self, job: _Job) -> None:
        self._tried.add(job.constraint)
        self._seen.append(job.prompt)
        for other in self._waiting:
            other.cached = max(other.cached, _shared(other.prompt, job.prompt))

    def _recover(self, error: RuntimeError) -> Iterator[Outcome]:
        """Handles a failed step, after which no request can continue: restarts all but the culprits."""
        for job in self._running:
            job.handle.cancel()
        while self._pipeline.has_non_finished_requests():
            self._pipeline.step()
        again: list[_Job] = []
        for job in self._running:
            to_blame = job.constraint not in self._tried and not job.written
            if to_blame or job.starts >= STARTS:
                yield {"id": job.request.id, "error": "refused", "why": reason(error)}
            else:
                again.append(job)
        self._running = []
        self._requeue(again)

    def _requeue(self, jobs: list[_Job]) -> None:
        for job in reversed(jobs):
            job.written, job.logprobs = [], []
            self._waiting.appendleft(job)


def reason(error: Exception) -> str:
    """The last line of a native error, without paths of the machine it was built on."""
    last = str(error).strip().rsplit("\n", 1)[-1]
    return re.sub(r"\S*/", "", last) or type(error).__name__


def _shared(a: Tokens, b: Tokens) -> int:
    """Length of the common prefix of two prompts, in tokens."""
    n = min(len(a), len(b))
    differ = np.flatnonzero(a[:n] != b[:n])
    return int(differ[0]) if len(differ) else n


def _settings(request: Request) -> Any:
    settings = genai.GenerationConfig()
    settings.max_new_tokens = request.max_tokens
    settings.apply_chat_template = False
    settings.logprobs = 1
    settings.do_sample = request.temperature > 0
    if settings.do_sample:
        settings.temperature, settings.top_p = request.temperature, request.top_p
        settings.rng_seed = request.seed
    if request.stop:
        settings.stop_strings = set(request.stop)
    if request.grammar:
        settings.structured_output_config = genai.StructuredOutputConfig(**request.grammar)
    return settings
