"""What nlsom counts on from a vLLM server, asked of a real one over plain HTTP."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import re
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from PIL import Image

from nlsom_serve.vllm import Metrics, Server, status

pytestmark = pytest.mark.vllm

Content = str | list[dict[str, Any]]


@pytest.fixture
async def http() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(trust_env=False, timeout=1800) as client:
        yield client


async def ask(http: httpx.AsyncClient, server: Server, content: Content, **fields: Any) -> httpx.Response:
    body = {
        "model": server.model,
        "messages": [{"role": "user", "content": content}],
        "max_tokens": 8,
        "temperature": 0,
    }
    return await http.post(f"{server.url}/v1/chat/completions", json=body | fields)


async def reply(http: httpx.AsyncClient, server: Server, content: Content, **fields: Any) -> dict[str, Any]:
    response = await ask(http, server, content, **fields)
    assert response.status_code == 200, response.text
    return response.json()


def picture(colour: str) -> dict[str, Any]:
    out = io.BytesIO()
    Image.new("RGB", (160, 120), colour).save(out, "PNG")
    url = "data:image/png;base64," + base64.b64encode(out.getvalue()).decode()
    return {"type": "image_url", "image_url": {"url": url}}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


async def test_pictures_are_read_each_as_64_tokens(http: httpx.AsyncClient, eyes: Server):
    counts = [
        (await reply(http, eyes, [*(picture(c) for c in colours), text("What is it?")]))["usage"][
            "prompt_tokens"
        ]
        for colours in ([], ["red"], ["red", "blue"])
    ]
    # Each picture also brings the line break that the chat template puts after it.
    assert counts[1] - counts[0] in {64, 65}
    assert counts[2] - counts[1] == counts[1] - counts[0]


async def test_another_picture_gives_other_log_probabilities(http: httpx.AsyncClient, eyes: Server):
    async def first(colour: str) -> float:
        said = await reply(http, eyes, [picture(colour), text("What is it?")], max_tokens=1, logprobs=True)
        return said["choices"][0]["logprobs"]["content"][0]["logprob"]

    assert await first("red") == pytest.approx(await first("red"), abs=0.02)
    assert await first("red") != await first("yellow")


@pytest.mark.parametrize(
    "content",
    [
        [picture("red")] * 3 + [text("Too many?")],
        [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}, text("Broken?")],
    ],
    ids=["more pictures than the profile allows", "a broken picture"],
)
async def test_what_cannot_be_read_is_a_400_with_a_reason(
    http: httpx.AsyncClient, eyes: Server, content: list[dict[str, Any]]
):
    response = await ask(http, eyes, content)
    assert response.status_code == 400
    assert re.search("image", response.json()["error"]["message"], re.IGNORECASE)


async def test_a_picture_to_a_language_model_is_a_400(http: httpx.AsyncClient, words: Server):
    assert (await ask(http, words, [picture("red"), text("What is it?")])).status_code == 400


async def test_a_file_of_the_server_is_not_read(http: httpx.AsyncClient, eyes: Server):
    file = {"type": "image_url", "image_url": {"url": "file:///etc/hostname"}}
    assert (await ask(http, eyes, [file, text("What is it?")])).status_code >= 400


async def test_a_prompt_that_is_too_long_is_a_400_that_tells_the_limit(
    http: httpx.AsyncClient, words: Server
):
    response = await ask(http, words, "word " * 3000)
    assert response.status_code == 400
    assert "2048" in response.json()["error"]["message"]


async def test_a_choice_is_one_of_the_choices_and_has_log_probabilities(
    http: httpx.AsyncClient, eyes: Server
):
    said = await reply(
        http,
        eyes,
        [picture("red"), text("Is it red?")],
        structured_outputs={"choice": ["yes", "no"]},
        logprobs=True,
        top_logprobs=2,
    )
    choice = said["choices"][0]
    assert choice["message"]["content"] in {"yes", "no"}
    assert choice["finish_reason"] == "stop"
    assert said["usage"]["completion_tokens"] <= 3
    assert all(token["logprob"] <= 0 for token in choice["logprobs"]["content"])


async def test_a_regular_expression_is_kept_to(http: httpx.AsyncClient, words: Server):
    said = await reply(http, words, "How many cats?", structured_outputs={"regex": "[0-9]{1,3}"})
    assert re.fullmatch("[0-9]{1,3}", said["choices"][0]["message"]["content"])


async def test_a_grammar_is_kept_to(http: httpx.AsyncClient, words: Server):
    grammar = 'root ::= term (" + " term)?\nterm ::= [0-9] | "x"'
    said = await reply(http, words, "Write a sum.", structured_outputs={"grammar": grammar})
    assert re.fullmatch(r"[0-9x]( \+ [0-9x])?", said["choices"][0]["message"]["content"])


async def test_a_json_schema_is_kept_to(http: httpx.AsyncClient, words: Server):
    schema = {
        "type": "object",
        "properties": {"answer": {"enum": ["cat", "dog"]}, "sure": {"type": "boolean"}},
        "required": ["answer", "sure"],
        "additionalProperties": False,
    }
    said = await reply(
        http,
        words,
        "Is it a cat or a dog? Answer in JSON.",
        response_format={"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}},
        max_tokens=60,
    )
    content = said["choices"][0]["message"]["content"]
    value = json.loads(content)
    assert content == json.dumps(value, separators=(",", ":")), (
        "a small model pads until it is cut, if it may"
    )
    assert value["answer"] in {"cat", "dog"}
    assert isinstance(value["sure"], bool)


async def test_a_shared_beginning_is_read_from_the_cache(http: httpx.AsyncClient, words: Server):
    shared = " ".join(
        f"Member {n} says that the boat number {n * 7} is left of the house." for n in range(40)
    )
    before = Metrics.read((await http.get(f"{words.url}/metrics")).text)
    first = (await reply(http, words, f"{shared} You are a pilot.", max_tokens=1))["usage"]
    again = (await reply(http, words, f"{shared} You are a cook.", max_tokens=1))["usage"]
    assert first["prompt_tokens_details"]["cached_tokens"] < 0.5 * first["prompt_tokens"]
    assert again["prompt_tokens_details"]["cached_tokens"] >= 0.75 * again["prompt_tokens"]
    done = Metrics.read((await http.get(f"{words.url}/metrics")).text).since(before)
    assert done.cache_hits >= again["prompt_tokens_details"]["cached_tokens"]


async def test_a_client_that_leaves_stops_the_generation(http: httpx.AsyncClient, words: Server):
    async def metrics() -> Metrics:
        return Metrics.read((await http.get(f"{words.url}/metrics")).text)

    before = await metrics()
    asked = [
        asyncio.create_task(ask(http, words, f"Tell story {n}.", max_tokens=1800, ignore_eos=True))
        for n in range(4)
    ]
    while (await metrics()).running < 4:
        await asyncio.sleep(0.05)
    for task in asked:
        task.cancel()
    await asyncio.gather(*asked, return_exceptions=True)
    while (await metrics()).running:
        await asyncio.sleep(0.05)
    assert (await metrics()).since(before).generated_tokens < 4 * 1800, "it wrote all of it"


async def test_status_tells_what_both_servers_do(http: httpx.AsyncClient, eyes: Server, words: Server):
    task = asyncio.create_task(ask(http, words, "Tell a story.", max_tokens=1900, ignore_eos=True))
    seen = {each.server.name: each for each in await status()}
    # On a busy machine a server may be too slow to answer at all, or write nothing between two readings.
    while not seen["words"].generation_rate or seen["eyes"].state != "serving":
        assert not task.done(), "it wrote all of it, and status never saw it"
        seen = {each.server.name: each for each in await status()}
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    busy, idle = seen["words"], seen["eyes"]
    assert busy.metrics is not None
    assert (busy.state, busy.server.model, busy.metrics.running) == ("serving", "smollm2", 1)
    assert idle.generation_rate == 0
    assert idle.server.url == eyes.url
