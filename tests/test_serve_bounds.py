import asyncio
import contextlib
import json
import socket
import subprocess

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from serving import CHAT, Process, chat, one_phase, png, serving, trio, with_picture
from test_serve_native import until

from nlsom.errors import UsageError
from nlsom.message import Usage
from nlsom.testing.agents import Saying
from nlsom_serve.app import Keys, Settings, opened_house, read_keys
from nlsom_serve.app.errors import ApiError
from nlsom_serve.app.guard import Guard, local_hosts
from nlsom_serve.app.places import Places
from nlsom_serve.app.redact import redact
from nlsom_serve.server import check_address

KEY = "a-key-of-our-own-0001"
OTHER = "a-key-of-others-00002"


async def test_places_are_given_in_order_and_the_rest_is_refused_with_a_time():
    places = Places(at_once=1, queue=2)
    first, second, third = places.reserve(3)
    with pytest.raises(ApiError) as refused:
        places.reserve()
    assert refused.value.status_code == 429
    assert int(refused.value.headers["Retry-After"]) >= 1
    order = []

    async def use(name, place):
        async with place:
            order.append(name)
            await asyncio.sleep(0)

    await asyncio.gather(use("first", first), use("second", second), use("third", third))
    assert order == ["first", "second", "third"]
    assert places.running == places.waiting == 0


async def test_a_place_that_is_cancelled_in_the_queue_or_never_used_is_free_again():
    places = Places(at_once=1, queue=1)
    held, waits = places.reserve(2)
    async with held:
        task = asyncio.create_task(waits.__aenter__())
        await asyncio.sleep(0)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        (dropped,) = places.reserve()
        dropped.drop()
        dropped.drop()
        assert (places.running, places.waiting) == (1, 0)
    assert (places.running, places.waiting) == (0, 0)


async def test_five_hundred_clients_at_once_get_200_or_429_and_nothing_else(tmp_path):
    settings = Settings(at_once=8, queue=40)
    limits = httpx.Limits(max_connections=500)
    async with serving(tmp_path, one_phase([Saying()], name="trio"), settings=settings) as (client, house):
        async with httpx.AsyncClient(base_url=client.base_url, timeout=120, limits=limits) as many:
            got = await asyncio.gather(*(many.post(CHAT, json=chat(f"{n}?")) for n in range(500)))
        assert {response.status_code for response in got} == {200, 429}
        assert all("retry-after" in response.headers for response in got if response.status_code == 429)
        assert house.places.running == house.places.waiting == 0
        assert (await client.post(CHAT, json=chat("Well?"))).status_code == 200


async def test_only_who_has_a_key_is_let_in(tmp_path):
    async with serving(tmp_path, keys=Keys({"me": KEY, "them": OTHER})) as (client, _):
        for given_key in (None, "wrong", KEY[:-1], KEY + "x", KEY.upper()):
            headers = {} if given_key is None else {"Authorization": f"Bearer {given_key}"}
            response = await client.get("/v1/models", headers=headers)
            assert response.status_code == 401
            assert response.headers["www-authenticate"] == "Bearer"
        assert (await client.get("/metrics")).status_code == 401
        assert (await client.get("/v1/models", headers={"Authorization": f"Basic {KEY}"})).status_code == 401
        for key in (KEY, OTHER):
            assert (
                await client.get("/v1/models", headers={"Authorization": f"Bearer {key}"})
            ).status_code == 200
        for path in ("/health", "/ready", "/", "/openapi.json"):
            assert (await client.get(path)).status_code == 200


