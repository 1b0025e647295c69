"""Societies, health, and metrics."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter, Response

from nlsom.drawing import draw
from nlsom.society import Society
from nlsom_serve.about import about, structure_of
from nlsom_serve.app.errors import ending
from nlsom_serve.app.metrics import Metrics
from nlsom_serve.app.needs import TheHouse
from nlsom_serve.app.replies import MemberCard, SocietyCard, SocietyDetail, SocietyList, Status, failures

router = APIRouter()


@router.get("/v1/societies", tags=["societies"], responses=failures(401))
async def list_societies(house: TheHouse) -> SocietyList:
    """Lists the societies."""
    return SocietyList(data=[_card(id, society) for id, society in house.societies.items()])


@router.get("/v1/societies/{name}", tags=["societies"], responses=failures(400, 401, 404))
async def get_society(name: str, house: TheHouse) -> SocietyDetail:
    """Tells who sits in a society, whom each hears, and what is done."""
    society = house.society(name)
    told = about(society)
    return SocietyDetail(
        **_card(name, society).model_dump(),
        seats=[MemberCard(**member) for member in told["members"]],
        phases=told["phases"],
        verdict=told["verdict"],
    )


@router.get(
    "/v1/societies/{name}/graph.svg",
    tags=["societies"],
    response_class=Response,
    responses={
        200: {"content": {"image/svg+xml": {}}, "description": "A drawing."},
        **failures(400, 401, 404),
    },
)
async def draw_society(name: str, house: TheHouse) -> Response:
    """Draws a society: who is there, and who hears whom."""
    society = house.society(name)
    svg = await asyncio.to_thread(draw, society.members, structure_of(society), title=society.name)
    return Response(svg, media_type="image/svg+xml")


@router.get("/health", tags=["server"], responses=failures())
async def health() -> Status:
    """Says that the process answers."""
    return Status(status="ok")


@router.get("/ready", tags=["server"], responses=failures(503))
async def ready(house: TheHouse) -> Status:
    """Says whether new mindstorms are taken; not any more once the server is about to end."""
    if house.draining.is_set():
        raise ending()
    return Status(status="ready")


@router.get(
    "/metrics",
    tags=["server"],
    response_class=Response,
    responses={
        200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "Figures."},
        **failures(401),
    },
)
async def metrics(house: TheHouse) -> Response:
    """Figures for Prometheus."""
    return Response(house.metrics.text(), headers={"Content-Type": Metrics.content_type})


def _card(id: str, society: Society) -> SocietyCard:
    return SocietyCard(
        id=id,
        name=society.name,
        about=society.about,
        task=society.task.kind,
        members=len(society.members),
    )
