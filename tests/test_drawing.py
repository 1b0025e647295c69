from __future__ import annotations

import io
from itertools import combinations
from math import hypot
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from nlsom.drawing import draw, draw_png
from nlsom.drawing.layout import lay_out
from nlsom.drawing.scene import shorten
from nlsom.drawing.ties import ties
from nlsom.member import Member
from nlsom.structure import (
    Chain,
    Democracy,
    Edges,
    Grid,
    Groups,
    Hierarchy,
    Layers,
    Monarchy,
    Random,
    RandomDag,
    Ring,
    ScaleFree,
    SmallWorld,
    Star,
    StructureSpec,
    edges,
)

SVG = "{http://www.w3.org/2000/svg}"
SPECS: list[StructureSpec] = [
    Chain(),
    Democracy(),
    Edges(edges=(("artist", "critic"), ("critic", "artist"), ("*", "collector"))),
    Grid(),
    Groups(),
    Groups(by=13, delegates=2),
    Hierarchy(),
    Hierarchy(fan_out=7, flow="up"),
    Layers(),
    Monarchy(heads=("collector", "m1")),
    Random(p=0.04),
    RandomDag(p=0.05),
    Ring(),
    Ring(neighbours=3, both=False),
    ScaleFree(),
    SmallWorld(),
    Star(),
]
LEAST = {Edges: 5, Monarchy: 2, SmallWorld: 5, ScaleFree: 3}
"""Members that these need."""


def society(n: int) -> list[Member]:
    """Artists, some critics, and a collector who is last."""
    roles = ["artist" if at < 0.6 * n else "critic" for at in range(n - 1)]
    return [Member(name=f"m{at}", role=role) for at, role in enumerate([*roles, "collector"])]


def discs(svg: str) -> dict[str, tuple[float, float, float]]:
    """Centre and radius of every disc by its tooltip; hubs and the legend have none and are numbered."""
    found: dict[str, tuple[float, float, float]] = {}
    for circle in ElementTree.fromstring(svg).iter(f"{SVG}circle"):
        name = circle.findtext(f"{SVG}title") or f"#{len(found)}"
        found[name] = tuple(float(circle.attrib[key]) for key in ("cx", "cy", "r"))  # type: ignore[assignment]
    return found


@pytest.mark.parametrize("n", [5, 17, 40, 129])
@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: f"{type(spec).__name__}-{spec}"[:40])
def test_every_member_is_drawn_once_and_none_overlaps_another(spec: StructureSpec, n: int) -> None:
    members = society(n)
    svg = draw(members, spec.build(members), title="Society")
    found = discs(svg)
    assert {f"{member.name} ({member.role})" for member in members} <= set(found)
    for (a, (x1, y1, r1)), (b, (x2, y2, r2)) in combinations(found.items(), 2):
        assert hypot(x1 - x2, y1 - y2) > r1 + r2, f"{a} and {b}"
    root = ElementTree.fromstring(svg)
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    assert all(r <= x <= width - r and r <= y <= height - r for x, y, r in found.values())
    assert draw(members, spec.build(members), title="Society") == svg


@pytest.mark.parametrize("n", [1, 2, 3, 17, 129])
@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: f"{type(spec).__name__}-{spec}"[:40])
def test_lines_and_hubs_say_all_that_is_heard_and_nothing_else(spec: StructureSpec, n: int) -> None:
    members = society(max(n, LEAST.get(type(spec), 1)))
    n = len(members)
    structure = spec.build(members)
    layout = lay_out(structure, n, step=40, label=50)
    direct, hubs = ties(structure, layout.points, 8)
    by_hub = {(a, b) for hub in hubs for a in hub.whom for b in hub.who if a != b}
    assert direct | by_hub == set(edges(structure, n))
    assert not direct & by_hub
    assert len(direct) + sum(len(hub.whom | hub.who) for hub in hubs) < 1_500


def test_a_democracy_of_129_is_a_hub_and_says_so() -> None:
    members = society(129)
    svg = draw(members, Democracy().build(members), title="Democracy")
    assert svg.count("<line") == 129
    assert "all connected to it hear each other" in svg