async def test_a_key_that_has_spent_its_tokens_waits_and_the_others_do_not(tmp_path):
    society = one_phase([Saying(usage=Usage(prompt_tokens=60))], name="trio")
    async with serving(tmp_path, society, keys=Keys({"me": KEY, "them": OTHER}, tokens=100)) as (client, _):
        mine = {"Authorization": f"Bearer {KEY}"}
        got = [await client.post(CHAT, json=chat("Well?"), headers=mine) for _ in range(3)]
        assert [response.status_code for response in got] == [200, 200, 429]
        assert got[2].json()["error"]["code"] == "tokens_exceeded"
        assert int(got[2].headers["retry-after"]) > 60
        theirs = {"Authorization": f"Bearer {OTHER}"}
        assert (await client.post(CHAT, json=chat("Well?"), headers=theirs)).status_code == 200


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "10.0.0.1", "example.org"])
def test_an_address_that_others_can_reach_is_not_served_without_a_key(host):
    with pytest.raises(UsageError, match="--api-key-file"):
        check_address(host, Keys())
    check_address(host, Keys({"me": KEY}))


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "127.1.2.3"])
def test_the_own_machine_is_served_without_a_key(host):
    check_address(host, Keys())


def test_a_file_of_keys_is_read_strictly(tmp_path):
    file = tmp_path / "keys"
    file.write_text(f"# ours\n\n{KEY}\nthem {OTHER}\n")
    assert read_keys(file) == {"key-3": KEY, "them": OTHER}
    for wrong in ("", "short\n", f"a b {KEY}\n", f"a {KEY}\na {OTHER}\n"):
        file.write_text(wrong)
        with pytest.raises(UsageError):
            read_keys(file)
    with pytest.raises(UsageError):
        read_keys(tmp_path / "none")


async def test_a_server_of_this_machine_answers_to_its_own_names_only(tmp_path):
    async with serving(tmp_path, settings=Settings(hosts=local_hosts([]))) as (client, _):
        assert (await client.get("/v1/models")).status_code == 200
        rebound = await client.get("/v1/models", headers={"Host": "evil.example"})
        assert (rebound.status_code, rebound.json()["error"]["code"]) == (403, "wrong_host")


async def test_other_origins_are_let_in_only_where_they_are_named(tmp_path):
    preflight = {"Origin": "https://a.example", "Access-Control-Request-Method": "POST"}
    async with serving(tmp_path / "closed") as (client, _):
        closed = await client.options(CHAT, headers=preflight)
        assert "access-control-allow-origin" not in closed.headers
    async with serving(tmp_path / "open", settings=Settings(origins=("https://a.example",))) as (client, _):
        named = await client.options(CHAT, headers=preflight)
        assert named.headers["access-control-allow-origin"] == "https://a.example"
        other = await client.options(CHAT, headers={**preflight, "Origin": "https://b.example"})
        assert "access-control-allow-origin" not in other.headers


async def test_a_body_that_does_not_come_is_not_waited_for(tmp_path):
    async with serving(tmp_path, settings=Settings(body_seconds=0.2)) as (client, _):
        reader, writer = await asyncio.open_connection("127.0.0.1", client.base_url.port)
        head = f"POST {CHAT} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        head += "Content-Length: 100\r\n\r\n"
        writer.write(head.encode() + b'{"model"')
        answer = await reader.read()
        writer.close()
        await writer.wait_closed()
    assert b"408" in answer.split(b"\r\n")[0]
    assert b"body_timeout" in answer


async def test_bodies_are_bounded_one_by_one_and_together(tmp_path, monkeypatch):
    settings = Settings(body_bytes=2000, bodies_bytes=3000)
    arrived, reserve = [], Guard.reserve
    monkeypatch.setattr(Guard, "reserve", lambda guard, count: reserve(guard, count) or arrived.append(count))
    async with serving(tmp_path, settings=settings) as (client, _):
        large = await client.post(CHAT, json=chat("x" * 3000))
        assert (large.status_code, large.json()["error"]["code"]) == (413, "body_too_large")

        async def chunks():
            for _ in range(30):
                yield b" " * 100

        unsaid = await client.post(CHAT, content=chunks(), headers={"Content-Type": "application/json"})
        assert unsaid.status_code == 413
        slow = httpx.AsyncClient(base_url=client.base_url, timeout=60)
        released = asyncio.Event()

        async def held():
            yield b" " * 1900
            await released.wait()
            yield b"{}"

        async with slow:
            arrived.clear()
            first = asyncio.create_task(
                slow.post(CHAT, content=held(), headers={"Content-Type": "application/json"})
            )
            await until(lambda: sum(arrived) >= 1900)
            second = await client.post(CHAT, json=chat("x" * 1500))
            assert second.json()["error"]["code"] == "bodies_full"
            released.set()
            await first
        assert (await client.post(CHAT, json=chat("Well?"))).status_code == 200


