import asyncio
import hashlib
import io
import re
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from nlsom.agent import Agent, identity
from nlsom.errors import ExtraMissing, MediaError
from nlsom.form import ChoiceForm
from nlsom.testing.pictures import plain
from nlsom.testing.turns import make_turn
from nlsom_agents.colour import Colour, Palette
from nlsom_agents.detect import Detect
from nlsom_agents.ocr import Ocr
from nlsom_agents.sight.detector import Thing, keep
from nlsom_agents.sight.finding import say
from nlsom_agents.sight.palette import name_pixels
from nlsom_agents.sight.places import place, places
from nlsom_agents.sight.question import read_question
from nlsom_agents.sight.reader import Line
from nlsom_agents.sight.runtime import FOLDER, Pixels, Sight, pixels
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
        assert re.match(rf"{kind.__name__.casefold()}/\d+ ", identity(expert))
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


@pytest.mark.parametrize(("kind", "library"), [(Detect, "openvino"), (Tag, "openvino"), (Ocr, "rapidocr")])
async def test_a_missing_library_is_said_with_what_to_install(
    kind: type[Detect | Tag | Ocr], library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    async with kind() as expert:
        with pytest.raises(ExtraMissing, match=r"nlsom\[local\]"):
            await expert.speak(make_turn(pictures=[plain("red")]))


def test_openvino_does_not_report_its_use_nor_start_a_thread_for_it() -> None:
    code = "import nlsom_agents, openvino, sys, threading; print(threading.active_count(), *sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.split()[0] == "1"
    assert "openvino_telemetry.main" not in said.split()


def test_the_shipped_weights_are_those_of_the_notice() -> None:
    notice = (Path(__file__).parents[1] / "NOTICE").read_text(encoding="utf-8")
    for name in ("nanodet-g-fp16.onnx", "efficientnet-lite0-fp16.onnx", "imagenet_labels.json"):
        digest = hashlib.sha256((FOLDER / name).read_bytes()).hexdigest()
        assert re.search(rf"^{re.escape(name)}\n(?:  .*\n)*  SHA-256 {digest}$", notice, re.M), name


VOCABULARY = """
what which is are there how many colour of the a dog cats red car person on left say line 2 first or
woman where picture animal espresso cup ? . no shirt
"""
WORDS = st.lists(st.sampled_from(VOCABULARY.split()), max_size=9).map(" ".join)


@given(WORDS | st.text(max_size=30), st.lists(st.text(max_size=8) | WORDS, min_size=1, max_size=4))
def test_whatever_is_asked_it_votes_for_an_option_or_says_why_not(text: str, options: list[str]) -> None:
    things = (Thing("dog", 0.8, 0.1, 0.1, 0.3, 0.3), Thing("person", 0.5, 0.4, 0.1, 0.9, 0.9))
    line = Line("stop the red car 2", 0.9, 0.1, 0.1, 0.5, 0.2)
    tags = np.zeros(1000, dtype=np.float32)
    tags[[967, 281]] = 0.5, 0.4
    named = name_pixels(pixels(plain("red", (8, 8))))
    question, form = read_question(text), ChoiceForm(options=tuple(options))
    for finding in (
        Detect().answer(things, question, options),
        Tag().answer(tags, question, options),
        Ocr().answer((line,), question, options),
        Colour().answer(Palette(named, things, 1.0), question, options),
    ):
        said = say(finding, form, None, asked=True)
        assert said.text
        assert (said.answer in options and said.why is None) or (said.answer is None and said.why)
