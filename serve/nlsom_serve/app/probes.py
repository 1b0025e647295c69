"""What watches over the server asks it: whether it answers, whether it takes more, and its figures."""

from __future__ import annotations

from fastapi import APIRouter, Response

from nlsom_serve.app.dependencies import TheHouse
from nlsom_serve.app.errors import ending
from nlsom_serve.app.metrics import Metrics
from nlsom_serve.app.replies import Status, failures

router = APIRouter(tags=["server"])


@router.get("/health", responses=failures())
async def health() -> Status:
    """Says that the process answers."""
    return Status(status="ok")


@router.get("/ready", responses=failures(503))
async def ready(house: TheHouse) -> Status:
    """Says whether new mindstorms are taken; not any more once the server is about to end."""
    if house.draining.is_set():
        raise ending()
    return Status(status="ready")


@router.get(
    "/metrics",
    response_class=Response,
    responses={
        200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "Figures."},
        **failures(401),
    },
)
async def metrics(house: TheHouse) -> Response:
    """Figures for Prometheus."""
    return Response(house.metrics.text(), headers={"Content-Type": Metrics.content_type})
