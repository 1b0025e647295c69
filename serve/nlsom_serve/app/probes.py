"""Health, readiness and metrics endpoints."""

from __future__ import annotations

from fastapi import APIRouter, Response

from nlsom_serve.app.dependencies import TheHouse
from nlsom_serve.app.errors import shutting_down
from nlsom_serve.app.metrics import Metrics
from nlsom_serve.app.replies import Status, failures

router = APIRouter(tags=["server"])


@router.get("/health", responses=failures())
async def health() -> Status:
    """Liveness: the process responds."""
    return Status(status="ok")


@router.get("/ready", responses=failures(503))
async def ready(house: TheHouse) -> Status:
    """Readiness: 503 once the server is shutting down and accepts no new mindstorms."""
    if house.draining.is_set():
        raise shutting_down()
    return Status(status="ready")


@router.get(
    "/metrics",
    response_class=Response,
    responses={
        200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "Metrics."},
        **failures(401),
    },
)
async def metrics(house: TheHouse) -> Response:
    """Metrics for Prometheus."""
    return Response(house.metrics.text(), headers={"Content-Type": Metrics.content_type})
