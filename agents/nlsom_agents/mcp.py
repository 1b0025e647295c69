"""A tool of an MCP server as a member, by the official SDK."""

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
"""Seconds that a server may take until it answers; `npx` and `uvx` fetch one first."""


class Mcp:
    """A member that is a tool of an MCP server, over stdio or HTTP.

    It is called with what was said last of all that its seat hears, or with the question, as `argument`. A
    tool that does not say that it only reads, or that calling it twice changes nothing more, counts as one
    with effects: it is never silently called again.

    Args:
        tool: Name of the tool.
        command: The server's program and its arguments; it runs while the society is open.
        url: Instead, where a server listens: `http://HOST:PORT/mcp`.
        argument: The tool's argument that takes the words; by default its only one that is required.
        arguments: Other arguments, the same in every call.
        env: Variables of the program, beside the few that it inherits.
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
        """The tool as its server describes it, and the fixed arguments; never where the server is."""
        fixed = json.dumps(self._arguments, sort_keys=True)
        return f"mcp/1 {self._tool} {self._argument} {fixed} {self._described}"

    async def __aenter__(self) -> Self:
        """Connects, and looks whether the server has the tool.

        Raises:
            ExtraMissing: The SDK is not installed.
            ModelUnavailable: The server cannot be started or reached.
            UsageError: It has no such tool, or the tool no such argument.
        """
        self._closing.clear()
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        # The SDK wants to be left by the task that entered it: this one.
        self._serving = asyncio.create_task(self._serve(ready), name=f"MCP tool {self._tool}")
        try:
            async with asyncio.timeout(STARTS):
                await ready
        except TimeoutError:
            await self.__aexit__()
            told = f"the server of MCP tool {self._tool!r} did not answer within {STARTS:g} seconds"
            raise ModelUnavailable(told) from None
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        serving, self._serving = self._serving, None
        if serving is not None:
            self._closing.set()
            if self._client is None:
                serving.cancel()  # it is still connecting, or over
            await asyncio.wait([serving])

    async def speak(self, turn: Turn) -> Said | None:
        """What the tool returns: its texts, and its structured value as data.

        Raises:
            ModelError: The tool says that it failed.
            ModelUnavailable: The server is gone.
            TimeoutError: The tool did not answer within `seconds`.
        """
        if self._client is None:
            raise ModelUnavailable(f"the server of MCP tool {self._tool!r} is gone")
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
                self._take(await _find(client, self._tool))
                self._client = client
                ready.set_result(None)
                await self._closing.wait()
        except Exception as error:  # noqa: BLE001
            # Whatever the SDK raises, alone or in a group: whoever waits is told what it means.
            if not ready.done():
                ready.set_exception(_told(error, self._tool))
        finally:
            self._client = None

    def _take(self, tool: ServersTool) -> None:
        schema = tool.input_schema
        known: list[str] = list(schema.get("properties", {}))
        open_ones = [name for name in schema.get("required", ()) if name not in self._arguments]
        if self._argument is None:
            if len(open_ones) != 1:
                names = ", ".join(known) or "it has none"
                raise UsageError(f"MCP tool {self._tool!r}: say which `argument` takes the words: {names}")
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
    logging.getLogger("mcp.client.stdio").addFilter(_in_a_line)
    return Client(StdioServerParameters(command=command[0], args=list(command[1:]), env=env))


def _in_a_line(record: logging.LogRecord) -> bool:
    """What a server prints beside the protocol, such as a greeting, is told without a traceback."""
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


def _told(error: Exception, tool: str) -> Exception:
    """An error of ours as it is; any other as a server that cannot be reached, by its innermost cause."""
    while isinstance(error, ExceptionGroup):
        error = cast("ExceptionGroup[Exception]", error).exceptions[0]
    if isinstance(error, UsageError | ExtraMissing):
        return error
    return ModelUnavailable(f"the server of MCP tool {tool!r} cannot be had: {type(error).__name__}: {error}")
