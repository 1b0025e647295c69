"""The client of the engine's process: starts it, sends requests, ends it."""

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

LEAVES_WITHIN = 5.0  # seconds to end by itself, longer than any step takes
LONGEST_LINE = 1 << 26  # most bytes of an outcome


class Engine:
    """A running engine process; make one with `start`.

    Args:
        name: Its name in errors.
        process: The process.
    """

    def __init__(self, name: str, process: Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self._name, self._process = name, process
        self._in, self._out, self._err = process.stdin, process.stdout, process.stderr
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._last_id = 0
        self._ended: ModelUnavailable | None = None
        self._last_errors: deque[str] = deque(maxlen=2)
        self._reading_outcomes = asyncio.create_task(self._read_outcomes(), name=f"outcomes of {name}")
        self._reading_errors = asyncio.create_task(self._read_errors(), name=f"errors of {name}")

    @classmethod
    async def start(cls, name: str, options: dict[str, Any]) -> Self:
        """Starts the process and waits until the model is loaded.

        Args:
            name: Its name in errors.
            options: Argument of `worker`, as JSON.

        Raises:
            ModelUnavailable: The model cannot be loaded.
        """
        # In a session of its own, so that Ctrl-C does not reach it: it ends when its input ends.
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
        """Sends a request and waits for its outcome; see `Request` and `Outcome` in `batch`.

        Raises:
            ModelUnavailable: The process has ended.
        """
        if self._ended is not None:
            raise self._ended
        self._last_id += 1
        number = self._last_id
        outcome = self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            self._send({"id": number, **request})
            return await outcome
        except asyncio.CancelledError:
            self._send({"cancel": number})
            raise
        finally:
            self._waiting.pop(number, None)

    async def close(self) -> None:
        """Ends the process; pending requests raise `ModelUnavailable`."""
        self._end(ModelUnavailable(f"{self._name} was closed"))
        self._in.close()
        try:
            async with asyncio.timeout(LEAVES_WITHIN):
                await self._process.wait()
        except TimeoutError:
            self._kill()
        await asyncio.gather(self._reading_outcomes, self._reading_errors)
        await self._process.wait()

    def _kill(self) -> None:
        with suppress(ProcessLookupError):  # it may have ended by itself
            self._process.kill()

    def _send(self, message: dict[str, Any]) -> None:
        if not self._in.is_closing():
            self._in.write(json.dumps(message).encode() + b"\n")

    async def _read_outcomes(self) -> None:
        while line := await self._out.readline():
            outcome = json.loads(line)
            waiting = self._waiting.get(outcome.get("id", 0))
            if waiting is not None and not waiting.done():
                waiting.set_result(outcome)
        await self._reading_errors
        code = await self._process.wait()
        why = " ".join(self._last_errors) or "nothing"
        if code == -signal.SIGKILL:
            why += " (was it killed for lack of memory?)"
        self._end(ModelUnavailable(f"the engine of {self._name} ended with {code}; its last output: {why}"))

    async def _read_errors(self) -> None:
        while line := await self._err.readline():
            self._last_errors.append(line.decode(errors="replace").rstrip())

    def _end(self, why: ModelUnavailable) -> None:
        self._ended = self._ended or why
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(self._ended)
