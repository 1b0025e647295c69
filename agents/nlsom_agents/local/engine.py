"""Our side of the engine's process: starts it, asks it, ends it."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections import deque
from contextlib import suppress
from typing import Any, Self

from nlsom.errors import ModelUnavailable

LEAVES_WITHIN = 5.0  # seconds; a step that is under way ends in less
LONGEST_LINE = 1 << 26  # bytes of one outcome


class Engine:
    """The process that owns the engine, seen from here: who waits for which outcome.

    Args:
        name: What errors call it.
        process: The process, which `start` starts.
    """

    def __init__(self, name: str, process: Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self._name, self._process = name, process
        self._in, self._out, self._err = process.stdin, process.stdout, process.stderr
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._asked = 0
        self._ended: ModelUnavailable | None = None
        self._last_words: deque[str] = deque(maxlen=2)
        self._listening = asyncio.create_task(self._listen(), name=f"outcomes of {name}")
        self._overhearing = asyncio.create_task(self._overhear(), name=f"errors of {name}")

    @classmethod
    async def start(cls, name: str, options: dict[str, Any]) -> Self:
        """Starts the process and waits until the model is loaded.

        Args:
            name: What errors call it.
            options: What `worker` is told.

        Raises:
            ModelUnavailable: The model cannot be loaded.
        """
        # A session of its own: Ctrl-C ends us, and the end of its input ends it.
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "nlsom_agents.local.worker", json.dumps(options)),
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            limit=LONGEST_LINE,
            start_new_session=True,
        )
        engine = cls(name, process)
        loaded = engine._waiting[0] = asyncio.get_running_loop().create_future()
        try:
            outcome = await loaded
            if "error" in outcome:
                raise ModelUnavailable(f"{name} cannot be loaded: {outcome['why']}")
        except BaseException:
            engine._kill()
            await engine.close()
            raise
        return engine

    async def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Sends a request and waits for its outcome; `batch` says what both are made of.

        Raises:
            ModelUnavailable: The process has ended.
        """
        if self._ended is not None:
            raise self._ended
        self._asked += 1
        number = self._asked
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            self._send({"id": number, **request})
            return await answer
        except asyncio.CancelledError:
            self._send({"cancel": number})
            raise
        finally:
            self._waiting.pop(number, None)

    async def close(self) -> None:
        """Ends the process; whoever still waits is told that the model is gone."""
        self._end(ModelUnavailable(f"{self._name} was closed"))
        self._in.close()
        try:
            async with asyncio.timeout(LEAVES_WITHIN):
                await self._process.wait()
        except TimeoutError:
            self._kill()
        await asyncio.gather(self._listening, self._overhearing)
        await self._process.wait()

    def _kill(self) -> None:
        with suppress(ProcessLookupError):  # it may have ended by itself
            self._process.kill()

    def _send(self, message: dict[str, Any]) -> None:
        if not self._in.is_closing():
            self._in.write(json.dumps(message).encode() + b"\n")

    async def _listen(self) -> None:
        while line := await self._out.readline():
            outcome = json.loads(line)
            waiting = self._waiting.get(outcome.get("id", 0))
            if waiting is not None and not waiting.done():
                waiting.set_result(outcome)
        await self._overhearing
        code = await self._process.wait()
        said = " ".join(self._last_words) or "nothing"
        if code == -signal.SIGKILL:
            said += " (was it killed for want of memory?)"
        self._end(ModelUnavailable(f"the engine of {self._name} ended with {code}; its last words: {said}"))

    async def _overhear(self) -> None:
        while line := await self._err.readline():
            self._last_words.append(line.decode(errors="replace").rstrip())

    def _end(self, why: ModelUnavailable) -> None:
        self._ended = self._ended or why
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(self._ended)
