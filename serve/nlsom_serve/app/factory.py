"""Assembles the ASGI application: routes, error handlers and middleware."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import FileResponse
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from nlsom_serve.app import errors, native, openai, probes, societies
from nlsom_serve.app.guard import Guard
from nlsom_serve.app.house import House

PAGE = Path(__file__).parent.parent / "page"


def create_app(house: House) -> ASGIApp:
    """Makes the ASGI application that serves an open house."""
    app = FastAPI(
        title="nlsom",
        version=version("nlsom"),
        description="Natural-language societies of mind as an OpenAI-compatible endpoint.",
        docs_url=None,  # FastAPI's pages load scripts from other servers
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.house = house
    errors.install(app)
    for router in (openai.router, native.router, societies.router, probes.router):
        app.include_router(router)

    @app.get("/", include_in_schema=False)
    async def page() -> FileResponse:  # pyright: ignore[reportUnusedFunction]
        return FileResponse(PAGE / "index.html", headers={"Cache-Control": "no-cache"})

    app.mount("/page", StaticFiles(directory=PAGE))
    app.openapi = lambda: _openapi(app)
    inner: ASGIApp = app
    if house.settings.origins:
        inner = CORSMiddleware(
            app,
            allow_origins=list(house.settings.origins),
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["Authorization", "Content-Type", "Last-Event-ID", "X-Request-Id"],
            expose_headers=["X-Request-Id", "Retry-After", "Location"],
        )
    return Guard(inner, settings=house.settings, keys=house.keys, metrics=house.metrics)


def _openapi(app: FastAPI) -> dict[str, Any]:
    """FastAPI's OpenAPI document, plus API keys, minus the 422 responses that are never sent."""
    if app.openapi_schema is None:
        from fastapi.openapi.utils import get_openapi

        document = get_openapi(
            title=app.title, version=app.version, description=app.description, routes=app.routes
        )
        for path in document["paths"].values():
            for operation in path.values():
                operation["responses"].pop("422", None)
        for name in ("HTTPValidationError", "ValidationError"):
            document["components"]["schemas"].pop(name, None)
        document["components"]["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
        document["security"] = [{}, {"key": []}]
        app.openapi_schema = document
    return app.openapi_schema
