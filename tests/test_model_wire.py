from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nlsom.errors import ModelError, PromptTooLong
from nlsom.form import Constraint
from nlsom.model.contract import Settings
from nlsom.model.served import read_served
from nlsom.model.wire import (
    MalformedError,
    chat_body,
    error_text,
    keeps_to,
    picture_part,
    read_completion,
    read_token_count,
    refusal,
    without_thinking,
)

CHOICE = Constraint(choice=("A", "B"))


def body_of(text: str, pictures=(), **options) -> bytes:
    named = {"constraint": None, "max_tokens": 4, "settings": Settings(), "seed": 0, "constraints": "none"}
    return chat_body("m", text, pictures, **(named | options))


@given(st.text(alphabet=st.characters()), st.booleans())
def test_any_text_arrives_as_it_was_but_for_lone_surrogates(text, with_picture):
    body = json.loads(body_of(text, [picture_part("data:image/png;base64,aaaa")] if with_picture else []))
    content = body["messages"][0]["content"]
    arrived = content[-1]["text"] if with_picture else content
    assert arrived == "".join("?" if "\ud800" <= letter <= "\udfff" else letter for letter in text)


@given(st.text(min_size=1), st.text(min_size=1), st.text(min_size=1))
def test_bodies_with_one_head_are_one_prefix_up_to_the_tail(head, one, two):
    escaped = json.dumps(head, ensure_ascii=False)[:-1].encode("utf-8", "replace")
    first, second = body_of(head + one), body_of(head + two)
    start = first.index(b'"content":') + len(b'"content":')
    assert first[: start + len(escaped)] == second[: start + len(escaped)]
    assert first[start : start + len(escaped)] == escaped


def test_further_fields_win_over_ours():
    assert json.loads(body_of("x", extra={"seed": 5, "min_p": 0.1}))["seed"] == 5


def message_of(read, body: bytes) -> str:
    """What is said to be wrong with a body; nothing if it was read."""
    try:
        read(body)
    except MalformedError as error:
        return str(error)
    return ""


READERS = (lambda body: read_completion(body, CHOICE, 0.0), read_served, read_token_count)


@given(st.binary(max_size=200))
def test_any_body_is_read_or_malformed_in_few_words(body):
    assert all(len(message_of(read, body)) < 300 for read in READERS)


FIELDS = ("choices", "message", "content", "usage", "logprobs", "logprob", "prompt_tokens", "finish_reason")
MORE_FIELDS = ("data", "id", "max_model_len", "root", "error", "detail", "prompt_tokens_details")
JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from([*FIELDS, *MORE_FIELDS]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(JSON, JSON, JSON)
def test_any_json_is_read_or_malformed(choice, logprobs, usage):
    message = {"choices": [{"message": {"content": "A"}, "logprobs": logprobs}, choice], "usage": usage}
    for value in (choice, {"choices": [choice]}, {"data": [choice]}, message):
        body = json.dumps(value).encode()
        assert len(error_text(body)) <= 300
        assert all(len(message_of(read, body)) < 300 for read in READERS)


def answer(content, **choice) -> bytes:
    return json.dumps({"choices": [{"message": {"content": content}} | choice]}).encode()


@pytest.mark.parametrize(
    ("logprobs", "expected"),
    [
        ([-0.5, -0.25], -0.75),
        ([0.0001], 0.0),
        ([float("-inf")], None),
        ([float("nan")], None),
        ([-(10**400)], None),
        ([None], None),
        ([], None),
    ],
)
def test_the_logprob_of_a_choice_is_the_sum_over_its_tokens(logprobs, expected):
    told = {"content": [{"token": "x", "logprob": one} for one in logprobs]}
    completion, _ = read_completion(answer("A", logprobs=told), CHOICE, 1.5)
    assert completion.logprob == expected
    assert completion.usage.seconds == 1.5


def test_a_message_without_content_is_an_empty_reply():
    # A model that only reasoned, or a server that keeps its reasoning in another field.
    body = json.dumps({"choices": [{"message": {"content": None, "reasoning_content": "B?"}}]}).encode()
    completion, cut = read_completion(body, CHOICE, 0.0)
    assert (completion.text, completion.logprob, cut) == ("", None, False)


def test_a_refusal_in_a_field_of_its_own_is_what_the_model_said():
    body = json.dumps({"choices": [{"message": {"content": None, "refusal": "I can't help."}}]}).encode()
    assert read_completion(body, CHOICE, 0.0)[0].text == "I can't help."


def test_a_number_of_tokens_that_can_be_none_is_not_counted():
    body = json.dumps({"choices": [{"message": {"content": "A"}}], "usage": {"prompt_tokens": 10**400}})
    assert read_completion(body.encode(), CHOICE, 0.0)[0].usage.prompt_tokens == 0


@given(st.text(alphabet="ab \n"), st.text(alphabet="ab"))
def test_the_text_after_thinking_is_kept_and_nothing_else(thought, said):
    assert without_thinking(f"<think>{thought}</think>{said}") == said
    assert without_thinking(f"{thought}</think>\n{said}") == said
    assert without_thinking(f"<think>{thought}{said}") == ""
    assert without_thinking(said) == said


@pytest.mark.parametrize(
    ("constraint", "text", "kept"),
    [
        (CHOICE, "A", True),
        (CHOICE, "A.", False),
        (Constraint(regex="[0-9]+"), "12", True),
        (Constraint(regex="[0-9]+"), "12 dogs", False),
        (Constraint(schema={}), '{"a": 1}', True),
        (Constraint(schema={}), "Sure! {}", False),
    ],
)
def test_whether_a_reply_keeps_to_its_constraint(constraint, text, kept):
    assert keeps_to(constraint, text) is kept


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"error": {"message": "too many\\npictures", "code": 400}}', "too many pictures"),
        (b'{"error": "plain"}', "plain"),
        (b'{"detail": [{"loc": ["body"]}]}', '[{"loc": ["body"]}]'),
        (b'{"message": "top"}', "top"),
        (b"<h1>502</h1>", "<h1>502</h1>"),
        (b"", ""),
    ],
)
def test_what_a_server_says_went_wrong_is_found(body, said):
    assert error_text(body) == said


def test_an_error_that_a_gateway_tells_in_a_200_is_told_on():
    with pytest.raises(MalformedError, match="^the backend is overloaded$"):
        read_completion(b'{"error": {"message": "the backend is overloaded", "code": 529}}', None, 0.0)


def test_a_400_about_something_else_is_no_prompt_too_long():
    named = {"status": 400, "where": "s", "model": "m", "prompt": "p", "reply": 1, "context": 8}
    assert type(refusal(b'{"error": {"message": "At most 1 image"}}', **named)) is ModelError
    long = refusal(b'{"error": {"message": "maximum context length is 9 tokens"}}', **named)
    assert isinstance(long, PromptTooLong)
    assert long.limit == 9


@pytest.mark.parametrize(
    ("root", "expected"),
    [
        ("org/name", "org/name"),
        ("m", None),
        ("/data/models/llava-tiny/", "llava-tiny"),
        ("./llava", "llava"),
        ("C:\\models\\llava", "llava"),
        (None, None),
    ],
)
def test_the_root_of_a_model_says_what_it_is_never_where_it_lies(root, expected):
    listed = read_served(json.dumps({"data": [{"id": "m", "root": root}]}).encode())
    assert listed[0].root == expected
