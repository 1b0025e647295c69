import asyncio
import json

import pytest
from serving import CHAT, TRIO, chat, one_phase, png, serving, trio

from nlsom.config import load
from nlsom.testing.agents import Saying
from nlsom_serve.app import Settings
from nlsom_serve.app.ledger import Ledger

NEW = {"society": "trio", "question": "What is it?", "choices": ["cat", "dog"]}


def human(seconds=None, **changes):
    """A society in which a person votes beside two scripted members."""
    you = {"agent": "human"} | ({"seconds": seconds} if seconds else {})
    members = {"you": you, "anna": TRIO["members"]["anna"], "ben": TRIO["members"]["cleo"]}
    return load({**TRIO, "members": members, **changes})


def events_of(text):
    """The events of a stream: id, name and data."""
    found = []
    for block in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line and line[0] != ":")
        if "data" in fields:
            found.append((fields.get("id"), fields.get("event"), json.loads(fields["data"])))
    return found


async def answer(client, id, key, text):
    """Answers a turn as a person; the status of the response."""
    return (await client.post(f"/v1/mindstorms/{id}/turns/{key}", json={"answer": text})).status_code


async def until(true):
    """Waits until something is true; the runner's own limit ends a wait in vain."""
    while not true():
        await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("method", "path", "told"),
    [
        ("GET", "/v1/mindstorms/nope", "no such mindstorm"),
        ("DELETE", "/v1/mindstorms/nope", "no such mindstorm"),
        ("DELETE", "/v1/mindstorms/00c0ffee00c0ffee%0A", "no such mindstorm"),
        ("GET", "/v1/mindstorms/NOPE/events", "no such mindstorm"),
        ("GET", "/v1/mindstorms/nope/images/0", "no such mindstorm"),
        ("POST", "/v1/mindstorms/nope/turns/nope", "no such"),
        ("POST", "/v1/mindstorms/00c0ffee00c0ffee/turns/nope", "no such turn: its key is 64 hexadecimal"),
    ],
)
async def test_what_cannot_be_an_id_is_found_nowhere_and_the_error_says_how_one_looks(
    tmp_path, method, path, told
):
    async with serving(tmp_path) as (client, _):
        body = {"answer": "cat"} if method == "POST" else None
        answered = await client.request(method, path, json=body)
        assert answered.status_code == 404
        error = answered.json()["error"]
        assert error["type"] == "not_found_error"
        assert error["code"] in ("mindstorm_not_found", "turn_not_found")
        assert told in error["message"]
        assert "hexadecimal digits" in error["message"]
        assert "[0-9a-f]" not in error["message"]


async def test_a_list_from_what_cannot_be_an_id_says_how_one_looks(tmp_path):
    async with serving(tmp_path) as (client, _):
        answered = await client.get("/v1/mindstorms?before=nope")
        assert answered.status_code == 400
        error = answered.json()["error"]
        assert error["param"] == "before"
        assert error["message"].startswith("before: the id of a mindstorm is 16 hexadecimal digits")


async def test_a_mindstorm_is_begun_watched_and_told(tmp_path):
    async with serving(tmp_path) as (client, _):
        begun = await client.post("/v1/mindstorms", json={**NEW, "images": [png()]})
        assert begun.status_code == 202
        where = begun.headers["location"]
        assert where == f"/v1/mindstorms/{begun.json()['id']}"
        events = events_of((await client.get(f"{where}/events")).text)
        assert events[0][1] == "started"
        assert events[-1][1] == "decided"
        assert events[-1][2]["answer"] == "cat"
        assert [id for id, name, _ in events if name == "spoke"] == ["1", "2", "3", "4", "5", "6"]
        told = (await client.get(where)).json()
        assert (told["state"], told["answer"], told["images"]) == ("decided", "cat", 1)
        assert [one["sender"] for one in told["messages"]] == ["anna", "ben", "cleo"] * 2
        picture = await client.get(f"{where}/images/0")
        assert picture.headers["content-type"] == "image/png"
        assert (await client.get(f"{where}/images/1")).status_code == 404


async def test_who_hears_that_it_ended_is_told_so_when_asking_at_once(tmp_path, monkeypatch):
    closing = Ledger.close

    async def slowly(*given):
        await asyncio.sleep(0.2)
        await closing(*given)

    monkeypatch.setattr(Ledger, "close", slowly)
    async with serving(tmp_path) as (client, _):
        id = (await client.post("/v1/mindstorms", json=NEW)).json()["id"]
        events = events_of((await client.get(f"/v1/mindstorms/{id}/events")).text)
        assert events[-1][1] == "decided"
        assert (await client.get(f"/v1/mindstorms/{id}")).json()["state"] == "decided"


async def test_whoever_waits_gets_the_verdict(tmp_path):
    async with serving(tmp_path) as (client, _):
        told = await client.post("/v1/mindstorms", json={**NEW, "wait": True})
    assert told.status_code == 200
    assert told.json()["verdict"]["tally"] == {"cat": 2, "dog": 1}


