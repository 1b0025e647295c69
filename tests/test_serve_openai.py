import json

import httpx
import openai
import pytest
from pydantic import BaseModel
from serving import CHAT, Process, chat, one_phase, png, serving, trio, with_picture

from nlsom.message import Said, Usage
from nlsom.testing.agents import Saying
from nlsom_serve.app import Settings
from nlsom_serve.app.shapes import ChatRequest

PICKED = "What animal is this?\nA. cat\nB. dog\nAnswer with the option's letter."


class _Fails:
    identity = "fails/1"

    async def speak(self, turn):
        raise RuntimeError(
            "could not open /srv/secret/model.bin with key sk-abcdefghijkl at http://u:p@10.0.0.1/x"
        )


class _Blind:
    identity = "blind/1"

    async def speak(self, turn):
        return Said(why="there is no picture")


class _Writes:
    identity = "writes/1"

    async def speak(self, turn):
        return Said.words('{"animal": "cat", "legs": 4}')


@pytest.fixture
async def server(tmp_path):
    async with serving(tmp_path) as (client, house):
        yield client, house


@pytest.fixture
def served_elsewhere(tmp_path):
    with Process(tmp_path) as server:
        yield server.url


@pytest.fixture
async def sdk(server):
    client, _ = server
    async with openai.AsyncOpenAI(base_url=f"{client.base_url}/v1", api_key="none", max_retries=0) as sdk:
        yield sdk


async def test_the_official_client_lists_societies_as_models(sdk):
    models = [model.id async for model in sdk.models.list()]
    assert models == ["society/trio"]
    assert (await sdk.models.retrieve("society/trio")).owned_by == "nlsom"


async def test_the_official_client_asks_with_a_picture_and_gets_a_letter(sdk):
    done = await sdk.chat.completions.create(
        model="society/trio",
        messages=[{"role": "user", "content": with_picture(PICKED, png())}],
        seed=7,
        temperature=0.2,
    )
    choice = done.choices[0]
    assert (choice.message.content, choice.finish_reason) == ("A", "stop")
    assert choice.message.reasoning_content.startswith("[caption, round 1]\nanna: a grey cat\n")
    assert done.nlsom["tally"] == {"cat": 2, "dog": 1}
    assert done.nlsom["seed"] == 7


async def test_a_stream_brings_the_dialogue_first_and_then_the_verdict(sdk):
    stream = await sdk.chat.completions.create(
        model="society/trio",
        messages=[{"role": "user", "content": "Which? A. cat B. dog"}],
        stream=True,
        stream_options={"include_usage": True},
    )
    thought, content, kinds, ends, usage, told = "", "", [], None, None, None
    async for chunk in stream:
        usage = chunk.usage or usage
        told = getattr(chunk, "nlsom", None) or told
        for choice in chunk.choices:
            ends = choice.finish_reason or ends
            if more := getattr(choice.delta, "reasoning_content", None):
                thought += more
                kinds.append("thought")
            if choice.delta.content:
                content += choice.delta.content
                kinds.append("content")
    assert content == "cat"
    assert thought.count("\n") == 9  # two headings, six lines, one blank
    assert kinds == ["thought"] * 6 + ["content"]
    assert ends == "stop"
    assert usage is not None
    assert told["answer"] == "cat"


async def test_usage_sums_every_member_with_cached_tokens(tmp_path):
    spent = Usage(calls=1, prompt_tokens=100, cached_tokens=60, completion_tokens=2)
    society = one_phase([Saying(usage=spent), Saying(usage=spent)], name="trio")
    async with serving(tmp_path, society) as (client, _):
        told = (await client.post(CHAT, json=chat("Well? A. yes B. no", n=2))).json()
    assert told["usage"]["prompt_tokens"] == 400
    assert told["usage"]["completion_tokens"] == 8
    assert told["usage"]["total_tokens"] == 408
    assert told["usage"]["prompt_tokens_details"] == {"cached_tokens": 240}
    assert [choice["index"] for choice in told["choices"]] == [0, 1]
    assert len({one["mindstorm"] for one in told["nlsom"]}) == 2


async def test_a_stream_of_several_answers_says_which_each_chunk_belongs_to(sdk):
    stream = await sdk.chat.completions.create(
        model="society/trio", messages=[{"role": "user", "content": "Which? A. cat B. dog"}], stream=True, n=3
    )
    content = {0: "", 1: "", 2: ""}
    ends = []
    async for chunk in stream:
        for choice in chunk.choices:
            content[choice.index] += choice.delta.content or ""
            ends += [choice.index] if choice.finish_reason else []
    assert content == {0: "cat", 1: "cat", 2: "cat"}
    assert sorted(ends) == [0, 1, 2]


