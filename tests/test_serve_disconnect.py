import asyncio
import json
import random

import httpx
import pytest
from serving import CHAT, chat, one_phase, serving
from test_serve_native import until

from nlsom.config import load
from nlsom.testing.agents import Saying
from nlsom.testing.behaviours import ok
from nlsom.testing.faulty import FaultyServer


def tasks():
    """Tasks that run a mindstorm."""
    return [task for task in asyncio.all_tasks() if task.get_name().startswith(("run ", "mindstorm "))]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_client_that_leaves_takes_its_mindstorm_with_it(tmp_path, stream):
    slow = Saying(seconds=60)
    async with serving(tmp_path, one_phase([slow, slow, slow], name="trio")) as (client, house):
        asking = asyncio.create_task(client.post(CHAT, json=chat("Well?", stream=stream)))
        await until(lambda: slow.running == 3)
        asking.cancel()
        await until(lambda: slow.running == 0)
        await until(lambda: not tasks())
        assert slow.cancelled == 3
        assert house.places.running == house.places.waiting == 0


async def test_a_client_that_shuts_its_sending_side_counts_as_one_that_leaves(tmp_path):
    slow = Saying(seconds=60)
    async with serving(tmp_path, one_phase([slow, slow, slow], name="trio")) as (client, _):
        url = client.base_url
        reader, writer = await asyncio.open_connection(url.host, url.port)
        body = json.dumps(chat("Well?")).encode()
        head = f"POST {CHAT} HTTP/1.1\r\nHost: {url.host}\r\nContent-Type: application/json\r\n"
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        await until(lambda: slow.running == 3)
        writer.write_eof()
        await until(lambda: slow.running == 0)
        assert await reader.read() == b""
        writer.close()
        await writer.wait_closed()


async def test_a_client_that_leaves_is_noticed_down_to_the_server_of_the_models(tmp_path):
    async with FaultyServer(then=ok("yes", after=60)) as models:
        society = load(
            {
                "name": "trio",
                "models": {"llm": {"url": models.url, "model": "faulty", "pictures": 0}},
                "members": {"a": {"agent": "chat", "model": "llm", "count": 3}},
                "mindstorm": [{"ask": "a", "prompt": {"text": "Say."}, "as": "ballot"}],
            }
        )
        async with serving(tmp_path, society) as (client, _):
            for _ in range(3):
                asking = asyncio.create_task(client.post(CHAT, json=chat("Well?")))
                await models.until(lambda server: server.in_flight == 3)
                asking.cancel()
                await models.until(lambda server: server.in_flight == 0)
            assert models.disconnects == 9
            await until(lambda: not tasks())


async def test_clients_that_leave_at_any_moment_leave_nothing_behind(tmp_path):
    slow = Saying(seconds=0.05)
    draw = random.Random(6)
    async with serving(tmp_path, one_phase([slow, slow], name="trio")) as (client, house):
        body = json.dumps(chat("Well?")).encode()
        for number in range(60):
            _, writer = await asyncio.open_connection("127.0.0.1", client.base_url.port)
            body = json.dumps(chat("Well?", stream=number % 2 == 0)).encode()
            head = f"POST {CHAT} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            whole = head.encode() + f"Content-Length: {len(body)}\r\n\r\n".encode() + body
            writer.write(whole if number % 3 else whole[: draw.randrange(len(whole))])
            await asyncio.sleep(draw.uniform(0, 0.1))
            writer.transport.abort()
        await until(lambda: slow.running == 0 and not tasks())
        assert house.places.running == house.places.waiting == 0
        assert (await client.post(CHAT, json=chat("Well?"))).status_code == 200


async def test_one_of_two_who_ask_the_same_may_leave(tmp_path):
    slow = Saying(seconds=0.5)
    async with serving(tmp_path, one_phase([slow], name="trio")) as (client, _):
        stays = asyncio.create_task(client.post(CHAT, json=chat("Well?", seed=1)))
        await until(lambda: slow.running == 1)
        async with httpx.AsyncClient(base_url=client.base_url) as other:
            leaves = asyncio.create_task(other.post(CHAT, json=chat("Well?", seed=1)))
            await asyncio.sleep(0.05)
            leaves.cancel()
        assert (await stays).status_code == 200
        assert (len(slow.turns), slow.cancelled) == (1, 0)


async def test_whoever_only_watches_or_waits_may_leave_and_it_goes_on(tmp_path):
    slow = Saying(seconds=0.5)
    async with serving(tmp_path, one_phase([slow], name="trio")) as (client, _):
        new = {"society": "trio", "question": "Well?", "seed": 3, "wait": True}
        waits = asyncio.create_task(client.post("/v1/mindstorms", json=new))
        await until(lambda: slow.running == 1)
        id = (await client.get("/v1/mindstorms")).json()["data"][0]["id"]
        async with client.stream("GET", f"/v1/mindstorms/{id}/events"):
            pass
        waits.cancel()
        last = (await client.get(f"/v1/mindstorms/{id}/events")).text
        assert "event: decided" in last
        assert slow.cancelled == 0


async def test_whoever_leaves_while_nothing_happens_leaves_nothing_behind(tmp_path):
    slow = Saying(seconds=60)
    async with serving(tmp_path, one_phase([slow], name="trio")) as (client, _):
        id = (await client.post("/v1/mindstorms", json={"society": "trio", "question": "Well?"})).json()["id"]
        await until(lambda: slow.running == 1)
        before = asyncio.all_tasks()
        async with (
            httpx.AsyncClient(base_url=client.base_url) as other,
            other.stream("GET", f"/v1/mindstorms/{id}/events") as events,
        ):
            async for line in events.aiter_lines():
                if line == "event: asked":
                    break
            await asyncio.sleep(0.05)
        await until(lambda: asyncio.all_tasks() <= before)
        assert slow.running == 1, "nobody else had to end first"
        await client.delete(f"/v1/mindstorms/{id}")


async def test_a_chat_does_not_end_what_was_given_to_the_server_to_keep(tmp_path):
    slow = Saying(seconds=0.5)
    async with serving(tmp_path, one_phase([slow], name="trio")) as (client, _):
        new = {"society": "trio", "question": "Well?", "seed": 1}
        id = (await client.post("/v1/mindstorms", json=new)).json()["id"]
        await until(lambda: slow.running == 1)
        async with httpx.AsyncClient(base_url=client.base_url) as other:
            leaves = asyncio.create_task(other.post(CHAT, json=chat("Well?", seed=1)))
            await asyncio.sleep(0.05)
            leaves.cancel()
        assert "event: decided" in (await client.get(f"/v1/mindstorms/{id}/events")).text
