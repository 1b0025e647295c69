"""Shared by the tests of the server: small societies, and a server on a free port."""

from __future__ import annotations

import base64
import io
import json
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Self

import httpx
import yaml
from PIL import Image as Pillow

from nlsom.agent import Agent
from nlsom.blueprint import Seat, VerdictBy
from nlsom.config import load
from nlsom.member import Member
from nlsom.phase import Ask, Inline
from nlsom.rules import Plurality
from nlsom.society import Society
from nlsom_serve.app import House, Keys, Settings, opened_house
from nlsom_serve.server import served

CHAT = "/v1/chat/completions"

TRIO: dict[str, Any] = {
    "name": "trio",
    "about": "Three members that say fixed lines.",
    "members": {
        "anna": {"agent": "script", "says": {"caption": "a grey cat", "ballot": "A"}},
        "ben": {"agent": "script", "says": {"caption": "a cat on a mat", "ballot": "A"}},
        "cleo": {"agent": "script", "says": {"caption": "perhaps a dog", "ballot": "B"}},
    },
    "mindstorm": [
        {"ask": "everyone", "prompt": {"text": "Say what you see."}, "as": "caption"},
        {"ask": "everyone", "prompt": {"text": "Vote."}, "as": "ballot", "form": "answer"},
    ],
    "verdict": {"rule": "plurality"},
}


def trio(**changes: Any) -> Society:
    """Three scripted members: two vote for the first option, one for the second."""
    return load({**TRIO, **changes})


def one_phase(agents: Sequence[Agent], *, name: str = "slow", members: Sequence[str] = ()) -> Society:
    """A society whose members all vote once."""
    names = members or [f"m{number}" for number in range(len(agents))]
    return Society(
        name=name,
        seats=[Seat(Member(name), agent) for name, agent in zip(names, agents, strict=True)],
        phases=[Ask(ask="everyone", prompt=Inline(text="Vote."), label="ballot", form="answer")],
        verdict=VerdictBy(Plurality(), "plurality"),
    )


@asynccontextmanager
async def serving(
    folder: Path, *societies: Society, settings: Settings | None = None, keys: Keys | None = None
) -> AsyncGenerator[tuple[httpx.AsyncClient, House]]:
    """A server on loopback, and a client for it."""
    made = societies or (trio(),)
    async with (
        opened_house(made, folder, settings=settings or Settings(), keys=keys or Keys()) as house,
        served(house) as url,
        httpx.AsyncClient(base_url=url, timeout=60) as client,
    ):
        yield client, house


def chat(text: str | list[Any], **more: Any) -> dict[str, Any]:
    """The body of a chat completion."""
    return {"model": "society/trio", "messages": [{"role": "user", "content": text}], **more}


def png(width: int = 8, height: int = 8, colour: str = "grey") -> str:
    """A picture as a `data:` URL."""
    file = io.BytesIO()
    Pillow.new("RGB", (width, height), colour).save(file, "PNG")
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()


def with_picture(text: str, url: str) -> list[dict[str, Any]]:
    """A message with a picture."""
    return [{"type": "text", "text": text}, {"type": "image_url", "image_url": {"url": url}}]


class Process:
    """`nlsom serve` in a separate process, on a free port; it logs to a file, since a pipe could fill up."""

    def __init__(self, folder: Path, *options: str, society: Path | None = None) -> None:
        file = society or folder / "trio.yaml"
        if society is None:
            file.write_text(yaml.safe_dump(TRIO))
        command = [sys.executable, "-c", "from nlsom_serve.main import main; main()", "serve", str(file)]
        command += ["--port", "0", "--data", str(folder / "data"), *options]
        self._file = folder / "serve.log"
        with open(self._file, "w") as out:
            self.process = subprocess.Popen(command, stderr=out)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    @property
    def log(self) -> str:
        """Its log so far."""
        return self._file.read_text()

    @property
    def url(self) -> str:
        """Its URL, once it listens."""
        while self.process.poll() is None:
            for line in self.log.splitlines():
                if '"serving ' in line:
                    return json.loads(line)["message"].split(" on ")[-1]
            time.sleep(0.05)
        raise AssertionError(f"the server ended with {self.process.returncode}: {self.log}")

    def end(self) -> int:
        """Asks it to end, waits until it has, and returns the exit status."""
        self.process.terminate()
        return self.process.wait(timeout=60)