def test_two_who_hear_each_other_share_one_line_without_a_head() -> None:
    members = society(5)
    svg = draw(members, Democracy().build(members), title="Five")
    assert svg.count("<line") == 10
    assert "<polygon" not in svg
    assert draw(members, Chain().build(members), title="Five").count("<polygon") == 4


def test_a_drawing_with_too_many_lines_says_so_instead() -> None:
    members = society(400)
    svg = draw(members, Random(p=0.2).build(members), title="Crowd")
    assert "too many to be drawn" in svg
    assert "<line" not in svg
    assert len(discs(svg)) >= 400


def test_who_speaks_first_stands_above_who_hears_it() -> None:
    members = society(20)
    structure = RandomDag(p=0.2, seed=4).build(members)
    points = lay_out(structure, 20, step=40, label=50).points
    assert all(points[a][1] < points[b][1] for a, b in edges(structure, 20))


def test_heads_of_a_monarchy_stand_in_the_middle() -> None:
    members = society(30)
    found = discs(draw(members, Monarchy(heads=("collector", "m1")).build(members), title="Court"))
    xs = [found[f"m{at} (artist)"][0] for at in range(2, 18)]
    assert min(xs) < found["m29 (collector)"][0] < max(xs)
    assert min(xs) < found["m1 (artist)"][0] < max(xs)


@settings(deadline=None, max_examples=50)
@given(names=st.lists(st.text(st.characters(codec="utf-8"), min_size=1), min_size=1, max_size=6, unique=True))
def test_any_name_makes_well_formed_svg(names: list[str]) -> None:
    members = [Member(name=name, role=name) for name in names]
    ElementTree.fromstring(draw(members, Democracy().build(members), title=names[0]))


def test_names_are_escaped_and_long_ones_shortened_with_the_whole_in_a_tooltip() -> None:
    long = "the <very> long & winding name.17"
    members = [Member(name=long), Member(name="小明")]
    svg = draw(members, Democracy().build(members), title="<script>alert(1)</script>")
    root = ElementTree.fromstring(svg)
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert "<script>" not in svg
    assert texts[0] == "<script>alert(1)</script>"
    assert shorten(long, 18) in texts
    assert shorten(long, 18).endswith("ame.17")
    assert f"{long} (member)" in discs(svg)
    assert "小明" in texts


def test_a_drawing_can_be_read_without_being_seen() -> None:
    members = society(5)
    root = ElementTree.fromstring(draw(members, Ring().build(members), title="Five in a ring"))
    assert root.attrib["role"] == "img"
    assert root.findtext(f"{SVG}title") == "Five in a ring"
    about = root.findtext(f"{SVG}desc")
    assert about == "5 members: 3 artist, 1 critic, 1 collector. a line: both hear each other."


@pytest.mark.parametrize("scale", [1.0, 2.0])
def test_a_png_is_the_svg_in_pixels(scale: float) -> None:
    members = society(30)
    structure = Groups(by=10).build(members)
    root = ElementTree.fromstring(draw(members, structure, title="Groups"))
    with Image.open(io.BytesIO(draw_png(members, structure, title="Groups", scale=scale))) as picture:
        assert picture.format == "PNG"
        for size, key in zip(picture.size, ("width", "height"), strict=True):
            assert abs(size - float(root.attrib[key]) * scale) <= scale
        blue = (0x00, 0x72, 0xB2)
        svg = discs(draw(members, structure, title="Groups"))
        x, y, _ = svg["m0 (artist)"]
        assert picture.getpixel((round(x * scale), round(y * scale))) == blue


def test_a_png_shows_the_wire_id_where_the_font_lacks_letters() -> None:
    def pixels(member: Member) -> bytes:
        return draw_png([member], Democracy().build([member]), title="One")

    chinese = Member(name="小明")
    assert pixels(chinese) == pixels(Member(name="小明", id=chinese.id))
    assert pixels(chinese) != pixels(Member(name="小明", id="other"))
    assert pixels(Member(name="Ana", id="x")) == pixels(Member(name="Ana", id="y"))
