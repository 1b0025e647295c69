"""JSON bodies, read off the event loop where they are large."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Coroutine
from typing import Any, NoReturn

from fastapi import Request, Response
from fastapi.routing import APIRoute

from nlsom_serve.app.errors import bad

_LARGE = 64 * 1024
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


class _JsonRequest(Request):
    async def json(self) -> Any:
        """The body as JSON, and nothing that JSON does not know."""
        body = await self.body()
        return await asyncio.to_thread(_parse, body) if len(body) > _LARGE else _parse(body)


class JsonRoute(APIRoute):
    """A route whose bodies are read strictly."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler, given our kind of request."""
        handle = super().get_route_handler()

        async def handler(request: Request) -> Response:
            return await handle(_JsonRequest(request.scope, request.receive))

        return handler


def _parse(body: bytes) -> Any:
    try:
        value = json.loads(body.decode("utf-8"), parse_constant=_refuse, object_pairs_hook=_once)
        if _SURROGATE.search(body):
            json.dumps(value, ensure_ascii=False).encode()  # pairs are joined by now; what is left is lone
        return value
    except UnicodeDecodeError:
        raise bad("the body is not UTF-8", code="invalid_json") from None
    except UnicodeEncodeError:
        raise bad("the body holds half a character (a lone surrogate)", code="invalid_json") from None
    except json.JSONDecodeError as error:
        told = f"the body is not valid JSON ({error.msg}, line {error.lineno}, column {error.colno})"
        raise bad(told, code="invalid_json") from None
    except _Twice as error:
        raise bad(f"the body says {str(error)[:80]!r} twice", code="invalid_json") from None
    except RecursionError:
        raise bad("the body is nested too deeply", code="invalid_json") from None
    except ValueError:  # a constant that JSON does not know, or a number of more than 4,300 digits
        raise bad("the body holds a number that cannot be read", code="invalid_json") from None


class _Twice(Exception):
    """A key that stands twice in an object: readers differ in which of them counts."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for key, value in pairs:
        if key in made:
            raise _Twice(key)
        made[key] = value
    return made


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)
