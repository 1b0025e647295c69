"""Errors in the OpenAI API's format: `{"error": {"message", "type", "param", "code"}}`."""

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
    """Details of an error.

    Attributes:
        message: What was wrong and what to do about it.
        type: Kind of error, as the OpenAI API names it.
        param: The parameter that caused it.
        code: Machine-readable code.
    """

    message: str
    type: str
    param: str | None = None
    code: str | None = None


class ErrorBody(BaseModel):
    """The body of every error response."""

    error: ErrorDetail


class ApiError(HTTPException):
    """An error that is sent to the client."""

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
        """What was wrong."""
        return str(self.detail)

    @property
    def body(self) -> dict[str, Any]:
        """The response body."""
        kind = _type(self.status_code)
        return {"error": {"message": self.message, "type": kind, "param": self.param, "code": self.code}}

    def response(self) -> JSONResponse:
        """The HTTP response."""
        return JSONResponse(self.body, self.status_code, headers=dict(self.headers or {}))


def bad(message: str, *, param: str | None = None, code: str = "invalid_value") -> ApiError:
    """400: the request is invalid."""
    return ApiError(400, message, code=code, param=param)


def not_found(what: str, *, code: str = "not_found", param: str | None = None) -> ApiError:
    """404: `what` says what is missing."""
    return ApiError(404, what, code=code, param=param)


def busy(message: str, *, seconds: int, code: str = "rate_limit_exceeded") -> ApiError:
    """429, with `Retry-After` in seconds."""
    return ApiError(429, message, code=code, headers={"Retry-After": str(seconds)})


def shutting_down() -> ApiError:
    """503: no new mindstorms are accepted."""
    return ApiError(503, "the server is shutting down", code="ending", headers={"Retry-After": "5"})


def from_nlsom(error: NlsomError) -> ApiError:
    """Maps an error of the library to a response; its message is redacted."""
    message = redact(str(error))
    match error:
        case MediaError():
            return bad(message, code="invalid_image", param="messages")
        case UsageError():
            return bad(message)
        case Unavailable():
            return ApiError(503, message, code="unavailable", headers={"Retry-After": "5"})
        case MemberFailed():
            return ApiError(502, message, code="member_failed")
        case ModelError():
            return ApiError(502, message, code="model_error")
        case _:
            return ApiError(500, message, code="stopped")


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
    """Installs handlers on `app`, so that every error response has this format."""

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
        # The outermost boundary: the traceback goes to the log, never to the client.
        log.error("unhandled exception", exc_info=error)
        return ApiError(500, "internal error; see the server's log", code="internal_error").response()

    app.add_exception_handler(ApiError, api)
    app.add_exception_handler(NlsomError, nlsom)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, http)
    app.add_exception_handler(Exception, fault)


def _invalid(error: RequestValidationError) -> ApiError:
    """The first fault of a request, without the offending value, which may be long or secret."""
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
    """A parameter that asks for something a society cannot do."""

    def __init__(self, param: str, why: str) -> None:
        super().__init__(f"{param} is not supported: {why}")
        self.param = param
