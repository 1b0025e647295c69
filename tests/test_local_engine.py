"""The embedded engine with a real model: small, and fetched as a user's is."""

from __future__ import annotations

import asyncio
import math
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import openvino_genai as genai
import pytest
import pytest_asyncio

from nlsom.errors import ModelError, ModelUnavailable, PromptTooLong
from nlsom.form import ChoiceForm, Form, GrammarForm, JsonForm, NumberForm, RankingForm, TextForm, YesNoForm
from nlsom.home import home
from nlsom.media import MediaStore
from nlsom.message import Image
from nlsom.model import Completion, Prompt, Settings
from nlsom_agents.local import catalog, worker
from nlsom_agents.local.batch import Batch, Outcome, Request
from nlsom_agents.local.embed import Sentences
from nlsom_agents.local.embedded import Embedded
from nlsom_agents.local.fetch import pull

pytestmark = [pytest.mark.real_model, pytest.mark.asyncio(loop_scope="module")]

SHORT = Settings(max_tokens=12)


@pytest.fixture(scope="module")
def small() -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HUB_OFFLINE", "1")
        pull("smollm2-135m")
    return "smollm2-135m"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def model(small: str) -> AsyncIterator[Embedded]:
    async with Embedded(small) as opened:
        yield opened


async def ask(
    model: Embedded, text: str, form: Form | None = None, settings: Settings = SHORT, seed: int = 0
) -> Completion:
    prompt = Prompt("", text, (), MediaStore())
    return await model.complete(prompt, form=form or TextForm(), settings=settings, seed=seed)


async def test_sixteen_at_once_are_all_answered_and_counted(model: Embedded) -> None:
    replies = await asyncio.gather(*(ask(model, f"Write about the number {n}.") for n in range(16)))
    assert all(reply.text for reply in replies)
    assert all(reply.logprob is None for reply in replies)
    assert {reply.usage.calls for reply in replies} == {1}
    assert {reply.usage.cached_tokens for reply in replies} == {None}
    assert all(0 < reply.usage.completion_tokens <= 12 for reply in replies)
    assert all(reply.usage.prompt_tokens > 10 for reply in replies)


async def test_greedy_replies_are_the_same_every_time(model: Embedded) -> None:
    first = await ask(model, "Name a fruit.")
    assert (await ask(model, "Name a fruit.")).text == first.text
    assert (await ask(model, "Name a fruit.", seed=7)).text == first.text


async def test_sampling_follows_the_seed(model: Embedded) -> None:
    warm = Settings(temperature=1.0, top_p=0.95, max_tokens=16)
    seeds = (3, 1, 1, 2, 2**63 + 5, 2**80)
    _, one, again, *others = [
        await ask(model, "Tell me a story.", settings=warm, seed=seed) for seed in seeds
    ]
    assert one.text == again.text
    assert len({one.text, *(other.text for other in others)}) > 1


async def test_a_choice_is_always_one_of_the_options_with_its_logprob(model: Embedded) -> None:
    form = ChoiceForm(options=tuple(f"thing {n}" for n in range(40)))
    replies = await asyncio.gather(*(ask(model, f"Choose, {n}. {form.instruct()}", form) for n in range(6)))
    for reply in replies:
        assert form.read(reply.text).answer in form.options
        assert reply.logprob is not None
        assert reply.logprob <= 0
        assert math.isfinite(reply.logprob)
    yes = await ask(model, "Is the sky blue?", YesNoForm())
    assert yes.text in ("Yes", "No")


async def test_replies_keep_to_their_form(model: Embedded) -> None:
    ranking = RankingForm(options=("red", "green", "blue"))
    schema = JsonForm(
        json_schema={
            "type": "object",
            "properties": {"animal": {"enum": ["cat", "dog"]}},
            "required": ["animal"],
        }
    )
    number, order, animal = await asyncio.gather(
        ask(model, "How many legs has a dog?", NumberForm()),
        ask(model, ranking.instruct(), ranking, Settings()),
        ask(model, "Name an animal as JSON.", schema, Settings(max_tokens=60)),
    )
    assert NumberForm().read(number.text).answer is not None
    assert ranking.read(order.text).answer in ranking.options
    assert schema.read(animal.text).answer is not None or animal.text.strip(" \n{") == ""


async def test_a_grammar_is_kept_to_or_the_reply_is_no_answer(model: Embedded) -> None:
    sum_of = 'root ::= term " + " term\nterm ::= [0-9]'
    reply = await ask(model, "Write a sum.", GrammarForm(grammar=sum_of), Settings())
    assert re.fullmatch(r"[0-9] \+ [0-9]", reply.text)
    long = GrammarForm(grammar='root ::= "a cat" root | "a dog sat on a mat"', max_tokens=2)
    with pytest.raises(ModelError, match="cut after 2 tokens"):
        await ask(model, "Write about animals.", long, Settings())


async def test_a_reply_ends_at_a_stop(model: Embedded) -> None:
    reply = await ask(model, "Count from 1 to 20.", settings=Settings(max_tokens=60, stop=("3",)))
    assert "3" not in reply.text


