"""A tool of an MCP server as a member, through the official SDK."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self, cast

from pydantic import PositiveFloat

from nlsom.errors import ExtraMissing, ModelError, ModelUnavailable, UsageError
from nlsom.message import Said
from nlsom.source import JsonObject
from nlsom.tool import asked
from nlsom.turn import Turn

if TYPE_CHECKING:
    from mcp import Client
    from mcp.types import Tool as ServersTool


STARTS = 120.0
"""Seconds that a server may take to start; `npx` and `uvx` may download it first."""


class Mcp:
    """A member that is a tool of an MCP server, over stdio or HTTP.

    The tool is called with the last message that the member hears, or else the question. A tool that is not
    declared read-only or idempotent counts as one with effects: its calls are never silently repeated.

    Args:
        tool: Name of the tool.
        command: The server's program and its arguments; it runs while the society is open.
        url: Instead of `command`, the URL of a running server: `http://HOST:PORT/mcp`.
        argument: The tool's argument for the text; by default its only required one.
        arguments: Other arguments, the same in every call.
        env: Environment variables of the program, in addition to the few that it inherits.
        seconds: How long a call may take.
    """

    def __init__(
        self,
        *,
        tool: str,
        command: Sequence[str] = (),
        url: str | None = None,
        argument: str | None = None,
        arguments: JsonObject | None = None,
        env: dict[str, str] | None = None,
        seconds: PositiveFloat = 60.0,
    ) -> None:
        if bool(command) == (url is not None):
            raise UsageError("an MCP server needs `command` or `url`, and not both")
        self._tool, self._command, self._url = tool, tuple(command), url
        self._argument, self._arguments, self._env = argument, arguments or {}, env
        self._seconds = seconds
        self.effects = True
        self._described = ""
        self._client: Client | None = None
        self._closing = asyncio.Event()
        self._serving: asyncio.Task[None] | None = None

    @property
    def identity(self) -> str:
        """The tool as its server describes it, and the fixed arguments; not the server's address."""
        fixed = json.dumps(self._arguments, sort_keys=True)
        return f"mcp/1 {self._tool} {self._argument} {fixed} {self._described}"

    async def __aenter__(self) -> Self:
        """Connects to the server and checks that it has the tool.

        Raises:
            ExtraMissing: The SDK is not installed.
            ModelUnavailable: The server cannot be started or reached.
            UsageError: The server has no such tool, or the tool no such argument.
        """
        self._closing.clear()
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        # The SDK's context managers must be exited by the task that entered them, so this task does both.
        self._serving = asyncio.create_task(self._serve(ready), name=f"MCP tool {self._tool}")
        try:
            async with asyncio.timeout(STARTS):
                await ready
        except TimeoutError:
            await self.__aexit__()
            message = f"the server of MCP tool {self._tool!r} did not answer within {STARTS:g} seconds"
            raise ModelUnavailable(message) from None
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        serving, self._serving = self._serving, None
        if serving is not None:
            self._closing.set()
            if self._client is None:
                serving.cancel()  # still connecting, or ended
            await asyncio.wait([serving])

    async def speak(self, turn: Turn) -> Said | None:
        """Calls the tool; says its texts, with its structured value as data.

        Raises:
            ModelError: The tool reports an error.
            ModelUnavailable: The server has disconnected.
            TimeoutError: The tool did not answer within `seconds`.
        """
        if self._client is None:
            raise ModelUnavailable(f"the server of MCP tool {self._tool!r} has disconnected")
        assert self._argument is not None
        given: dict[str, Any] = {**self._arguments, self._argument: asked(turn)}
        async with asyncio.timeout(self._seconds):
            outcome = await self._client.call_tool(self._tool, given)
        words = "\n".join(part.text for part in outcome.content if part.type == "text").strip()
        if outcome.is_error:
            raise ModelError(f"MCP tool {self._tool!r} failed: {words or 'it does not say why'}")
        return Said.words(words, data=outcome.structured_content) if words else None

    async def _serve(self, ready: asyncio.Future[None]) -> None:
        try:
            client = _client(self._command, self._url, self._env)
            async with client:
                self._check(await _find(client, self._tool))
                self._client = client
                ready.set_result(None)
                await self._closing.wait()
        except Exception as error:  # noqa: BLE001
            # The SDK may raise anything, alone or in a group; `__aenter__` waits for `ready`.
            if not ready.done():
                ready.set_exception(_translated(error, self._tool))
        finally:
            self._client = None

    def _check(self, tool: ServersTool) -> None:
        schema = tool.input_schema
        known: list[str] = list(schema.get("properties", {}))
        open_ones = [name for name in schema.get("required", ()) if name not in self._arguments]
        if self._argument is None:
            if len(open_ones) != 1:
                names = ", ".join(known) or "it has none"
                raise UsageError(f"MCP tool {self._tool!r}: say which `argument` takes the text: {names}")
            self._argument = str(open_ones[0])
        for name in (self._argument, *self._arguments):
            if name not in known:
                raise UsageError(
                    f"MCP tool {self._tool!r} has no argument {name!r}; it has {', '.join(known)}"
                )
        says = tool.annotations
        self.effects = not (says is not None and (says.read_only_hint or says.idempotent_hint))
        self._described = json.dumps([tool.description, schema], sort_keys=True)


def _client(command: Sequence[str], url: str | None, env: dict[str, str] | None) -> Client:
    try:
        from mcp import Client, StdioServerParameters
    except ImportError as error:
        raise ExtraMissing("an MCP member", "mcp") from error
    if url is not None:
        return Client(url)
    logging.getLogger("mcp.client.stdio").addFilter(_without_traceback)
    return Client(StdioServerParameters(command=command[0], args=list(command[1:]), env=env))


def _without_traceback(record: logging.LogRecord) -> bool:
    """A log filter without tracebacks: the SDK logs one for each line that is not of the protocol."""
    record.exc_info = None
    return True


async def _find(client: Client, name: str) -> ServersTool:
    names: list[str] = []
    cursor: str | None = None
    while True:
        page = await client.list_tools(cursor=cursor)
        for tool in page.tools:
            if tool.name == name:
                return tool
            names.append(tool.name)
        cursor = page.next_cursor
        if cursor is None:
            raise UsageError(f"the MCP server has no tool {name!r}; it has {', '.join(names) or 'none'}")


def _translated(error: Exception, tool: str) -> Exception:
    """Errors of nlsom unchanged; others as `ModelUnavailable`, described by the innermost cause."""
    while isinstance(error, ExceptionGroup):
        error = cast("ExceptionGroup[Exception]", error).exceptions[0]
    if isinstance(error, UsageError | ExtraMissing):
        return error
    return ModelUnavailable(
        f"the server of MCP tool {tool!r} is unavailable: {type(error).__name__}: {error}"
    )
