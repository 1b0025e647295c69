"""The routes that list, describe and draw the served societies."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter, Response

from nlsom.drawing import draw
from nlsom.society import Society
from nlsom_serve.about import about, structure_of
from nlsom_serve.app.dependencies import TheHouse
from nlsom_serve.app.replies import MemberCard, SocietyCard, SocietyDetail, SocietyList, failures

router = APIRouter(prefix="/v1/societies", tags=["societies"])


@router.get("", responses=failures(401))
async def list_societies(house: TheHouse) -> SocietyList:
    """Lists the societies."""
    return SocietyList(data=[_card(id, society) for id, society in house.societies.items()])


@router.get("/{name}", responses=failures(400, 401, 404))
async def get_society(name: str, house: TheHouse) -> SocietyDetail:
    """Returns a society's members, whom each hears, and its phases."""
    society = house.society(name)
    described = about(society)
    return SocietyDetail(
        **_card(name, society).model_dump(),
        seats=[MemberCard(**member) for member in described["members"]],
        phases=described["phases"],
        verdict=described["verdict"],
    )


@router.get(
    "/{name}/graph.svg",
    response_class=Response,
    responses={
        200: {"content": {"image/svg+xml": {}}, "description": "A drawing."},
        **failures(400, 401, 404),
    },
)
async def draw_society(name: str, house: TheHouse) -> Response:
    """Draws a society as SVG: its members, and who hears whom."""
    society = house.society(name)
    svg = await asyncio.to_thread(draw, society.members, structure_of(society), title=society.name)
    return Response(svg, media_type="image/svg+xml")


def _card(id: str, society: Society) -> SocietyCard:
    return SocietyCard(
        id=id,
        name=society.name,
        about=society.about,
        task=society.task.kind,
        members=len(society.members),
    )
