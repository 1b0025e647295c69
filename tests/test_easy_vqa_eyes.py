"""The witnesses of examples/easy_vqa: what each eye says is true, and only its own member hears it."""

import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from nlsom.bench.sets import load_set
from nlsom.model import Completion
from nlsom.testing.agents import VOTE, panel

FOLDER = Path(__file__).parents[1] / "examples" / "easy_vqa"


@pytest.fixture
def witness(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    spec = importlib.util.spec_from_file_location("witness", FOLDER / "witness.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "witness", module)
    spec.loader.exec_module(module)
    return module


def pixels(path):
    return np.asarray(Image.open(path).convert("RGB"), np.int64)


def test_eyes_see_shape_and_colour_as_the_set_has_them(witness):
    path = load_set("easy-vqa").path / "data" / "test"
    seen = {"shape": [], "colour": []}
    for question, answer, picture in json.loads((path / "questions.json").read_text())[:3000]:
        if question.startswith("what"):
            kind = "colour" if "color" in question else "shape"
            if kind == "shape" and answer in witness.COLOURS:
                continue
            told = getattr(witness, kind)(pixels(path / "images" / f"{picture}.png"))
            seen[kind].append(f" {answer}." in told)
    assert min(map(len, seen.values())) > 200
    assert all(seen["colour"])
    assert np.mean(seen["shape"]) > 0.98


def test_an_eye_for_places_sees_no_more_than_the_place(witness):
    picture = np.full((60, 60, 3), 250)
    picture[2:12, 45:55] = (255, 0, 0)
    told = witness.where(picture)
    assert "top right" in told
    assert not any(word in told for word in ("red", "rectangle"))


async def test_what_an_eye_whispers_is_heard_by_its_own_mind_only(witness):
    class Listening:
        identity, sees = "listening", False

        def __init__(self):
            self.prompts = []

        async def complete(self, prompt, *, form, settings, seed):
            self.prompts.append(prompt.text)
            return Completion("yes")

    model = Listening()
    members = [witness.Witness(model=model, eye=eye) for eye in (witness.shape, witness.colour)]
    async with panel(members, [VOTE, VOTE.model_copy(update={"name": "again"})]) as society:
        picture = Image.new("RGB", (64, 64), (240, 240, 240))
        picture.paste((255, 0, 0), (10, 10, 30, 30))
        task = await society.make_task("Is it?", images=[picture], choices=["yes", "no"])
        await society.ask(task)
    assert len(model.prompts) == 4
    assert sorted("is red" in prompt for prompt in model.prompts) == [False, False, True, True]
    assert sorted("a rectangle" in prompt for prompt in model.prompts) == [False, False, True, True]
    assert not any("is red" in prompt and "a rectangle" in prompt for prompt in model.prompts)
