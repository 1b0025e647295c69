"""Real vLLM servers for the tests marked `vllm`. `make test-vllm` makes what they need."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from nlsom.home import home
from nlsom_serve.vllm import Server, serving

SMOLLM2 = Path(__file__).parent / "vllm" / "smollm2.yaml"


@pytest.fixture(scope="session")
def made() -> Path:
    """The folder of `make_env.py`: `venv`, `llava-tiny`, `smollm2`."""
    folder = home() / "test-vllm"
    if not (folder / "llava-tiny" / ".made-by").is_file():
        pytest.fail(f"{folder} is not made: run `make test-vllm`, or tests/integration/vllm/make_env.py")
    return folder


@pytest.fixture(scope="session")
def a_home(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cache folder of the tests' own, so that the user's servers are not seen, with `test-vllm` in it."""
    folder = tmp_path_factory.mktemp("home")
    (folder / "test-vllm").symlink_to(made)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NLSOM_HOME", str(folder))
        patch.setenv("NLSOM_VLLM", str(made / "venv"))
        yield folder


@contextmanager
def served(*specs: str) -> Iterator[tuple[Server, ...]]:
    """Servers for a block of code that is not async; they end with this process if it is killed."""
    with asyncio.Runner() as runner:
        block = serving(
            specs, progress=lambda p: print(f"{p.seconds:6.1f} s  {p.name}  {p.stage}", flush=True)
        )
        servers = runner.run(block.__aenter__())
        try:
            yield servers
        finally:
            runner.run(block.__aexit__(None, None, None))


@pytest.fixture(scope="package")
def eyes(a_home: Path) -> Iterator[Server]:
    """The tiny LLaVA, through the shipped profile."""
    del a_home
    with served("eyes=cpu-test") as (server,):
        yield server


@pytest.fixture(scope="package")
def words(a_home: Path) -> Iterator[Server]:
    """SmolLM2-135M."""
    del a_home
    with served(f"words={SMOLLM2}") as (server,):
        yield server


@pytest.fixture
def pair(a_home: Path) -> Iterator[tuple[Server, ...]]:
    """Two servers of one model."""
    del a_home
    with served("left=cpu-test", "right=cpu-test") as servers:
        yield servers