async def test_pictures_are_bounded_in_number_bytes_and_pixels(tmp_path):
    settings = Settings(pictures=2, picture_bytes=20_000, pixels=10_000)
    async with serving(tmp_path, settings=settings) as (client, _):
        many = [*with_picture("Well?", png()), *with_picture("", png(9)), *with_picture("", png(10))]
        assert (await client.post(CHAT, json=chat(many))).json()["error"]["code"] == "too_many_images"
        wide = await client.post(CHAT, json=chat(with_picture("Well?", png(200, 200))))
        assert wide.json()["error"]["code"] == "invalid_image"
        assert (await client.post(CHAT, json=chat(many[:4]))).status_code == 200


@given(st.text(max_size=200))
def test_redaction_never_fails_and_bounds_what_it_tells(text):
    assert len(redact(text)) <= 600
    assert redact(redact(text)) == redact(text)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("FileNotFoundError: '/home/me/model.bin'", "FileNotFoundError: '…'"),
        ("http://me:pw@10.0.0.1:8000/v1?token=1: refused", "http://…"),
        ("bad key sk-abcdef0123456789", "bad key …"),
        ("Authorization: Bearer abcdefghijk", "Authorization: …"),
        ("C:\\Users\\me\\x.bin is gone", "… is gone"),
        ("no answer in time", "no answer in time"),
        ("yes and/or no, 3/4", "yes and/or no, 3/4"),
    ],
)
def test_redaction_leaves_out_what_is_nobodys_business(text, told):
    assert redact(text).startswith(told)


def test_a_server_process_answers_curl_and_ends_well_when_asked(tmp_path):
    with Process(tmp_path, "--drain-seconds", "20") as server:
        body = json.dumps(chat("Which? A. cat B. dog"))
        command = ["curl", "-sS", f"{server.url}{CHAT}", "-H", "Content-Type: application/json", "-d", body]
        told = json.loads(subprocess.run(command, capture_output=True, check=True, timeout=60).stdout)
        assert told["choices"][0]["message"]["content"] == "cat"
        assert server.end() == 0
        lines = [json.loads(line) for line in server.log.splitlines()]
    request = next(line for line in lines if line["message"] == "request")
    assert request["status"] == 200
    assert request["mindstorm"] == told["nlsom"]["mindstorm"]
    assert lines[-1]["message"] == "stopped"
    assert "Which?" not in server.log, "what was asked is not logged"


async def test_while_it_ends_it_answers_what_was_asked_and_takes_no_more(tmp_path):
    slow = Saying(seconds=0.5)
    async with serving(tmp_path, one_phase([slow], name="trio")) as (client, house):
        asked = asyncio.create_task(client.post(CHAT, json=chat("Well?")))
        while not slow.running:
            await asyncio.sleep(0.01)
        house.draining.set()
        assert (await client.get("/ready")).status_code == 503
        refused = await client.post(CHAT, json=chat("Another?"))
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "ending")
        assert (await asked).status_code == 200


def test_a_port_that_is_taken_is_told_in_one_line(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        server = Process(tmp_path, "--port", str(taken.getsockname()[1]))
        assert server.process.wait(timeout=60) == 2
    assert "cannot listen on" in server.log
    assert "Traceback" not in server.log


def test_a_public_address_without_a_key_is_refused_at_the_command_line(tmp_path):
    server = Process(tmp_path, "--host", "0.0.0.0")
    assert server.process.wait(timeout=60) == 2
    assert "--api-key-file" in server.log
    assert not (tmp_path / "data").exists()


async def test_data_are_not_kept_in_what_is_no_folder(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot make the folder .*file"):
        async with opened_house([trio()], tmp_path / "file", settings=Settings(), keys=Keys(None)):
            pass


async def test_two_societies_of_one_name_are_not_served_together(tmp_path):
    with pytest.raises(UsageError, match="two societies are called 'trio'"):
        async with serving(tmp_path, trio(), trio()):
            pass