async def test_events_go_on_after_the_last_one_that_came(tmp_path):
    async with serving(tmp_path) as (client, _):
        told = (await client.post("/v1/mindstorms", json={**NEW, "wait": True})).json()
        path = f"/v1/mindstorms/{told['id']}/events"
        rest = events_of((await client.get(path, headers={"Last-Event-ID": "4"})).text)
        assert [id for id, name, _ in rest if name == "spoke"] == ["5", "6"]
        assert rest[-1][1] == "decided"
        bad = await client.get(path, headers={"Last-Event-ID": "x"})
        assert bad.json()["error"]["param"] == "Last-Event-ID"


async def test_a_watcher_who_comes_late_sees_all_from_the_beginning(tmp_path):
    slow = Saying(seconds=0.3)
    society = one_phase([Saying("yes", seconds=0.001), slow], name="trio")
    async with serving(tmp_path, society) as (client, _):
        id = (await client.post("/v1/mindstorms", json={"society": "trio", "question": "Well?"})).json()["id"]
        await until(lambda: slow.running)
        seen = events_of((await client.get(f"/v1/mindstorms/{id}/events")).text)
    assert [name for _, name, _ in seen] == [
        "started", "asked", "asked", "spoke", "spoke", "round_closed", "decided",
    ]  # fmt: skip


async def test_a_mindstorm_is_cancelled_down_to_its_members(tmp_path):
    slow = Saying(seconds=60)
    async with serving(tmp_path, one_phase([slow, slow], name="trio")) as (client, house):
        id = (await client.post("/v1/mindstorms", json={"society": "trio", "question": "Well?"})).json()["id"]
        await until(lambda: slow.running == 2)
        told = await client.delete(f"/v1/mindstorms/{id}")
        assert told.json()["state"] == "cancelled"
        assert (slow.running, slow.cancelled) == (0, 2)
        assert house.places.running == house.places.waiting == 0
        again = await client.delete(f"/v1/mindstorms/{id}")
        assert again.json()["state"] == "cancelled"
        events = events_of((await client.get(f"/v1/mindstorms/{id}/events")).text)
        assert events[-1][1] == "stopped"
        assert events[-1][2] == {"reason": "cancelled by a client"}


async def test_one_that_waits_for_its_place_can_be_cancelled_too(tmp_path):
    slow = Saying(seconds=60)
    society = one_phase([slow], name="trio")
    async with serving(tmp_path, society, settings=Settings(at_once=1)) as (client, house):
        first = (await client.post("/v1/mindstorms", json={"society": "trio", "question": "1?"})).json()["id"]
        second = (await client.post("/v1/mindstorms", json={"society": "trio", "question": "2?"})).json()
        assert second["state"] == "queued"
        assert house.places.waiting == 1
        told = (await client.delete(f"/v1/mindstorms/{second['id']}")).json()
        assert (told["state"], told["messages"]) == ("cancelled", [])
        assert house.places.waiting == 0
        assert (await client.get(f"/v1/mindstorms/{first}")).json()["state"] == "running"


async def test_mindstorms_are_listed_last_first_page_by_page(tmp_path):
    async with serving(tmp_path) as (client, _):
        for number in range(5):
            await client.post("/v1/mindstorms", json={**NEW, "question": f"{number}?", "wait": True})
        first = (await client.get("/v1/mindstorms", params={"limit": 3})).json()
        assert [one["question"] for one in first["data"]] == ["4?", "3?", "2?"]
        assert first["more"]
        rest = await client.get("/v1/mindstorms", params={"limit": 3, "before": first["data"][-1]["id"]})
        assert [one["question"] for one in rest.json()["data"]] == ["1?", "0?"]
        assert not rest.json()["more"]


async def test_a_mindstorm_that_was_begun_goes_on_after_a_restart(tmp_path):
    society = human()
    async with serving(tmp_path, society) as (client, house):
        id = (await client.post("/v1/mindstorms", json={**NEW, "seed": 1})).json()["id"]
        await until(lambda: house.answers.waiting())
        key = house.answers.waiting()[0].turn.key
        assert (
            await client.post(f"/v1/mindstorms/{id}/turns/{key}", json={"answer": "a cat"})
        ).status_code == 200
        await until(lambda: any(one.turn.phase == "ballot" for one in house.answers.waiting()))
        before = (await client.get(f"/v1/mindstorms/{id}")).json()["messages"]
    async with serving(tmp_path, human()) as (client, house):
        await until(lambda: house.answers.waiting())
        told = (await client.get(f"/v1/mindstorms/{id}")).json()
        assert told["state"] == "running"
        assert told["messages"] == before
        (turn,) = told["waiting"]
        assert turn["options"] == ["cat", "dog"]
        assert (
            await client.post(f"/v1/mindstorms/{id}/turns/{turn['key']}", json={"answer": "B"})
        ).status_code == 200
        events = events_of(
            (await client.get(f"/v1/mindstorms/{id}/events", headers={"Last-Event-ID": "3"})).text
        )
        spoke = [(number, data["sender"]) for number, name, data in events if name == "spoke"]
        assert sorted(number for number, _ in spoke) == ["4", "5", "6"]
        assert events[-1][2]["tally"] == {"cat": 1, "dog": 2}