async def test_the_same_seed_is_the_same_mindstorm_and_costs_nothing_twice(tmp_path):
    agent = Saying(usage=Usage(calls=1, prompt_tokens=10, completion_tokens=1))
    async with serving(tmp_path, one_phase([agent], name="trio")) as (client, _):
        first = (await client.post(CHAT, json=chat("Well?", seed=1))).json()
        again = (await client.post(CHAT, json=chat("Well?", seed=1))).json()
        other = (await client.post(CHAT, json=chat("Well?"))).json()
    assert first["nlsom"]["mindstorm"] == again["nlsom"]["mindstorm"] != other["nlsom"]["mindstorm"]
    assert again["usage"]["total_tokens"] == 0
    assert again["nlsom"]["usage_total"]["prompt_tokens"] == 10
    assert len(agent.turns) == 2


async def test_earlier_turns_of_the_chat_are_context_and_the_last_is_the_question(server):
    client, house = server
    messages = [
        {"role": "system", "content": "You are terse."},
        {"role": "user", "content": with_picture("What is it?", png())},
        {"role": "assistant", "content": "a cat"},
        {"role": "user", "content": "Which colour? A. grey B. red"},
    ]
    told = (await client.post(CHAT, json={"model": "society/trio", "messages": messages})).json()
    header = await house.trace.header(told["nlsom"]["mindstorm"])
    assert header.task["context"] == "system: You are terse.\nuser: What is it?\nassistant: a cat"
    assert header.task["question"] == "Which colour?"
    assert len(header.task["images"]) == 1


async def test_choices_may_be_given_apart_from_the_question(server):
    client, _ = server
    told = (await client.post(CHAT, json=chat("Which?", nlsom={"choices": ["x", "y"]}))).json()
    assert told["choices"][0]["message"]["content"] == "x"


async def test_max_tokens_and_stop_bound_the_content(server):
    client, _ = server
    question = "Which? A. a very long answer indeed B. dog"
    bounded = (await client.post(CHAT, json=chat(question, max_tokens=2))).json()["choices"][0]
    assert (bounded["message"]["content"], bounded["finish_reason"]) == ("a very l", "length")
    stopped = (await client.post(CHAT, json=chat(question, stop=[" long"]))).json()["choices"][0]
    assert (stopped["message"]["content"], stopped["finish_reason"]) == ("a very", "stop")


async def test_a_json_object_holds_the_answer(server):
    client, _ = server
    told = (await client.post(CHAT, json=chat(PICKED, response_format={"type": "json_object"}))).json()
    assert json.loads(told["choices"][0]["message"]["content"]) == {"answer": "A"}


async def test_the_official_client_parses_an_answer_by_schema(tmp_path):
    class Seen(BaseModel):
        animal: str
        legs: int

    async with (
        serving(tmp_path, one_phase([_Writes()], name="trio")) as (client, _),
        openai.AsyncOpenAI(base_url=f"{client.base_url}/v1", api_key="none") as sdk,
    ):
        done = await sdk.chat.completions.parse(
            model="society/trio",
            messages=[{"role": "user", "content": "What is it?"}],
            response_format=Seen,
        )
    assert done.choices[0].message.parsed == Seen(animal="cat", legs=4)


async def test_a_tie_is_a_refusal_and_never_a_guess(tmp_path):
    society = one_phase([Saying("yes"), Saying("no")], name="trio")
    async with serving(tmp_path, society) as (client, _):
        told = (await client.post(CHAT, json=chat("Well? A. yes B. no"))).json()
    message = told["choices"][0]["message"]
    assert message["content"] is None
    assert message["refusal"] == "no verdict: tied between yes, no"


async def test_a_failing_member_abstains_and_its_cause_tells_no_path_key_or_address(tmp_path):
    society = one_phase([Saying("yes"), _Fails()], name="trio")
    async with serving(tmp_path, society) as (client, _):
        response = await client.post(CHAT, json=chat("Well? A. yes B. no"))
    told = response.json()
    assert told["choices"][0]["message"]["content"] == "yes"
    assert [one["member"] for one in told["nlsom"]["abstained"]] == ["m1"]
    for secret in ("/srv", "sk-abc", "10.0.0.1", "u:p"):
        assert secret not in response.text


async def test_the_dialogue_says_why_a_member_that_said_nothing_has_no_answer(tmp_path):
    society = one_phase([Saying("yes"), _Blind()], name="trio")
    async with serving(tmp_path, society) as (client, _):
        told = (await client.post(CHAT, json=chat("Well? A. yes B. no"))).json()
    thought = told["choices"][0]["message"]["reasoning_content"]
    assert "m1: (no answer: there is no picture)\n" in thought


async def test_where_no_member_answered_the_status_says_so(tmp_path):
    async with serving(tmp_path, one_phase([_Fails()], name="trio")) as (client, _):
        whole = await client.post(CHAT, json=chat("Well?"))
        streamed = await client.post(CHAT, json=chat("Well?", stream=True))
    assert whole.status_code == 503
    assert whole.json()["error"]["code"] == "no_member_answered"
    last = [line for line in streamed.text.splitlines() if line.startswith("data: ")][-1]
    assert json.loads(last.removeprefix("data: "))["error"]["code"] == "no_member_answered"


