from __future__ import annotations

import asyncio
import base64
import json
import logging
import socket
import time

import pytest

import nlsom
from nlsom.errors import ModelError, ModelUnavailable, PromptTooLong, UsageError
from nlsom.form import ChoiceForm, Form, GrammarForm, JsonForm, NumberForm, TextForm
from nlsom.media import MediaStore
from nlsom.message import Image
from nlsom.model import Completion, Prompt, Settings
from nlsom.model.http import HttpModel
from nlsom.testing.behaviours import (
    Behaviour,
    Call,
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
from nlsom.testing.models import ModelContract, prompt_of

FORM = TextForm(max_tokens=8)
ANIMALS = ChoiceForm(options=("cat", "dog"))
GRAMMAR = GrammarForm(grammar='root ::= "yes" | "no"')


def quick(url, model=None, **options) -> HttpModel:
    """A model whose waits are too short to notice."""
    return HttpModel(url, model, **({"pictures": 0, "backoff": 0.001, "longest_wait": 0.01} | options))


async def ask(
    model: HttpModel, prompt: Prompt | str = "Say a word.", form: Form = FORM, **settings
) -> Completion:
    prompt = prompt_of(prompt) if isinstance(prompt, str) else prompt
    return await model.complete(prompt, form=form, settings=Settings(**settings), seed=7)


class Album(MediaStore):
    """Holds for each picture its number."""

    async def data_url(self, image: Image) -> str:
        return f"data:image/jpeg;base64,{base64.b64encode(image.sha256.encode()).decode()}"


def pictured(count: int) -> Prompt:
    images = tuple(
        Image(sha256=f"picture {n}", media_type="image/jpeg", width=1, height=1, source="")
        for n in range(count)
    )
    return Prompt(head="Look. ", tail="What is it?", images=images, media=Album())


class TestHttpModel(ModelContract):
    context = 512

    @pytest.fixture
    async def model(self):
        async with (
            FaultyServer(context=self.context, then=ok(after=0.005)) as server,
            quick(server.url) as model,
        ):
            yield model


class TestReplicatedHttpModel(ModelContract):
    context = 512

    @pytest.fixture
    async def model(self):
        async with (
            FaultyServer(context=self.context) as one,
            FaultyServer(context=self.context) as two,
            quick([one.url, two.url]) as model,
        ):
            yield model


# What is sent


async def test_one_user_message_is_sent_head_before_tail_with_all_settings():
    async with FaultyServer() as server, quick(server.url) as model:
        prompt = Prompt(head="Shared.\n", tail="Mine, «ü\ud800».", images=(), media=MediaStore())
        await ask(model, prompt, temperature=0.5, top_p=0.9, stop=("END",))
    assert server.chats[0].json == {
        "model": "faulty",
        "messages": [{"role": "user", "content": "Shared.\nMine, «ü?»."}],
        "max_tokens": 8,
        "temperature": 0.5,
        "top_p": 0.9,
        "stop": ["END"],
        "seed": 7,
    }


async def test_pictures_come_first_in_order_and_share_their_bytes_on_the_wire():
    prompt = pictured(2)
    async with FaultyServer() as server, quick(server.url, pictures=2) as model:
        await ask(model, prompt)
        await ask(model, Prompt("Look. ", "Whose is it?", prompt.images, prompt.media))
    content = server.chats[0].json["messages"][0]["content"]
    assert [part["type"] for part in content] == ["image_url", "image_url", "text"]
    head, data = content[1]["image_url"]["url"].split(",")
    assert head == "data:image/jpeg;base64"
    assert base64.b64decode(data) == b"picture 1"
    one, two = (chat.body for chat in server.chats)
    shared = one.index(b"What is it?")
    assert one[:shared] == two[:shared]


@pytest.mark.parametrize(
    ("form", "sent"),
    [
        (ANIMALS, {"structured_outputs": {"choice": ["A", "B"]}, "logprobs": True}),
        (NumberForm(), {"structured_outputs": {"regex": "-?[0-9]{1,9}"}}),
        (
            JsonForm(json_schema={"type": "object"}),
            {"structured_outputs": {"json": {"type": "object"}}},
        ),
        (GRAMMAR, {"structured_outputs": {"grammar": GRAMMAR.grammar}}),
        (TextForm(), {}),
    ],
)
async def test_a_form_becomes_a_constraint_for_vllm(form, sent):
    async with FaultyServer() as server, quick(server.url) as model:
        await ask(model, form=form)
    asked = server.chats[0].json
    assert {
        name: asked[name] for name in ("structured_outputs", "response_format", "logprobs") if name in asked
    } == sent


@pytest.mark.parametrize("engine", ["llamacpp", "library", "someone", "openai"])
async def test_a_grammar_is_not_asked_of_a_server_that_cannot_keep_to_it(engine):
    async with FaultyServer(engine=engine) as server, quick(server.url) as model:
        with pytest.raises(ModelError, match="cannot hold a reply to a grammar"):
            await ask(model, form=GRAMMAR)
    assert not server.chats


@pytest.mark.parametrize("engine", ["llamacpp", "library", "someone", "openai"])
@pytest.mark.parametrize("form", [ANIMALS, NumberForm(), JsonForm(json_schema={"type": "object"})])
async def test_other_engines_are_told_only_what_they_are_known_to_understand(engine, form):
    async with FaultyServer(engine=engine) as server, quick(server.url) as model:
        await ask(model, form=form)
    asked = server.chats[0].json
    assert "structured_outputs" not in asked
    schema = engine in ("llamacpp", "library") and form.kind == "json"
    assert ("response_format" in asked) == schema


async def test_declared_constraints_win_over_what_the_server_says_of_itself():
    async with FaultyServer(engine="someone") as server, quick(server.url, constraints="vllm") as model:
        assert (await ask(model, form=ANIMALS)).text == "A"


async def test_fields_of_a_file_are_json_and_null_leaves_one_out(tmp_path):
    async with FaultyServer() as server:
        file = tmp_path / "thinker.yaml"
        file.write_text(f"""
name: thinker
task: general
models:
  llm:
    url: {server.url}
    pictures: 0
    extra:
      max_tokens: null
      max_completion_tokens: 2000
      chat_template_kwargs: {{enable_thinking: false}}
members: {{mind: {{agent: chat, model: llm}}}}
mindstorm: [{{ask: mind, prompt: solve}}]
""")
        async with nlsom.load(file) as society:
            await society.ask("Why?")
    asked = server.chats[-1].json
    assert "max_tokens" not in asked
    assert asked["max_completion_tokens"] == 2000
    assert asked["chat_template_kwargs"] == {"enable_thinking": False}


async def test_room_for_thinking_and_extra_fields_are_added_and_named_in_the_identity():
    extra = {"chat_template_kwargs": {"enable_thinking": False}}
    async with FaultyServer() as server, quick(server.url, thinking=100, extra=extra) as model:
        await ask(model, form=ANIMALS)
        await ask(model, form=ANIMALS, max_tokens=3)
        assert model.identity == f"faulty (org/faulty) thinking=100 {json.dumps(extra)}"
    first, second = (chat.json for chat in server.chats)
    assert first["max_tokens"] == ANIMALS.max_tokens + 100
    assert second["max_tokens"] == 103
    assert first["chat_template_kwargs"] == {"enable_thinking": False}


# What comes back


async def test_the_logprob_of_a_choice_and_the_usage_are_read():
    async with FaultyServer([ok("B", logprob=-0.25, cached=3)]) as server, quick(server.url) as model:
        completion = await ask(model, "one two three four", form=ANIMALS)
    assert (completion.text, completion.logprob) == ("B", -0.25)
    usage = completion.usage
    assert (usage.calls, usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens) == (1, 4, 3, 1)


async def test_a_reply_outside_its_constraint_has_no_logprob_and_is_warned_of_once(caplog):
    async with FaultyServer(then=ok("I think B.")) as server, quick(server.url) as model:
        with caplog.at_level(logging.WARNING):
            completions = [await ask(model, form=ANIMALS) for _ in range(3)]
    assert [(one.text, one.logprob) for one in completions] == [("I think B.", None)] * 3
    assert len(caplog.records) == 1
    assert "does not keep to the form" in caplog.text


async def test_a_reply_that_was_cut_for_length_is_not_warned_of(caplog):
    async with FaultyServer([ok("Well, I", finish="length")]) as server, quick(server.url) as model:
        await ask(model, form=ANIMALS)
    assert caplog.records == []


async def test_thinking_never_reaches_the_text():
    replies = ["<think>a dog?</think>\n\nB", "a dog?</think>B", "<think>a dog?", "B"]
    async with FaultyServer([ok(reply) for reply in replies]) as server, quick(server.url) as model:
        assert [(await ask(model)).text for _ in replies] == ["B", "B", "", "B"]


# Opening


async def test_the_only_model_of_a_server_is_found_and_several_are_listed():
    async with FaultyServer(models=("a", "b")) as server:
        with pytest.raises(UsageError, match="serves a, b; say which"):
            await quick(server.url).__aenter__()
        async with quick(server.url, "b") as model:
            assert model.identity == "b (org/b)"
            await ask(model)
    assert server.chats[0].json["model"] == "b"


async def test_a_name_that_is_not_served_is_refused_with_the_names_that_are():
    async with FaultyServer(models=("a", "b")) as server, quick(server.url, "c") as model:
        with pytest.raises(ModelUnavailable, match="has no model 'c'; it serves a, b"):
            await ask(model)


async def test_where_nothing_of_the_interface_is_the_address_is_in_doubt():
    everywhere = {"/v1/models": status(404), "/v1/chat/completions": status(404)}
    async with FaultyServer(answers=everywhere) as server, quick(server.url, "m") as model:
        with pytest.raises(ModelUnavailable, match="has no model 'm'; does the address end in /v1"):
            await ask(model)


async def test_a_server_that_lists_no_models_is_fine_when_the_model_is_named():
    async with FaultyServer(answers={"/v1/models": status(404)}) as server:
        with pytest.raises(ModelError, match="does the address end in /v1"):
            await quick(server.url).__aenter__()
        async with quick(server.url, "faulty") as model:
            assert model.identity == "faulty"
            assert (await ask(model)).text == "ok"


async def test_a_server_that_is_down_is_unavailable_after_the_declared_retries():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        with pytest.raises(ModelUnavailable, match=r"cannot be reached .* \(3 attempts\)"):
            await quick(url, retries=2).__aenter__()


async def test_a_model_is_closed_with_the_last_who_opened_it():
    async with FaultyServer() as server:
        model = quick(server.url)
        async with model:
            async with model:
                await ask(model)
            assert (await ask(model)).text == "ok"
        with pytest.raises(RuntimeError, match="not open"):
            await ask(model)
        async with model:
            assert (await ask(model)).text == "ok"


@pytest.mark.parametrize(
    "url",
    [
        "ftp://a/v1",
        "http://xn--/v1",
        "a:8000",
        "http://",
        "http://me:pw@a/v1",
        "http://a/v1?key=1",
        "http://a:x/v1",
        "http://a:65536/v1",
        "",
        [],
    ],
)
def test_an_address_that_cannot_be_one_is_refused_without_showing_a_password(url):
    with pytest.raises(UsageError) as caught:
        HttpModel(url)
    assert "pw" not in str(caught.value)


# Pictures


async def test_whether_a_model_sees_is_found_out_by_showing_it_a_square():
    blind = status(400, "faulty is not a multimodal model")
    async with FaultyServer([blind]) as server, quick(server.url, pictures=None) as model:
        assert not model.sees
        with pytest.raises(ModelError, match="takes no pictures, and was given 1"):
            await ask(model, pictured(1))
    async with FaultyServer() as server, quick(server.url, pictures=None) as model:
        assert model.sees
        await ask(model, pictured(3))
    assert len(server.chats[-1].json["messages"][0]["content"]) == 4


async def test_too_many_pictures_are_an_error_unless_the_first_are_to_be_kept():
    async with (
        FaultyServer() as server,
        quick(server.url, pictures=2) as model,
    ):
        with pytest.raises(ModelError, match="at most 2 pictures in a prompt, and was given 3"):
            await ask(model, pictured(3))
        async with quick(server.url, pictures=2, too_many_pictures="first") as model:
            await ask(model, pictured(3))
    content = server.chats[0].json["messages"][0]["content"]
    assert [base64.b64decode(part["image_url"]["url"].split(",")[1]) for part in content[:-1]] == [
        b"picture 0",
        b"picture 1",
    ]


# The key


async def test_the_key_comes_from_the_environment_and_is_never_shown(monkeypatch):
    monkeypatch.setenv("MY_API_KEY", "sesame")
    async with (
        FaultyServer(key="sesame") as server,
        quick(server.url, key_env="MY_API_KEY") as model,
    ):
        assert (await ask(model)).text == "ok"
        assert "sesame" not in repr(model)
        server.then = status(400, "I know that sesame is your key")
        with pytest.raises(ModelError) as caught:
            await ask(model)
        assert "sesame" not in str(caught.value)
        assert "***" in str(caught.value)
        monkeypatch.setenv("MY_API_KEY", "wrong")
        with pytest.raises(ModelUnavailable, match="refused the key in MY_API_KEY") as caught:
            await quick(server.url, key_env="MY_API_KEY").__aenter__()
        assert "wrong" not in str(caught.value)
        monkeypatch.delenv("MY_API_KEY")
        with pytest.raises(ModelUnavailable, match="wants a key; put it into MY_API_KEY"):
            await quick(server.url, key_env="MY_API_KEY").__aenter__()


async def test_a_key_with_a_line_break_in_it_is_refused_without_showing_it(monkeypatch):
    monkeypatch.setenv("NLSOM_API_KEY", "ses\name")
    with pytest.raises(ModelUnavailable, match="the key in NLSOM_API_KEY has characters") as caught:
        await quick("http://127.0.0.1:1/v1").__aenter__()
    assert "ses" not in str(caught.value)


def test_no_other_secret_of_the_environment_can_be_sent():
    with pytest.raises(UsageError, match="has to end in _API_KEY"):
        HttpModel("http://a/v1", key_env="AWS_SECRET_ACCESS_KEY")


# Faults


@pytest.mark.parametrize(
    "fault",
    [
        busy(),
        busy(retry_after=0),
        busy(retry_after="Fri, 02 Jan 2026 03:04:35 GMT"),
        status(408),
        status(500),
        status(502),
        status(503),
        status(504),
        cut(),
        cut(at=0),
        drop(),
        body(b""),
        body(b"\xff\x00garbage"),
        body(b"[" * 100_000),
        body(b"[]"),
        body(b"{}"),
        body(b'{"choices": []}'),
        body(b'{"choices": [{"text": "old"}]}'),
        body(b'{"choices": [{"message": {"content": ["parts"]}}]}'),
        endless(),
    ],
)
async def test_a_fault_that_may_pass_is_tried_again(fault: Behaviour):
    async with FaultyServer([fault, ok("fine")]) as server, quick(server.url) as model:
        assert (await ask(model)).text == "fine"
    assert len(server.chats) == 2
    assert server.chats[0].body == server.chats[1].body


@pytest.mark.parametrize(
    ("fault", "error", "told"),
    [
        (busy(), ModelUnavailable, "answered 429: too many requests"),
        (status(503, "draining"), ModelUnavailable, "answered 503: draining"),
        (status(500, "oh"), ModelError, "answered 500: oh"),
        (cut(), ModelUnavailable, "broke off its answer"),
        (body(b"<html>"), ModelError, "something else than asked for: it is not JSON: b'<html>'"),
        (body(b"{}"), ModelError, "it has no `choices`"),
        (endless(), ModelError, "longer than 8 MiB"),
        (ok("on " * 30_000), ModelError, "89,999 characters, where 8 tokens were asked for"),
    ],
)
async def test_a_fault_that_does_not_pass_ends_after_the_declared_retries(fault, error, told):
    async with FaultyServer(then=fault) as server, quick(server.url, retries=2) as model:
        with pytest.raises(error) as caught:
            await ask(model)
    assert told in str(caught.value)
    assert str(caught.value).endswith("(3 attempts)")
    assert len(server.chats) == 3


@pytest.mark.parametrize("fault", [hang(), endless(every=0.02, size=1), drip(every=0.02, size=1)])
async def test_a_reply_that_takes_too_long_is_given_up_at_the_second_time(fault):
    async with FaultyServer(then=fault) as server, quick(server.url, timeout=0.2) as model:
        with pytest.raises(ModelUnavailable, match=r"did not answer within 0\.2 seconds \(2 attempts\)"):
            await ask(model)
        await server.until(lambda server: server.disconnects == 2)


async def test_a_refused_request_is_not_tried_again_and_says_why_in_bounded_words():
    async with FaultyServer(then=status(400, "bad\n" * 500)) as server, quick(server.url) as model:
        with pytest.raises(ModelError, match=r"refused the request for faulty \(400\): bad bad") as caught:
            await ask(model)
    assert len(server.chats) == 1
    assert len(str(caught.value)) < 400


async def test_a_redirect_is_not_followed():
    async def elsewhere(call: Call) -> None:
        await call.reply(b"", status=307, headers={"Location": "http://169.254.169.254/"})

    async with FaultyServer(then=elsewhere) as server, quick(server.url) as model:
        with pytest.raises(ModelError, match="sends elsewhere"):
            await ask(model)
    assert len(server.chats) == 1


async def test_the_environments_proxy_is_not_used(monkeypatch):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    async with FaultyServer() as server, quick(server.url) as model:
        assert (await ask(model)).text == "ok"


async def test_retry_after_holds_back_everyone_and_releases_the_slot():
    async with (
        FaultyServer([busy(retry_after=0.3), busy(retry_after=1)]) as server,
        quick(server.url, longest_wait=0.3) as model,
    ):
        began = time.monotonic()
        await ask(model)  # 0.3 is not a whole number of seconds, so it says nothing
        assert len(server.chats) == 3
        assert time.monotonic() - began >= 0.29  # one second, cut to the longest wait


async def test_retry_after_holds_back_those_who_were_not_refused_too():
    async with (
        FaultyServer([busy(retry_after=60)]) as server,
        quick(server.url, longest_wait=0.3) as model,
    ):
        refused = asyncio.ensure_future(ask(model))
        await server.until(lambda server: len(server.chats) == 1)
        while model._exchange.replicas[0].limits.free:
            await asyncio.sleep(0.001)
        began = time.monotonic()
        await ask(model)
        assert time.monotonic() - began >= 0.25
        await refused


async def test_a_body_without_end_is_cut_off():
    async with FaultyServer([endless()]) as server, quick(server.url) as model:
        assert (await ask(model)).text == "ok"
        await server.until(lambda server: server.disconnects == 1)


async def test_a_declared_proxy_is_used():
    far = "http://far.example/v1"
    answers = {
        f"{far}/models": body(b'{"data": [{"id": "m"}]}'),
        f"{far}/chat/completions": ok("through the proxy"),
    }
    async with (
        FaultyServer(answers=answers) as proxy,
        quick(far, proxy=proxy.url.removesuffix("/v1")) as model,
    ):
        assert (await ask(model)).text == "through the proxy"


@pytest.mark.parametrize(
    "options",
    [{"proxy": "nowhere:x:y"}, {"concurrency": 0}, {"requests_per_second": 0}, {"proxy": "ftp://u:pw@a"}],
)
def test_options_that_cannot_work_are_refused_when_the_model_is_made(options):
    with pytest.raises(UsageError) as caught:
        HttpModel("http://a/v1", **options)
    assert "pw" not in str(caught.value)


# Limits


async def test_no_more_than_the_cap_is_ever_in_flight_at_a_server():
    async with FaultyServer(then=ok(after=0.003)) as server, quick(server.url, concurrency=5) as model:
        completions = await asyncio.gather(*(ask(model) for _ in range(60)))
    assert len(completions) == 60
    assert server.most_in_flight == 5


async def test_a_server_that_refuses_is_pressed_half_as_hard_and_then_more_again():
    at_once: list[int] = []

    async def refuse_together(call: Call) -> None:
        await server.until(lambda server: server.most_in_flight == 8)
        await status(503)(call)

    async def serve(call: Call) -> None:
        at_once.append(server.in_flight)
        await ok(after=0.02)(call)

    async with (
        FaultyServer([refuse_together] * 8, then=serve) as server,
        quick(server.url, concurrency=8) as model,
    ):
        await asyncio.gather(*(ask(model) for _ in range(8)))
        assert max(at_once) <= 6  # 4, and one more for every 4 that were served
        await asyncio.gather(*(ask(model) for _ in range(80)))
        assert max(at_once[-20:]) == 8


# Cancel


@pytest.mark.parametrize("behaviour", [hang(), endless(every=0.01, size=1), drip(every=0.05, size=1)])
async def test_leaving_a_call_closes_the_connection_so_that_the_server_stops(behaviour):
    async with FaultyServer([behaviour] * 3) as server, quick(server.url, concurrency=3) as model:
        calls = [asyncio.ensure_future(ask(model)) for _ in range(3)]
        await server.until(lambda server: server.in_flight == 3)
        for call in calls:
            call.cancel()
        await server.until(lambda server: server.disconnects == 3 and server.in_flight == 0)
        await asyncio.wait(calls)
        assert all(call.cancelled() for call in calls)
        assert [one.text for one in await asyncio.gather(*(ask(model) for _ in range(9)))] == ["ok"] * 9


async def test_a_cancel_while_waiting_to_try_again_is_clean():
    async with (
        FaultyServer(then=status(500)) as server,
        quick(server.url, backoff=60, longest_wait=60) as model,
    ):
        call = asyncio.ensure_future(ask(model))
        await server.until(lambda server: len(server.chats) == 1)
        await asyncio.sleep(0.02)
        call.cancel()
        await asyncio.wait([call])
        assert call.cancelled()
        server.then = ok()
        assert (await ask(model)).text == "ok"


# Context


async def test_a_prompt_that_may_be_too_long_is_counted_by_vllm_before_it_is_sent():
    async with FaultyServer(context=100) as server, quick(server.url) as model:
        await ask(model, "word " * 50)  # short enough by its bytes
        await ask(model, "wordy " * 91)  # not by its bytes, but by its tokens
        assert [one.path for one in server.requests[1:]] == [
            "/v1/chat/completions",
            "/tokenize",
            "/v1/chat/completions",
        ]
        with pytest.raises(
            PromptTooLong, match="prompt of 93 tokens and a reply of up to 8 do not fit faulty"
        ):
            await ask(model, "wordy " * 93)
    assert len(server.chats) == 2


@pytest.mark.parametrize(
    "told",
    [
        "This model's maximum context length is 100 tokens. However, your prompt contains at least 101 input"
        " tokens, which exceeds this limit even without any output tokens.",
        "This model's maximum context length is 100 tokens. However, you requested 109 tokens (101 in the"
        " messages, 8 in the completion).",
        "Input length (101) exceeds model's maximum context length (100).",
        "The decoder prompt (length 101) is longer than the maximum model length of 100. Make sure that",
        "request (101 tokens) exceeds the available context size (100 tokens), try increasing it",
        "Input is too long for the model",
    ],
)
async def test_a_servers_own_word_for_too_long_is_understood(told):
    async with FaultyServer(then=status(400, told), engine="other", context=100) as server:
        server.context = None
        async with quick(server.url, context=100) as model:
            with pytest.raises(PromptTooLong) as caught:
                await ask(model, "word " * 80)
    assert (caught.value.limit, caught.value.reply) == (100, 8)
    assert caught.value.tokens in (100, 101, 109)  # 400 bytes where nothing is said


async def test_a_gateway_that_does_not_count_leaves_it_to_the_server():
    async with (
        FaultyServer(context=100, answers={"/tokenize": status(404)}) as server,
        quick(server.url) as model,
    ):
        for _ in range(2):
            with pytest.raises(PromptTooLong, match="prompt of 200 tokens"):
                await ask(model, "word " * 200)
    assert [one.path for one in server.requests].count("/tokenize") == 1


# Replicas


async def test_requests_that_share_pictures_and_task_meet_at_one_server():
    async with FaultyServer() as one, FaultyServer() as two, quick([one.url, two.url]) as model:
        for task in range(20):
            head = f"Task {task}: how many dogs are there? " * 8
            for round_ in range(3):
                await ask(model, Prompt(head + "said " * round_, "You.", (), MediaStore()))
    texts = [{chat.text[:12] for chat in server.chats} for server in (one, two)]
    assert texts[0].isdisjoint(texts[1])
    assert all(texts)


async def test_a_full_server_spills_over_to_another():
    async with (
        FaultyServer(then=ok(after=0.02)) as one,
        FaultyServer(then=ok(after=0.02)) as two,
        quick([one.url, two.url], concurrency=4) as model,
    ):
        await asyncio.gather(*(ask(model) for _ in range(32)))
    assert one.most_in_flight == two.most_in_flight == 4


async def test_when_one_server_dies_mid_run_the_other_takes_over_and_it_is_used_again_when_it_is_back():
    one, two = FaultyServer(then=ok(after=0.01)), FaultyServer(then=ok(after=0.01))
    async with (
        two,
        one,
        quick([one.url, two.url], concurrency=4) as model,
    ):
        calls = [asyncio.ensure_future(ask(model, f"{n} is a number")) for n in range(40)]
        await one.until(lambda server: len(server.chats) >= 3)
        await one.__aexit__()
        answered = await asyncio.gather(*calls)
        assert [completion.text for completion in answered] == ["ok"] * 40
        before = len(one.chats)
        async with one:
            deadline = time.monotonic() + 20
            while len(one.chats) == before and time.monotonic() < deadline:
                await asyncio.gather(*(ask(model, f"{n} is a number") for n in range(8)))
        assert len(one.chats) > before


async def test_a_server_that_is_down_from_the_start_is_done_without():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        dead = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        async with FaultyServer() as server, quick([dead, server.url], retries=0) as model:
            answered = await asyncio.gather(*(ask(model, f"{n} is a number") for n in range(10)))
    assert len(answered) == len(server.chats) == 10


async def test_servers_that_serve_different_models_are_no_replicas():
    other = body(b'{"data": [{"id": "faulty", "root": "org/other"}]}')
    async with FaultyServer() as one, FaultyServer(answers={"/v1/models": other}) as two:
        with pytest.raises(UsageError, match=r"serve several: faulty \(org/faulty\), faulty \(org/other\)"):
            await quick([one.url, two.url]).__aenter__()


async def test_what_fails_at_one_server_is_tried_at_another():
    async with (
        FaultyServer(then=status(500)) as broken,
        FaultyServer() as sound,
        quick([broken.url, sound.url], retries=0) as model,
    ):
        answered = await asyncio.gather(*(ask(model, f"{n} is a number") for n in range(20)))
    assert len(answered) == len(sound.chats) == 20
    assert broken.chats


async def test_a_server_that_is_down_is_left_alone_for_a_while():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        dead = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        async with (
            FaultyServer() as server,
            quick([dead, server.url], retries=0, backoff=60, longest_wait=60) as model,
        ):
            for n in range(20):
                await ask(model, f"{n} is a number")
            assert [replica.failures for replica in model._exchange.replicas] == [1, 0]


def test_a_model_serves_one_event_loop_after_the_other_also_where_several_open_it_at_once():
    model = HttpModel("http://127.0.0.1:9/v1", retries=0)

    async def opened():
        async with model:
            pass

    async def several():
        return await asyncio.gather(*(opened() for _ in range(3)), return_exceptions=True)

    for _ in range(2):
        assert {type(error) for error in asyncio.run(several())} == {ModelUnavailable}
