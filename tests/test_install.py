"""`nlsom` works from every kind of installation, with societies, prompts, pictures and weights included."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PANEL = ROOT / "tests" / "societies" / "panel.yaml"
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]

pytestmark = pytest.mark.install


def run(*words: str | Path, cwd: Path) -> str:
    done = subprocess.run(list(map(str, words)), cwd=cwd, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run(*PIP, "wheel", "--no-deps", "--no-build-isolation", "-w", folder, ROOT, cwd=folder)
    (built,) = folder.glob("*.whl")
    return built


def environment(folder: Path) -> Path:
    """A clean virtual environment that finds the libraries of this one, but not nlsom."""
    run(sys.executable, "-m", "venv", "--without-pip", folder, cwd=folder.parent)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    here = folder / "lib" / version / "site-packages"
    libraries = {path for path in sys.path if path.endswith("site-packages")} | {
        sysconfig.get_path("purelib")
    }
    (here / "libraries.pth").write_text("\n".join(sorted(libraries)))
    return folder / "bin" / "python"


@pytest.mark.parametrize("how", ["folder", "editable", "wheel"])
def test_it_works_however_it_is_installed(how, wheel, tmp_path):
    python = environment(tmp_path / "env")
    what = {"folder": [ROOT], "editable": ["--editable", ROOT], "wheel": [wheel]}[how]
    install = [
        "--python",
        python,
        "install",
        "--no-deps",
        "--no-build-isolation",
        "--ignore-installed",
        *what,
    ]
    run(*PIP, *install, cwd=tmp_path)
    nlsom = python.parent / "nlsom"
    where = run(python, "-c", "import nlsom, nlsom_agents; print(nlsom.__file__)", cwd=tmp_path)
    assert where.startswith(str(ROOT if how == "editable" else tmp_path)), where
    assert "vqa-monarchy" in run(nlsom, "societies", "list", cwd=tmp_path)
    assert run(nlsom, "ask", PANEL, "What is it?", "-c", "cat,dog", "-q", cwd=tmp_path) == "cat\n"
    experts = ROOT / "examples" / "own_society.yaml"
    seen = run(nlsom, "ask", experts, "What is it?", "-i", "sample:cat", "-c", "cat,dog", "-q", cwd=tmp_path)
    assert seen == "cat\n"


def test_the_wheel_holds_what_it_has_to_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {
        "nlsom",
        "nlsom_agents",
        "nlsom_societies",
        "nlsom_serve",
    }
    for needed in (
        "nlsom/py.typed",
        "nlsom_agents/weights/nanodet-g-fp16.onnx",
        "nlsom_societies/vqa-monarchy.yaml",
        "nlsom_societies/prompts/vqa/answer.md",
        "nlsom_societies/samples/images/page.png",
        "nlsom_serve/profiles/cpu-test.yaml",
    ):
        assert needed in names
    assert any(name.endswith("licenses/NOTICE") for name in names)


def test_a_fresh_environment_with_its_own_dependencies_answers(wheel, tmp_path):
    run(sys.executable, "-m", "venv", tmp_path / "env", cwd=tmp_path)
    python = tmp_path / "env" / "bin" / "python"
    run(python, "-m", "pip", "install", "-q", "--disable-pip-version-check", wheel, cwd=tmp_path)
    nlsom = python.parent / "nlsom"
    assert run(nlsom, "ask", PANEL, "What is it?", "-c", "cat,dog", "-q", cwd=tmp_path) == "cat\n"
    assert "extra local" in run(nlsom, "doctor", cwd=tmp_path)
