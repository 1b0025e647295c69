"""A society's model by the name of its server."""

from __future__ import annotations

import subprocess
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from nlsom.errors import ModelError, ModelUnavailable, UsageError
from nlsom.form import TextForm
from nlsom.media import MediaStore
from nlsom.message import Image
from nlsom.model import Model, Prompt, Settings
from nlsom.testing.faulty import FaultyServer
from nlsom.testing.models import ModelContract, prompt_of
from nlsom.testing.pictures import plain
from nlsom_serve.vllm import state
from nlsom_serve.vllm.model import ProfileModel
from nlsom_serve.vllm.profiles import Facts, Traits
from nlsom_serve.vllm.state import Server

Known = Callable[..., None]


@pytest.fixture
def known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Known]:
    """Makes a server known by a name, with a process that stands for it."""
    monkeypatch.setenv("NLSOM_HOME", str(tmp_path))
    processes: list[subprocess.Popen[bytes]] = []

    def know(name: str, server: FaultyServer, model: str = "faulty", facts: Facts | None = None) -> None:
        processes.append(subprocess.Popen(["sleep", "60"], start_new_session=True))
        state.write(
            Server(
                name=name,
                model=model,
                url=server.url.removesuffix("/v1"),
                pid=processes[-1].pid,
                born=state.birth(processes[-1].pid) or "",
                since=time.time(),
                log="",
                detached=True,
                config="",
                facts=facts or Facts(),
            )
        )

    yield know
    for process in processes:
        process.kill()
        process.wait()


class TestProfileModel(ModelContract):
    context = 512

    @pytest.fixture
    async def model(self, known: Known) -> AsyncIterator[Model]:
        async with FaultyServer(context=self.context) as server:
            known("it", server)
            async with ProfileModel("it") as model:
                yield model


async def test_the_profiles_traits_shape_requests(known: Known):
    traits = Traits(thinking=100, request={"chat_template_kwargs": {"enable_thinking": True}})
    facts = Facts(modalities=("text", "image"), images_per_prompt=1, traits=traits)
    async with FaultyServer() as server:
        known("it", server, facts=facts)
        async with ProfileModel("it") as model:
            await model.complete(
                prompt_of("Hello."), form=TextForm(max_tokens=8), settings=Settings(), seed=0
            )
            pictures = (Image(sha256="a", media_type="image/png", width=1, height=1, source="a"),) * 2
            two = Prompt(head="Look.", tail="", images=pictures, media=MediaStore())
            with pytest.raises(ModelError, match="at most 1 pictures"):
                await model.complete(two, form=TextForm(), settings=Settings(), seed=0)
        (sent,) = server.chats
    assert sent.json["max_tokens"] == 108
    assert sent.json["chat_template_kwargs"] == {"enable_thinking": True}


async def test_a_society_may_have_the_first_pictures_kept_instead_of_an_error(known: Known):
    facts = Facts(modalities=("text", "image"), images_per_prompt=2)
    media = MediaStore()
    pictures = tuple([await media.add(plain(colour)) for colour in ("red", "green", "blue")])
    three = Prompt(head="Look.", tail="", images=pictures, media=media)
    async with FaultyServer() as server:
        known("it", server, facts=facts)
        async with ProfileModel("it", too_many_pictures="first") as model:
            await model.complete(three, form=TextForm(), settings=Settings(), seed=0)
        (sent,) = server.chats
    shown = [part["image_url"]["url"] for part in sent.json["messages"][0]["content"][:-1]]
    assert shown == [await media.data_url(kept) for kept in pictures[:2]]


async def test_it_stays_open_until_the_last_who_opened_it_is_done(known: Known):
    async with FaultyServer() as server:
        known("it", server)
        shared = ProfileModel("it")
        async with shared:
            async with shared:
                pass
            await shared.complete(prompt_of("Hello."), form=TextForm(), settings=Settings(), seed=0)
    with pytest.raises(RuntimeError, match="is not open"):
        await shared.complete(prompt_of("Hello."), form=TextForm(), settings=Settings(), seed=0)


async def test_replicas_have_to_serve_one_model_alike(known: Known):
    async with FaultyServer() as one, FaultyServer() as two:
        known("one", one)
        known("two", two, model="another")
        with pytest.raises(UsageError, match="one serves faulty, two serves another"):
            async with ProfileModel(["one", "two"]):
                pass


async def test_a_server_that_is_not_up_is_named(known: Known):
    with pytest.raises(ModelUnavailable, match="the server 'it' is not running: nlsom models up it"):
        async with ProfileModel("it"):
            pass