async def test_a_schema_that_cannot_work_is_refused_and_the_engine_goes_on(model: Embedded) -> None:
    bad = JsonForm(json_schema={"type": "nonsense"})
    refused, reply = await asyncio.gather(ask(model, "?", bad), ask(model, "Say hi."), return_exceptions=True)
    assert isinstance(refused, ModelError)
    assert isinstance(reply, Completion)


async def test_a_prompt_longer_than_the_context_is_refused_with_its_length(model: Embedded) -> None:
    with pytest.raises(PromptTooLong) as caught:
        await ask(model, "word " * 9000)
    assert caught.value.tokens > 9000
    assert caught.value.limit == 8192


async def test_pictures_are_refused(model: Embedded) -> None:
    picture = Image(sha256="0", media_type="image/png", width=1, height=1, source="0")
    with pytest.raises(ModelError, match="does not accept pictures"):
        await model.complete(
            Prompt("", "?", (picture,), MediaStore()), form=TextForm(), settings=SHORT, seed=0
        )
    assert not model.sees


async def test_text_that_is_no_unicode_is_survived(model: Embedded) -> None:
    assert (await ask(model, "Say \ud800 \x00 😀.")).usage.completion_tokens > 0


async def test_a_caller_that_is_cancelled_frees_the_engine(model: Embedded) -> None:
    endless = Settings(max_tokens=4000)
    tasks = [
        asyncio.create_task(ask(model, f"Write a long novel, part {n}.", settings=endless)) for n in range(4)
    ]
    await ask(model, "Say hi.")
    for task in tasks:
        task.cancel()
    assert all(
        isinstance(end, asyncio.CancelledError)
        for end in await asyncio.gather(*tasks, return_exceptions=True)
    )
    assert (await ask(model, "Say hi.")).text


async def test_the_loop_is_free_while_the_engine_works(model: Embedded) -> None:
    """A step holds the global lock of its process: in ours, no timer would fire until the end."""
    asked = asyncio.create_task(ask(model, "word " * 1500, settings=Settings(max_tokens=1)))
    ticks = 0
    while not asked.done():
        await asyncio.sleep(0.001)
        ticks += 1
    assert (await asked).usage.prompt_tokens > 1500
    assert ticks > 20


async def test_two_societies_share_an_engine_and_the_last_ends_it(small: str) -> None:
    model = Embedded(small)
    with pytest.raises(ModelUnavailable, match="not open"):
        await ask(model, "Say hi.")
    async with model:
        async with model:
            assert (await ask(model, "Say hi.")).text
        waiting = asyncio.create_task(ask(model, "Write a long novel.", settings=Settings(max_tokens=4000)))
        await ask(model, "Say hi.")
    with pytest.raises(ModelUnavailable, match="closed"):
        await waiting
    with pytest.raises(ModelUnavailable, match="not open"):
        await ask(model, "Say hi.")


