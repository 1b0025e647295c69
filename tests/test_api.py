"""The public names: sorted, complete, and imported only when they are used."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pytest

import nlsom
from nlsom.errors import ConfigError, ExtraMissing, Fault, MemberFailed, PromptTooLong, UnknownAddress


def test_all_is_sorted_complete_and_can_be_imported():
    assert nlsom.__all__ == sorted(nlsom.__all__)
    assert set(nlsom.__all__) == set(nlsom._HOME_OF)
    for name in nlsom.__all__:
        assert getattr(nlsom, name) is not None
    assert set(dir(nlsom)) >= {*nlsom.__all__, "__version__"}


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="'Sociaty'"):
        _ = nlsom.Sociaty


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_importing_nlsom_imports_nothing_heavy():
    heavy = {"pydantic", "httpx", "jinja2", "networkx", "numpy", "PIL", "yaml", "rich", "typer", "openvino"}
    loaded = set(run("import nlsom, sys; print(*{name.partition('.')[0] for name in sys.modules})").split())
    assert not loaded & heavy


def test_loading_a_society_imports_no_web_framework_and_no_engine():
    code = (
        "import nlsom, sys;"
        "nlsom.load({'name': 'x', 'members': {'a': {'agent': 'script', 'says': 'yes'}},"
        " 'mindstorm': [{'ask': 'a', 'prompt': {'text': 'Go.'}}]});"
        "print(*{name.partition('.')[0] for name in sys.modules})"
    )
    loaded = set(run(code).split())
    assert not loaded & {
        "fastapi",
        "uvicorn",
        "openvino",
        "openvino_genai",
        "rapidocr",
        "tokenizers",
        "typer",
        "rich",
    }


async def test_run_sync_in_a_notebook_says_what_to_write_and_leaves_no_coroutine_behind():
    async def work():
        return 7

    with pytest.raises(RuntimeError, match="`await` this instead"):
        nlsom.run_sync(work())


@pytest.mark.parametrize(
    "error",
    [
        ConfigError([Fault("s.yaml:3:1", "unknown key 'x'")]),
        MemberFailed("ann", "ballot", 2, "ValueError"),
        PromptTooLong(10, 5, 12, "m"),
        UnknownAddress("ann", ["bob"]),
        ExtraMissing("the detector", "local"),
    ],
)
def test_an_error_that_another_process_raised_is_the_same_here(error):
    had = pickle.loads(pickle.dumps(error))
    assert (type(had), str(had), vars(had)) == (type(error), str(error), vars(error))
    assert had.exit_code == error.exit_code


def test_run_sync_runs_a_coroutine_to_its_end():
    async def work() -> int:
        return 7

    assert nlsom.run_sync(work()) == 7
