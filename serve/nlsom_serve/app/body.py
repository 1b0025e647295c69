"""Strict parsing of JSON bodies; large ones are parsed in a worker thread."""

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
        """Parses the body as strict JSON."""
        body = await self.body()
        return await asyncio.to_thread(_parse, body) if len(body) > _LARGE else _parse(body)


class JsonRoute(APIRoute):
    """A route that parses bodies as strict JSON."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Wraps FastAPI's handler so that it gets a `_JsonRequest`."""
        handle = super().get_route_handler()

        async def handler(request: Request) -> Response:
            return await handle(_JsonRequest(request.scope, request.receive))

        return handler


def _parse(body: bytes) -> Any:
    try:
        value = json.loads(
            body.decode("utf-8"), parse_constant=_refuse_constant, object_pairs_hook=_unique_keys
        )
        if _SURROGATE.search(body):
            json.dumps(value, ensure_ascii=False).encode()  # fails if one is lone
        return value
    except UnicodeDecodeError:
        raise bad("the body is not UTF-8", code="invalid_json") from None
    except UnicodeEncodeError:
        raise bad("the body contains a lone surrogate", code="invalid_json") from None
    except json.JSONDecodeError as error:
        message = f"the body is not valid JSON ({error.msg}, line {error.lineno}, column {error.colno})"
        raise bad(message, code="invalid_json") from None
    except _DuplicateKey as error:
        raise bad(f"the body has a duplicate key: {str(error)[:80]!r}", code="invalid_json") from None
    except RecursionError:
        raise bad("the body is nested too deeply", code="invalid_json") from None
    except ValueError:  # NaN or Infinity, or an integer of more than 4,300 digits
        raise bad("the body contains an invalid number", code="invalid_json") from None


class _DuplicateKey(Exception):
    """An object has a key twice. Parsers differ in which value they keep, so it is refused."""


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for key, value in pairs:
        if key in made:
            raise _DuplicateKey(key)
        made[key] = value
    return made


def _refuse_constant(constant: str) -> NoReturn:
    raise ValueError(constant)