async def test_the_limits_of_a_request_narrow_those_of_the_society(tmp_path):
    slow = Saying("yes", seconds=30)
    async with serving(tmp_path, one_phase([slow], name="trio")) as (client, _):
        told = await client.post(CHAT, json=chat("Well?", nlsom={"limits": {"seconds": 0.05}}))
    assert told.status_code == 503
    assert slow.cancelled == 1


async def test_the_official_client_raises_its_own_errors(sdk):
    ask = [{"role": "user", "content": "Well?"}]
    with pytest.raises(openai.NotFoundError, match="no society is called 'gpt-4'"):
        await sdk.chat.completions.create(model="gpt-4", messages=ask)
    tool = {"type": "function", "function": {"name": "f", "parameters": {}}}
    with pytest.raises(openai.BadRequestError, match="tools is not supported") as refused:
        await sdk.chat.completions.create(model="society/trio", messages=ask, tools=[tool])
    assert refused.value.code == "unsupported_parameter"
    assert refused.value.param == "tools"
    broken = [{"role": "user", "content": with_picture("Well?", "data:image/png;base64,AAAA")}]
    with pytest.raises(openai.BadRequestError) as rejected:
        await sdk.chat.completions.create(model="society/trio", messages=broken)
    assert rejected.value.code == "invalid_image"


def test_the_official_client_works_without_an_event_loop(tmp_path, served_elsewhere):
    with openai.OpenAI(base_url=f"{served_elsewhere}/v1", api_key="none") as sdk:
        done = sdk.chat.completions.create(
            model="society/trio", messages=[{"role": "user", "content": "Which? A. cat B. dog"}]
        )
        assert done.choices[0].message.content == "cat"
        chunks = sdk.chat.completions.create(
            model="society/trio", messages=[{"role": "user", "content": "Which? A. cat B. dog"}], stream=True
        )
        content = "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)
        assert content == "cat"
        with pytest.raises(openai.NotFoundError):
            sdk.models.retrieve("society/none")


@pytest.mark.parametrize("name", sorted(ChatRequest.REFUSED))
async def test_what_a_society_cannot_do_is_refused_by_name(server, name):
    client, _ = server
    response = await client.post(CHAT, json=chat("Well?", **{name: {"x": 1}}))
    assert response.status_code == 400
    assert response.json()["error"]["param"] == name
    empty = await client.post(CHAT, json=chat("Well?", **{name: None}))
    assert empty.status_code == 200


async def test_parameters_that_mean_nothing_here_are_ignored(server):
    client, _ = server
    ignored = {
        "temperature": 0.5, "top_p": 0.9, "presence_penalty": 0, "frequency_penalty": 0.1, "user": "u",
        "metadata": {"a": "b"}, "store": False, "service_tier": "auto", "reasoning_effort": "low",
        "parallel_tool_calls": True, "top_k": 5, "min_p": 0.1, "repetition_penalty": 1.1,
        "modalities": ["text"], "chat_template_kwargs": {"enable_thinking": False},
        "skip_special_tokens": True,
        "mm_processor_kwargs": {"min_pixels": 1},
        "media_io_kwargs": {"video": {"num_frames": 8}},
        "tools": [], "tool_choice": "auto", "logprobs": False,
    }  # fmt: skip
    assert (await client.post(CHAT, json=chat("Well?", **ignored))).status_code == 200


async def test_a_person_may_ask_for_at_most_so_many_answers(tmp_path):
    async with serving(tmp_path, settings=Settings(choices=2)) as (client, _):
        assert (await client.post(CHAT, json=chat("Well?", n=2))).status_code == 200
        assert (await client.post(CHAT, json=chat("Well?", n=3))).json()["error"]["param"] == "n"


async def test_several_societies_are_several_models(tmp_path):
    other = trio(name="other one")
    async with serving(tmp_path, trio(), other) as (client, house):
        listed = (await client.get("/v1/models")).json()["data"]
        assert [model["id"] for model in listed] == [f"society/{id}" for id in house.societies]
        for model in listed:
            body = {**chat("Which? A. cat B. dog"), "model": model["id"]}
            assert (await client.post(CHAT, json=body)).json()["nlsom"]["answer"] == "cat"


async def test_a_response_names_its_request(server):
    client, _ = server
    response = await client.get("/v1/models", headers={"X-Request-Id": "mine-1"})
    assert response.headers["x-request-id"] == "mine-1"
    forged = await client.get("/v1/models", headers={"X-Request-Id": "a b;c"})
    assert forged.headers["x-request-id"] != "a b;c"
    assert isinstance(forged, httpx.Response)
