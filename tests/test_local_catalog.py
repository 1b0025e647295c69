"""The catalog, the models a user adds, and the headers of GGUF files."""

from __future__ import annotations

import hashlib
import json
import struct
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from nlsom import home as where
from nlsom.errors import ExtraMissing, ModelUnavailable, UsageError
from nlsom_agents.local import catalog
from nlsom_agents.local.embed import Sentences
from nlsom_agents.local.embedded import Embedded
from nlsom_agents.local.gguf import context_length
from nlsom_serve.cli import app


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value.encode())) + value.encode()


def gguf(context: int | None = 4096) -> bytes:
    """A header with strings, arrays of both kinds and, last, the length of the context."""
    pairs = [
        text("general.architecture") + struct.pack("<I", 8) + text("toy"),
        text("toy.scale") + struct.pack("<If", 6, 0.5),
        text("tokens") + struct.pack("<IIQ", 9, 8, 2) + text("a") + text("bé"),
        text("scores") + struct.pack("<IIQ3f", 9, 6, 3, 1, 2, 3),
    ]
    if context is not None:
        pairs.append(text("toy.context_length") + struct.pack("<II", 4, context))
    return b"GGUF" + struct.pack("<IQQ", 3, 0, len(pairs)) + b"".join(pairs)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NLSOM_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.gguf"
    path.write_bytes(gguf())
    return path


def test_the_cache_is_nlsom_home_or_the_users_cache_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert where.home() == tmp_path / "home"
    monkeypatch.delenv("NLSOM_HOME")
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert where.home() == tmp_path / "xdg" / "nlsom"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert where.home() == Path.home() / ".cache" / "nlsom"
    monkeypatch.setattr("sys.platform", "darwin")
    assert where.home() == Path.home() / "Library" / "Caches" / "nlsom"


def test_a_model_of_the_catalog_is_missing_until_its_file_is_there(home: Path) -> None:
    assert catalog.missing("smollm2-135m") == "smollm2-135m"
    where = catalog.path("smollm2-135m")
    where.parent.mkdir(parents=True)
    where.touch()
    assert catalog.missing("smollm2-135m") is None


def test_a_file_of_the_users_own_gets_a_name_and_stays_where_it_is(file: Path) -> None:
    assert catalog.add(file) == "mine"
    assert catalog.path("mine") == file
    assert catalog.missing("mine") is None
    known = {model.name: model for model in catalog.models()}
    assert known["mine"].here
    assert known["mine"].size == file.stat().st_size
    assert not known["smollm2-135m"].here


def test_the_hash_of_a_file_follows_its_bytes(file: Path) -> None:
    catalog.add(file, "a.model")
    assert (
        catalog.digest("a.model")
        == catalog.digest(str(file))
        == hashlib.sha256(file.read_bytes()).hexdigest()
    )
    file.write_bytes(gguf(8192))
    assert catalog.digest("a.model") == hashlib.sha256(file.read_bytes()).hexdigest()


def test_a_model_whose_file_is_gone_says_what_to_do(file: Path) -> None:
    catalog.add(file)
    file.unlink()
    with pytest.raises(ModelUnavailable, match="nlsom models add"):
        catalog.missing("mine")
    assert not {model.name: model for model in catalog.models()}["mine"].here


@pytest.mark.parametrize("name", ["", "a b", "../x", "smollm2-135m", "x.gguf"])
def test_a_name_that_cannot_be_used_is_refused(file: Path, name: str) -> None:
    with pytest.raises(UsageError):
        catalog.add(file, name or "-/-")


def test_a_file_that_is_no_language_model_is_not_added(tmp_path: Path, file: Path) -> None:
    with pytest.raises(UsageError, match="no such file"):
        catalog.add(tmp_path / "nothing.gguf")
    file.write_bytes(b"PK\x03\x04")
    with pytest.raises(UsageError, match="not a GGUF"):
        catalog.add(file)
    assert not [model for model in catalog.models() if model.name == "mine"]


def test_an_unknown_name_lists_those_there_are(file: Path) -> None:
    catalog.add(file)
    with pytest.raises(UsageError, match=r"qwen2.5-coder-1.5b.*mine"):
        catalog.path("gpt-17")


def test_identity_is_name_hash_and_engine_and_never_a_path(file: Path) -> None:
    identity = Embedded(str(file)).identity
    assert identity.startswith(f"mine@{hashlib.sha256(file.read_bytes()).hexdigest()[:12]}/openvino-genai-")
    assert str(file.parent) not in identity
    assert Embedded("smollm2-135m").identity.startswith("smollm2-135m@b179c9523d0e/")


async def test_a_model_that_is_not_in_the_cache_says_how_to_pull_it() -> None:
    model = Embedded("smollm2-135m")
    assert model.missing() == "smollm2-135m"
    with pytest.raises(ModelUnavailable, match="nlsom models pull smollm2-135m"):
        async with model:
            pass


def test_without_the_engine_nothing_is_fetched_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("nlsom_agents.local.embedded.version", absent)
    monkeypatch.setattr("nlsom_agents.local.embed.find_spec", lambda name: None)
    for model in (Embedded("smollm2-135m"), Sentences()):
        with pytest.raises(ExtraMissing, match=r"nlsom\[local\]"):
            model.missing()


async def test_a_file_the_engine_cannot_load_is_an_error_that_says_so(file: Path) -> None:
    with pytest.raises(ModelUnavailable, match=r"cannot be loaded: unordered_map"):
        async with Embedded(str(file)):
            pass


def test_the_length_of_the_context_is_read_from_the_header(file: Path) -> None:
    assert context_length(file) == 4096


def test_a_file_that_names_no_context_is_no_language_model(file: Path) -> None:
    file.write_bytes(gguf(None))
    with pytest.raises(ModelUnavailable, match="not a language model"):
        context_length(file)


@given(cut=st.integers(4, len(gguf()) - 1))
def test_a_header_that_is_cut_short_is_called_damaged(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    path = tmp_path_factory.mktemp("cut") / "cut.gguf"
    path.write_bytes(gguf()[:cut])
    with pytest.raises(ModelUnavailable, match="damaged"):
        context_length(path)


def test_the_command_line_tells_the_name_that_a_model_was_given(file: Path) -> None:
    done = CliRunner().invoke(app, ["models", "add", str(file), "--name", "judge"], catch_exceptions=False)
    assert done.output.endswith("judge is known; in a society: {embedded: judge}\n")
    told = CliRunner().invoke(app, ["models", "path", "judge", "--json"], catch_exceptions=False)
    assert json.loads(told.output) == {"model": "judge", "path": str(file)}