def workers() -> set[int]:
    """Processes of engines that we started."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return {int(pid) for pid in children if b"local.worker" in Path(f"/proc/{pid}/cmdline").read_bytes()}


async def test_an_engine_that_is_killed_fails_those_who_wait(small: str) -> None:
    before = workers()
    async with Embedded(small) as model:
        waiting = asyncio.create_task(ask(model, "Write a long novel.", settings=Settings(max_tokens=4000)))
        await ask(model, "Say hi.")
        (child,) = workers() - before
        os.kill(child, signal.SIGKILL)
        with pytest.raises(ModelUnavailable, match="ended"):
            await waiting


async def test_an_engine_ends_when_the_process_that_started_it_is_killed(small: str) -> None:
    script = (
        "import asyncio, pathlib, os\n"
        "from nlsom_agents.local.embedded import Embedded\n"
        "async def main():\n"
        f"    async with Embedded({small!r}):\n"
        "        print(pathlib.Path(f'/proc/self/task/{os.getpid()}/children').read_text(), flush=True)\n"
        "        await asyncio.sleep(600)\n"
        "asyncio.run(main())\n"
    )
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, stdout=asyncio.subprocess.PIPE
    )
    assert parent.stdout is not None
    child = Path("/proc") / (await parent.stdout.readline()).decode().strip()
    assert b"local.worker" in (child / "cmdline").read_bytes()
    parent.kill()
    await parent.wait()
    while child.exists() and b"local.worker" in (child / "cmdline").read_bytes():
        await asyncio.sleep(0.05)


async def test_sentences_that_mean_alike_lie_close() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HUB_OFFLINE", "1")
        await asyncio.to_thread(pull, "minilm-l6-v2")
    sentences = Sentences()
    texts = ["a man riding a wave on a surfboard", "a surfer on the ocean", "a cat asleep on a sofa \ud800"]
    vectors = await sentences.embed(texts)
    assert vectors.shape == (3, 384)
    likeness = vectors @ vectors.T
    assert likeness.diagonal() == pytest.approx(1, abs=1e-5)
    assert likeness[0, 1] > 0.5 > likeness[0, 2]
    alone = await sentences.embed(texts[1:2])
    assert alone[0] @ vectors[1] == pytest.approx(1, abs=0.02)
    assert (await sentences.embed([])).shape == (0, 384)


class Watched:
    """A real pipeline that notes when requests come in and steps are made."""

    def __init__(self, pipeline: Any) -> None:
        self._pipeline = pipeline
        self.log: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pipeline, name)

    def add_request(self, *args: Any) -> Any:
        self.log.append("add")
        return self._pipeline.add_request(*args)

    def step(self) -> None:
        self.log.append("step")
        self._pipeline.step()


@pytest.fixture(scope="module")
def pipeline(small: str) -> Watched:
    folder = home() / "openvino" / catalog.digest(small)[:16]
    worker.convert(catalog.path(small), folder)
    assert not list(folder.parent.glob(f"{folder.name}-*"))
    assert not list(folder.glob("*.gguf"))
    scheduling = genai.SchedulerConfig()
    scheduling.cache_size, scheduling.enable_prefix_caching = 1, True
    return Watched(genai.ContinuousBatchingPipeline(folder, scheduling, "CPU"))


def run(batch: Batch, requests: list[Request]) -> dict[int, Outcome]:
    outcomes = {outcome["id"]: outcome for request in requests if (outcome := batch.add(request))}
    while batch.busy:
        outcomes |= {outcome["id"]: outcome for outcome in batch.step()}
    return outcomes


async def test_one_of_those_that_share_a_prompt_goes_ahead(pipeline: Watched) -> None:
    shared = " ".join(f"Agent {n} says that thing {n * 7} is blue." for n in range(30))
    batch = Batch(pipeline, 8192)
    pipeline.log.clear()
    outcomes = run(batch, [Request(id=n, text=f"{shared} You are {n}.", max_tokens=3) for n in range(6)])
    assert len(outcomes) == 6
    assert pipeline.log[:2] == ["add", "step"]
    followers = pipeline.log.index("add", 1)
    assert pipeline.log[followers : followers + 5] == ["add"] * 5
    pipeline.log.clear()
    run(batch, [Request(id=n, text=f"{shared} You are number {n}.", max_tokens=3) for n in range(6)])
    assert pipeline.log[:6] == ["add"] * 6, "what is in the cache needs nobody to go ahead"


async def test_a_constraint_that_slips_through_harms_only_its_own_request(pipeline: Watched) -> None:
    batch = Batch(pipeline, 8192)
    good = [Request(id=n, text=f"Write about {n}.", max_tokens=20) for n in range(3)]
    for request in good:
        assert batch.add(request) is None
    for _ in range(4):
        assert list(batch.step()) == []
    poison = Request(id=9, text="Say hi.", max_tokens=20, grammar={"regex": "(["})
    other = Request(id=8, text="Say yes.", max_tokens=20, grammar={"regex": "yes|no"})
    outcomes = run(batch, [poison, other])
    assert set(outcomes) == {0, 1, 2, 8, 9}
    assert outcomes[9]["error"] == "refused"
    assert "Unclosed" in outcomes[9]["why"]
    assert outcomes[8]["text"] in ("yes", "no")
    assert all(outcomes[request.id]["completion"] > 0 for request in good)
    assert run(batch, [poison])[9]["error"] == "refused"


async def test_a_prompt_that_the_cache_cannot_hold_is_told_so_and_the_next_one_answered(small: str) -> None:
    scheduling = genai.SchedulerConfig()
    scheduling.num_kv_blocks = 12
    folder = home() / "openvino" / catalog.digest(small)[:16]
    batch = Batch(genai.ContinuousBatchingPipeline(folder, scheduling, "CPU"), 8192)
    big, little = (
        Request(id=1, text="word " * 1000, max_tokens=4),
        Request(id=2, text="Say hi.", max_tokens=4),
    )
    outcomes = run(batch, [big, little])
    assert outcomes[1]["error"] == "no room"
    assert outcomes[2]["text"]


async def test_a_long_prompt_is_counted_whole_and_cut_where_no_token_goes_on(pipeline: Watched) -> None:
    text = "\n".join(
        f"Agent {n}: it's the {n}th cat, said “näher” 😀.\n\n  Indented  text" for n in range(100)
    )
    tokenizer = pipeline.get_tokenizer()
    whole = tokenizer.encode(
        tokenizer.apply_chat_template([{"role": "user", "content": text}], add_generation_prompt=True),
        add_special_tokens=False,
    ).input_ids.data[0]
    (outcome,) = run(Batch(pipeline, 8192), [Request(id=1, text=text, max_tokens=1)]).values()
    assert outcome["prompt"] == len(whole)
    (refused,) = run(Batch(pipeline, 20_000), [Request(id=1, text="word " * 19_990, max_tokens=1)]).values()
    assert refused["error"] == "too long"
    assert refused["tokens"] > 20_000
