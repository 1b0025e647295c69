"""Errors as the OpenAI API tells them: `{"error": {"message", "type", "param", "code"}}`."""

from __future__ import annotations

import logging
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from nlsom.errors import MediaError, MemberFailed, ModelError, NlsomError, Unavailable, UsageError
from nlsom_serve.app.redact import redact

log = logging.getLogger("nlsom.serve")


class ErrorDetail(BaseModel):
    """What was wrong.

    Attributes:
        message: In words: what was wrong and what to do.
        type: Kind of error.
        param: The parameter that is to blame.
        code: For programs.
    """

    message: str
    type: str
    param: str | None = None
    code: str | None = None


class ErrorBody(BaseModel):
    """The body of every answer that is an error."""

    error: ErrorDetail


class ApiError(HTTPException):
    """An answer that is an error."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str,
        param: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(status, message, headers)
        self.code, self.param = code, param

    @property
    def message(self) -> str:
        """What was wrong, in words."""
        return str(self.detail)

    @property
    def body(self) -> dict[str, Any]:
        """The error in OpenAI's shape."""
        kind = _type(self.status_code)
        return {"error": {"message": self.message, "type": kind, "param": self.param, "code": self.code}}

    def response(self) -> JSONResponse:
        """The answer."""
        return JSONResponse(self.body, self.status_code, headers=dict(self.headers or {}))


def bad(message: str, *, param: str | None = None, code: str = "invalid_value") -> ApiError:
    """400: the request cannot be used as it is."""
    return ApiError(400, message, code=code, param=param)


def not_found(what: str, *, code: str = "not_found", param: str | None = None) -> ApiError:
    """404."""
    return ApiError(404, what, code=code, param=param)


def busy(message: str, *, seconds: int, code: str = "rate_limit_exceeded") -> ApiError:
    """429, and after how many seconds it is worth trying again."""
    return ApiError(429, message, code=code, headers={"Retry-After": str(seconds)})


def ending() -> ApiError:
    """503: no new mindstorms are taken."""
    return ApiError(503, "the server is about to end", code="ending", headers={"Retry-After": "5"})


def from_nlsom(error: NlsomError) -> ApiError:
    """What an error of the library means to a client."""
    told = redact(str(error))
    match error:
        case MediaError():
            return bad(told, code="invalid_image", param="messages")
        case UsageError():
            return bad(told)
        case Unavailable():
            return ApiError(503, told, code="unavailable", headers={"Retry-After": "5"})
        case MemberFailed():
            return ApiError(502, told, code="member_failed")
        case ModelError():
            return ApiError(502, told, code="model_error")
        case _:
            return ApiError(500, told, code="stopped")


def _type(status: int) -> str:
    match status:
        case 401:
            return "authentication_error"
        case 403:
            return "permission_error"
        case 404:
            return "not_found_error"
        case 429:
            return "rate_limit_error"
        case _:
            return "invalid_request_error" if status < 500 else "server_error"


def install(app: FastAPI) -> None:
    """Answers every error of `app` in this shape."""

    async def api(_: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, ApiError)
        return error.response()

    async def nlsom(_: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, NlsomError)
        return from_nlsom(error).response()

    async def invalid(_: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RequestValidationError)
        return _invalid(error).response()

    async def http(_: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, HTTPException)
        code = {404: "not_found", 405: "method_not_allowed"}.get(error.status_code, "invalid_request")
        headers = dict(error.headers or {})
        return ApiError(error.status_code, str(error.detail), code=code, headers=headers).response()

    async def fault(_: Request, error: Exception) -> JSONResponse:
        # The last boundary: the log has the traceback, the client is told nothing of it.
        log.error("a fault of the server", exc_info=error)
        return ApiError(500, "a fault of the server; its log says more", code="internal_error").response()

    app.add_exception_handler(ApiError, api)
    app.add_exception_handler(NlsomError, nlsom)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, http)
    app.add_exception_handler(Exception, fault)


def _invalid(error: RequestValidationError) -> ApiError:
    """The first thing that is wrong with a request; its value is not repeated."""
    first = error.errors()[0]
    loc = [str(step) for step in first["loc"] if step not in ("body", "query", "path")]
    param = ".".join(loc) or None
    if first["type"] == "json_invalid":
        return bad("the body is not valid JSON", code="invalid_json")
    context: dict[str, object] = first.get("ctx") or {}
    inner = context.get("error")
    if first["type"] == "value_error" and isinstance(inner, Refused):
        return bad(str(inner), param=inner.param, code="unsupported_parameter")
    message = str(first["msg"]).removeprefix("Value error, ")
    if first["type"] == "extra_forbidden":
        return bad(f"unknown parameter {param!r}", param=param, code="unknown_parameter")
    return bad(f"{param}: {message}" if param else message, param=param)


class Refused(ValueError):
    """A parameter that means something which a society cannot do."""

    def __init__(self, param: str, why: str) -> None:
        super().__init__(f"{param} is not supported: {why}")
        self.param = param