async def test_one_that_a_client_cancelled_stays_cancelled_after_a_restart(tmp_path):
    async with serving(tmp_path, human()) as (client, house):
        id = (await client.post("/v1/mindstorms", json=NEW)).json()["id"]
        await until(lambda: house.answers.waiting())
        await client.delete(f"/v1/mindstorms/{id}")
    async with serving(tmp_path, human()) as (client, house):
        assert (await client.get(f"/v1/mindstorms/{id}")).json()["state"] == "cancelled"
        assert not house.answers.waiting()


async def test_one_whose_society_is_another_now_is_stopped_and_says_so(tmp_path):
    async with serving(tmp_path, human()) as (client, house):
        id = (await client.post("/v1/mindstorms", json=NEW)).json()["id"]
        await until(lambda: house.answers.waiting())
    async with serving(tmp_path, trio()) as (client, _):
        told = (await client.get(f"/v1/mindstorms/{id}")).json()
        assert told["state"] == "stopped"
        assert "is another since then" in told["reason"]


async def test_the_first_answer_to_a_turn_wins(tmp_path):
    async with serving(tmp_path, human()) as (client, house):
        id = (await client.post("/v1/mindstorms", json=NEW)).json()["id"]
        await until(lambda: house.answers.waiting())
        key = house.answers.waiting()[0].turn.key
        path = f"/v1/mindstorms/{id}/turns/{key}"
        both = await asyncio.gather(
            *(client.post(path, json={"answer": text}) for text in ("first", "second"))
        )
        assert sorted(response.status_code for response in both) == [200, 409]
        await until(lambda: house.answers.waiting() and house.answers.waiting()[0].turn.key != key)
        assert (await client.post(path, json={"answer": "third"})).status_code == 409
        nobody = await client.post(f"/v1/mindstorms/{id}/turns/{'0' * 64}", json={"answer": "x"})
        assert nobody.status_code == 404
        ballot = house.answers.waiting()[0].turn.key
        unread = await client.post(f"/v1/mindstorms/{id}/turns/{ballot}", json={"answer": "neither of them"})
        assert unread.status_code == 400
        assert "Answer with the letter" in unread.json()["error"]["message"]


async def test_a_person_who_is_late_abstains_and_the_others_decide(tmp_path):
    async with serving(tmp_path, human(seconds=0.05)) as (client, _):
        told = (await client.post("/v1/mindstorms", json={**NEW, "wait": True})).json()
        assert [one["member"] for one in told["verdict"]["abstained"]] == ["you", "you"]
        assert "did not answer within" in told["verdict"]["abstained"][0]["cause"]


async def test_the_event_of_a_persons_turn_says_what_is_wanted_until_when(tmp_path):
    async with serving(tmp_path, human(seconds=30)) as (client, _):
        id = (await client.post("/v1/mindstorms", json=NEW)).json()["id"]
        async with client.stream("GET", f"/v1/mindstorms/{id}/events") as response:
            text = ""
            async for chunk in response.aiter_text():
                text += chunk
                waits = [
                    data["waits"] for _, name, data in events_of(text) if name == "asked" and data["waits"]
                ]
                if waits:
                    break
        assert waits[0]["member"] == "you"
        assert waits[0]["deadline"] > 0
        await client.delete(f"/v1/mindstorms/{id}")


async def test_the_dialogue_of_a_chat_can_be_watched_and_opened_later(tmp_path):
    async with serving(tmp_path) as (client, _):
        told = (await client.post(CHAT, json=chat("Which? A. cat B. dog"))).json()
        detail = (await client.get(f"/v1/mindstorms/{told['nlsom']['mindstorm']}")).json()
    assert (detail["state"], detail["answer"]) == ("decided", "cat")


@pytest.mark.parametrize("field", ["hears", "role", "agent"])
async def test_a_society_is_told_with_its_members(tmp_path, field):
    star = trio(structure={"star": {"centre": "anna"}}) if field == "hears" else trio()
    async with serving(tmp_path, star) as (client, _):
        told = (await client.get("/v1/societies/trio")).json()
        assert len(told["seats"]) == told["members"] == 3
        assert told["seats"][1][field] == {"hears": ["anna"], "role": "ben", "agent": "script"}[field]
        drawing = await client.get("/v1/societies/trio/graph.svg")
        assert drawing.headers["content-type"] == "image/svg+xml"
        assert drawing.text.startswith("<svg")


async def test_metrics_count_what_happened(tmp_path):
    society = one_phase([Saying("yes"), Saying("no")], name="trio")
    async with serving(tmp_path, society) as (client, _):
        await client.post(CHAT, json=chat("Well? A. yes B. no"))
        text = (await client.get("/metrics")).text
    assert 'nlsom_turns_total{society="trio"} 2.0' in text
    assert 'nlsom_mindstorms_total{ended="decided",society="trio"} 1.0' in text
    assert 'nlsom_requests_total{route="/v1/chat/completions",status="200"} 1.0' in text
    assert "nlsom_queue 0.0" in text
