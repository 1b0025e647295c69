import asyncio
import io
import threading

import numpy as np
import pytest
from PIL import Image

from nlsom.agent import Agent, identity
from nlsom.errors import MediaError
from nlsom.testing.pictures import plain
from nlsom.testing.turns import make_turn
from nlsom_agents.colour import Colour
from nlsom_agents.detect import Detect
from nlsom_agents.ocr import Ocr
from nlsom_agents.sight.detector import Thing, keep
from nlsom_agents.sight.places import place, places
from nlsom_agents.sight.runtime import Pixels, Sight, pixels
from nlsom_agents.tag import Tag


async def test_a_picture_is_looked_at_once_however_many_ask_at_the_same_time() -> None:
    seen: list[tuple[int, ...]] = []

    def see(picture: Pixels) -> int:
        seen.append(picture.shape)
        return len(seen)

    turn = make_turn(pictures=[plain("red")])
    async with Sight() as sight:
        looks = (sight.look(turn.media, turn.task.images[0], "size", see) for _ in range(20))
        assert set(await asyncio.gather(*looks)) == {1}
    assert seen == [(240, 320, 3)]


async def test_no_more_looks_run_at_once_than_allowed_and_none_on_the_event_loop() -> None:
    running = peak = 0
    guard = threading.Lock()
    gate = threading.Barrier(2)

    def see(_: Pixels) -> None:
        nonlocal running, peak
        assert threading.current_thread() is not threading.main_thread()
        with guard:
            running += 1
            peak = max(peak, running)
        gate.wait(timeout=30)
        with guard:
            running -= 1

    turn = make_turn(pictures=[plain("red", (8, at)) for at in range(8, 16)])
    async with Sight(at_once=2) as sight:
        await asyncio.gather(*(sight.look(turn.media, image, "x", see) for image in turn.task.images))
    assert peak == 2


async def test_a_look_that_fails_raises_and_is_tried_again() -> None:
    tried: list[int] = []

    def see(_: Pixels) -> str:
        tried.append(1)
        if len(tried) == 1:
            raise RuntimeError("first")
        return "seen"

    turn = make_turn(pictures=[plain("red")])
    async with Sight() as sight:
        with pytest.raises(RuntimeError, match="first"):
            await sight.look(turn.media, turn.task.images[0], "x", see)
        assert await sight.look(turn.media, turn.task.images[0], "x", see) == "seen"


async def test_who_is_cancelled_does_not_take_the_look_from_the_others() -> None:
    go = threading.Event()

    def see(_: Pixels) -> str:
        go.wait(timeout=30)
        return "seen"

    turn = make_turn(pictures=[plain("red")])
    async with Sight() as sight:
        first, second = (
            asyncio.create_task(sight.look(turn.media, turn.task.images[0], "x", see)) for _ in range(2)
        )
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.sleep(0)
        go.set()
        assert await second == "seen"
        assert first.cancelled()


async def test_the_memory_is_bounded_and_survives_closing() -> None:
    seen: list[str] = []
    turn = make_turn(pictures=[plain(colour) for colour in ("red", "green", "blue")])
    sight = Sight(remembered=2)
    for image in turn.task.images:
        await sight.look(turn.media, image, "x", lambda _: seen.append("x"))
    await sight.close()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("nlsom-sight")]
    await sight.look(turn.media, turn.task.images[2], "x", lambda _: seen.append("never"))
    assert seen == ["x"] * 3
    await sight.look(turn.media, turn.task.images[0], "x", lambda _: seen.append("again"))
    assert seen[3:] == ["again"]
    await sight.close()


def test_pixels_are_upright_and_broken_bytes_are_refused() -> None:
    out = io.BytesIO()
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.new("RGB", (40, 20), "red").save(out, "JPEG", exif=exif)
    assert pixels(out.getvalue()).shape == (40, 20, 3)
    with pytest.raises(MediaError, match="cannot decode"):
        pixels(out.getvalue()[:100])


def test_of_boxes_of_one_class_that_overlap_the_best_is_kept() -> None:
    boxes = np.array([[0, 0, 10, 10], [1, 1, 10, 10], [20, 0, 30, 10], [0, 0, 10, 10], [0, 4, 10, 10]], float)
    scores = np.array([0.6, 0.9, 0.5, 0.8, 0.7])
    classes = np.array([1, 1, 1, 2, 3])
    assert keep(boxes, scores, classes) == [1, 4, 2]
    assert keep(np.zeros((0, 4)), np.zeros(0), np.zeros(0, int)) == []


def test_places_are_said_in_words() -> None:
    def at(x: float, y: float, size: float = 0.1) -> Thing:
        return Thing("cat", 0.9, x - size / 2, y - size / 2, x + size / 2, y + size / 2)

    assert place(at(0.1, 0.5)) == "on the left"
    assert place(at(0.9, 0.1)) == "at the top right"
    assert place(at(0.5, 0.9)) == "at the bottom"
    assert place(at(0.5, 0.5, 0.9)) == "filling most of the picture"
    assert places([at(0.1, 0.5), at(0.5, 0.5), at(0.5, 0.6)]) == "(one on the left, two in the centre)"
    assert places([at(x / 10, 0.5) for x in range(1, 10)]) == "from left to right"
    assert places([at(0.1, 0.5), at(0.2, 0.5)]) == "on the left"


@pytest.mark.parametrize("kind", [Detect, Tag, Ocr, Colour])
async def test_every_expert_is_an_agent_with_an_identity_and_closes_what_it_opened(
    kind: type[Detect | Tag | Ocr | Colour],
) -> None:
    async with kind() as expert:
        assert isinstance(expert, Agent)
        assert identity(expert).startswith(f"{kind.__name__.casefold()}/1 ")
        blind = await expert.speak(make_turn("Is there a dog?"))
        assert blind is not None
        assert blind.why == "there is no picture to look at"
        said = await expert.speak(make_turn(pictures=[plain("grey")], phase="caption"))
        assert said is not None
        assert said.text
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("nlsom-sight")]


async def test_experts_share_a_sight_that_its_owner_closes() -> None:
    turn = make_turn(pictures=[plain("grey")], phase="caption")
    async with Sight() as sight:
        async with Detect(sight=sight) as detect:
            await detect.speak(turn)
        assert [thread for thread in threading.enumerate() if thread.name.startswith("nlsom-sight")]
        async with Colour(sight=sight) as colour:
            said = await colour.speak(turn)
        assert said is not None
        assert "grey" in said.text
