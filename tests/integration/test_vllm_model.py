"""Societies and their models against real vLLM servers."""

from __future__ import annotations

import asyncio
import io
import json
import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from PIL import Image

import nlsom
from nlsom.errors import ModelError, ModelUnavailable
from nlsom.form import ChoiceForm, TextForm
from nlsom.media import MediaStore
from nlsom.model import Model, Prompt, Settings
from nlsom.model.http import HttpModel
from nlsom.model.prompt import quote
from nlsom.testing.models import ModelContract, prompt_of
from nlsom_serve.vllm import Metrics, Server
from nlsom_serve.vllm.model import ProfileModel

pytestmark = pytest.mark.vllm

SMOKE = Path(__file__).parents[2] / "serve" / "gpu_smoke.py"


def picture(colour: str) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (160, 120), colour).save(out, "PNG")
    return out.getvalue()


async def metrics(server: Server) -> Metrics:
    async with httpx.AsyncClient(trust_env=False, timeout=300) as http:
        return Metrics.read((await http.get(f"{server.url}/metrics")).text)


class TestALanguageModel(ModelContract):
    """SmolLM2 by its URL."""

    context = 2048

    @pytest.fixture
    async def model(self, words: Server) -> AsyncIterator[Model]:
        async with HttpModel(f"{words.url}/v1") as model:
            yield model


class TestAVisionLanguageModel(ModelContract):
    """The tiny LLaVA by the name of its server."""

    context = 2048

    @pytest.fixture
    async def model(self, eyes: Server) -> AsyncIterator[Model]:
        async with ProfileModel(eyes.name) as model:
            yield model


async def test_a_choice_costs_at_most_three_tokens_and_brings_its_probability(words: Server):
    form = ChoiceForm(options=("a cat", "a dog"))
    async with HttpModel(f"{words.url}/v1") as model:
        said = await model.complete(prompt_of(form.instruct()), form=form, settings=Settings(), seed=0)
    assert said.text in {"A", "B"}
    assert said.usage.completion_tokens <= 3
    assert said.logprob is not None
    assert said.logprob <= 0


async def test_a_shared_head_is_read_from_the_cache_and_told_in_the_usage(words: Server):
    head = " ".join(f"Member {n} says that the kite number {n * 11} is above the bridge." for n in range(40))
    async with HttpModel(f"{words.url}/v1") as model:
        form, settings = TextForm(max_tokens=1), Settings()
        await model.complete(prompt_of(head, " You are a pilot."), form=form, settings=settings, seed=0)
        again = await model.complete(
            prompt_of(head, " You are a cook."), form=form, settings=settings, seed=0
        )
    assert again.usage.cached_tokens is not None
    assert again.usage.cached_tokens >= 0.75 * again.usage.prompt_tokens


async def test_cancelling_a_call_stops_the_server_too(words: Server):
    before = await metrics(words)
    async with HttpModel(f"{words.url}/v1", extra={"ignore_eos": True}) as model:
        form = TextForm(max_tokens=1500)
        calls = [
            asyncio.ensure_future(
                model.complete(
                    prompt_of(f"Tell story {n}, a long one."), form=form, settings=Settings(), seed=0
                )
            )
            for n in range(4)
        ]
        while (await metrics(words)).running < 2:
            await asyncio.sleep(0.05)
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        while (await metrics(words)).running:
            await asyncio.sleep(0.05)
    assert (await metrics(words)).since(before).generated_tokens < 4 * 1500, "it wrote all of it"


async def test_more_pictures_than_the_profile_allows_are_an_error_before_anything_is_sent(eyes: Server):
    before = await metrics(eyes)
    media = MediaStore()
    images = tuple([await media.add(picture(colour)) for colour in ("red", "green", "blue")])
    prompt = Prompt(head="What is it?", tail="", images=images, media=media)
    async with ProfileModel(eyes.name) as model:
        with pytest.raises(ModelError, match="at most 2 pictures"):
            await model.complete(prompt, form=TextForm(), settings=Settings(), seed=0)
    assert (await metrics(eyes)).since(before).prompt_tokens == 0


async def test_special_tokens_are_words_where_a_member_says_them(made: Path, eyes: Server):
    tokenizer = json.loads((made / "llava-tiny" / "tokenizer.json").read_text())
    special = [token["content"] for token in tokenizer["added_tokens"]]
    assert "<image>" in special
    media = MediaStore()
    image = await media.add(picture("red"))
    said = quote(" ".join(special))
    async with ProfileModel(eyes.name) as model:
        read = [
            (
                await model.complete(
                    Prompt(head=said, tail="", images=images, media=media),
                    form=TextForm(max_tokens=1),
                    settings=Settings(),
                    seed=0,
                )
            ).usage.prompt_tokens
            for images in ((), (image,))
        ]
    assert read[1] - read[0] in {64, 65}, "one picture, not two; the template may break a line after it"


SOCIETY = {
    "name": "three-eyes",
    "task": "vqa",
    "models": {"vlm": {"profile": "eyes"}},
    "members": {
        "eyes": {"agent": "vision", "model": "vlm", "role": "expert", "count": 3, "temperature": 0.7},
        "leader": {"agent": "vision", "model": "vlm", "role": "leader"},
    },
    "structure": "democracy",
    "mindstorm": [
        {"ask": "expert", "prompt": "introduce", "as": "caption", "form": {"text": {"max_tokens": 24}}},
        {"ask": "expert", "prompt": "give_answer", "as": "answer", "form": "answer"},
        {"ask": "leader", "prompt": "choose", "as": "ballot", "form": "answer"},
    ],
    "verdict": {"rule": "decree", "of": "leader"},
    "limits": {"seconds": 3600, "on_error": "raise"},
}


async def test_three_who_see_and_a_leader_come_to_a_verdict(eyes: Server):
    before = await metrics(eyes)
    choices = ["cat", "dog", "bird"]
    async with nlsom.load(SOCIETY) as society:
        verdict = await society.ask("What is it?", images=[picture("red")], choices=choices)
    done = (await metrics(eyes)).since(before)
    assert verdict.answer in choices
    assert verdict.usage.calls == 7
    assert done.prompt_tokens == verdict.usage.prompt_tokens, "every prompt token is on the bill"
    assert verdict.usage.cached_tokens == done.cache_hits


async def test_a_society_whose_server_is_not_up_says_how_to_start_it(a_home: Path):
    society = nlsom.load(SOCIETY | {"models": {"vlm": {"profile": "nobody"}}})
    with pytest.raises(ModelUnavailable, match="nlsom models up nobody"):
        async with society:
            pass


async def test_the_smoke_test_for_gpus_runs_to_its_end(eyes: Server):
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, str(SMOKE), "--profile", f"{eyes.name}=cpu-test", "--questions", "2"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    printed = (await process.communicate())[0].decode()
    assert process.returncode == 0, printed
    assert len(re.findall(r"^    '.*' \(right: '.+'\)$", printed, re.M)) == 4, "two societies, two questions"
    (figures,) = re.findall(r"^([\d.]+) tokens/s written, .*; ([\d.]+)% of prompt tokens", printed, re.M)
    assert all(float(figure) > 0 for figure in figures)
