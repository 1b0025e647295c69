from __future__ import annotations

import asyncio
import json

import httpx
import pytest

from nlsom.testing.behaviours import (
    Behaviour,
    body,
    busy,
    cut,
    drip,
    drop,
    endless,
    hang,
    ok,
    status,
)
from nlsom.testing.faulty import FaultyServer

ASK = {"model": "faulty", "max_tokens": 4, "messages": [{"role": "user", "content": "one two three"}]}


async def chat(server: FaultyServer, asked: dict = ASK, **headers: str) -> httpx.Response:
    async with httpx.AsyncClient(trust_env=False) as client:
        return await client.post(server.url + "/chat/completions", json=asked, headers=headers)


async def test_a_good_answer_has_the_shape_of_a_chat_completion():
    async with FaultyServer([ok("yes", logprob=-0.5, cached=2)]) as server:
        answer = (await chat(server, ASK | {"logprobs": True})).json()
    assert answer["choices"][0]["message"]["content"] == "yes"
    assert answer["choices"][0]["logprobs"]["content"][0]["logprob"] == -0.5
    assert answer["usage"] == {
        "prompt_tokens": 3,
        "completion_tokens": 1,
        "total_tokens": 4,
        "prompt_tokens_details": {"cached_tokens": 2},
    }


async def test_without_a_text_the_first_choice_is_answered():
    async with FaultyServer() as server:
        answer = (await chat(server, ASK | {"structured_outputs": {"choice": ["B", "A"]}})).json()
    assert answer["choices"][0]["message"]["content"] == "B"


async def test_the_script_is_followed_and_then_the_last_behaviour_stays():
    async with FaultyServer([status(500), busy(retry_after=7)], then=ok("fine")) as server:
        answers = [await chat(server) for _ in range(4)]
    assert [answer.status_code for answer in answers] == [500, 429, 200, 200]
    assert answers[1].headers["retry-after"] == "7"
    assert len(server.chats) == 4
    assert server.chats[0].json == ASK
    assert server.chats[0].text == "one two three"


async def test_one_connection_serves_many_requests():
    async with FaultyServer() as server, httpx.AsyncClient(trust_env=False) as client:
        for _ in range(5):
            assert (await client.post(server.url + "/chat/completions", json=ASK)).status_code == 200
        assert len(server._open) == 1


async def test_a_slow_drip_arrives_whole():
    async with FaultyServer([drip("slowly", size=50)]) as server:
        assert (await chat(server)).json()["choices"][0]["message"]["content"] == "slowly"


@pytest.mark.parametrize("behaviour", [cut(), drop()])
async def test_an_answer_that_is_cut_is_a_protocol_error_to_the_client(behaviour: Behaviour):
    async with FaultyServer([behaviour]) as server:
        with pytest.raises(httpx.RemoteProtocolError):
            await chat(server)


async def test_garbage_is_sent_as_it_is():
    async with FaultyServer([body(b"\xff<html>")]) as server:
        assert (await chat(server)).content == b"\xff<html>"


@pytest.mark.parametrize("behaviour", [hang(), endless(every=0.01, size=10), ok(after=60)])
async def test_a_client_that_leaves_is_noticed(behaviour: Behaviour):
    async with FaultyServer([behaviour]) as server:
        asking = asyncio.ensure_future(chat(server))
        await server.until(lambda server: server.in_flight == 1)
        asking.cancel()
        await server.until(lambda server: server.disconnects == 1 and server.in_flight == 0)
        assert (await chat(server)).status_code == 200
        with pytest.raises(asyncio.CancelledError):
            await asking


async def test_the_most_that_were_in_flight_are_counted():
    async with FaultyServer(then=ok(after=0.05)) as server:
        await asyncio.gather(*(chat(server) for _ in range(5)))
        assert server.most_in_flight == 5
        assert server.in_flight == 0
        assert server.disconnects == 0


async def test_models_tokens_keys_and_paths_are_answered_like_vllm():
    async with (
        FaultyServer(models=("a", "b"), context=4, key="secret") as server,
        httpx.AsyncClient(trust_env=False, base_url=server.url) as client,
    ):
        assert (await client.get("/models")).status_code == 401
        client.headers["Authorization"] = "Bearer secret"
        listed = (await client.get("/models")).json()["data"]
        assert [(one["id"], one["max_model_len"]) for one in listed] == [("a", 4), ("b", 4)]
        unknown = await client.post("/chat/completions", json=ASK)
        assert unknown.status_code == 404
        long = await client.post("/chat/completions", json=ASK | {"model": "a"})
        assert long.status_code == 400
        assert "maximum context length is 4 tokens" in long.text
        counted = await client.post(server.url.replace("/v1", "/tokenize"), json=ASK)
        assert json.loads(counted.content) == {"count": 3, "max_model_len": 4}
        assert (await client.get("/elsewhere")).status_code == 404


async def test_it_can_be_closed_while_it_hangs_and_opened_again_at_the_same_port():
    server = FaultyServer([hang()])
    async with server:
        asking = asyncio.ensure_future(chat(server))
        await server.until(lambda server: server.in_flight == 1)
    with pytest.raises(httpx.TransportError):
        await asking
    port = server.port
    async with server:
        assert server.port == port
        assert (await chat(server)).status_code == 200
