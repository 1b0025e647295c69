"""Profiles: YAML files that configure vLLM servers.

A file holds one server, or a set of servers that are started together:

    about: …                            about: …
    vllm: {model: …, port: …}           servers:
    nlsom: {modalities: [text, image]}    eyes: {vllm: …, nlsom: …}
                                          words: {vllm: …, nlsom: …}

`vllm` is vLLM's own configuration, passed on with `vllm serve --config`; `nlsom` is what nlsom needs to know.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import yaml
from pydantic import Field, JsonValue, NonNegativeInt, PositiveFloat, ValidationError

from nlsom.errors import ConfigError, Fault, UsageError, meant
from nlsom.home import home
from nlsom.message import Frozen
from nlsom_serve.vllm.shape import Shape

_NUMBER = re.compile(r"([0-9]*\.?[0-9]+)([kKmMgG]?)")
_UNITS = {"": 1.0, "k": 1e3, "K": 2.0**10, "m": 1e6, "M": 2.0**20, "g": 1e9, "G": 2.0**30}  # as in vLLM
_LOCAL = re.compile(r"[./~$]")
_RESERVED = {"config": "the profile is the config", "headless": "nlsom waits until the server answers"}


class Traits(Frozen):
    """What requests to the model need.

    Attributes:
        thinking: Extra reply tokens for a model that thinks before it answers.
        request: Fields of every request, such as `{chat_template_kwargs: {enable_thinking: false}}`.
    """

    thinking: NonNegativeInt = 0
    request: dict[str, JsonValue] = Field(default_factory=dict[str, JsonValue])


class Facts(Frozen):
    """What nlsom needs to know about a server.

    Attributes:
        modalities: Inputs that the model accepts.
        images_per_prompt: Most pictures per prompt.
        device: Where it runs.
        gpu_memory_gib: Memory in GiB of one of the GPUs that the profile is made for.
        shape: The model's dimensions, for `plan` if its config.json is not on this machine.
        env: Environment variables of the server.
        traits: What requests to the model need.
    """

    modalities: tuple[Literal["text", "image", "video", "audio"], ...] = ("text",)
    images_per_prompt: NonNegativeInt = 0
    device: Literal["gpu", "cpu"] = "gpu"
    gpu_memory_gib: PositiveFloat | None = None
    shape: Shape | None = None
    env: dict[str, str] = Field(default_factory=dict[str, str])
    traits: Traits = Traits()


class Entry(Frozen):
    """One server, as it stands in a file."""

    about: str = ""
    vllm: dict[str, JsonValue]
    nlsom: Facts = Facts()


class Together(Frozen):
    """A set of servers, as it stands in a file."""

    about: str = ""
    servers: Annotated[dict[str, Entry], Field(min_length=1)]


class Profile(Frozen):
    """The configuration of one server.

    Attributes:
        name: The server's name.
        about: What it is for, in one line.
        vllm: vLLM's options; `model` is a hub id or an absolute path.
        facts: What nlsom needs to know.
    """

    name: str
    about: str
    vllm: dict[str, JsonValue]
    facts: Facts

    @property
    def model(self) -> str:
        """The model's hub id or folder."""
        return str(self.vllm["model"])

    @property
    def served(self) -> str:
        """The model's name in requests."""
        name = self.vllm["served-model-name"]
        return str(name[0] if isinstance(name, list) else name)

    def number(self, option: str, default: float) -> float:
        """A numeric vLLM option (`16384`, `16k`, `16K`); the default if it is not set or `auto`."""
        found = _NUMBER.fullmatch(str(self.vllm.get(option)))
        return float(found[1]) * _UNITS[found[2]] if found else default


def shipped() -> tuple[str, ...]:
    """Names of the profiles shipped with nlsom."""
    here = resources.files("nlsom_serve") / "profiles"
    return tuple(sorted(f.name.removesuffix(".yaml") for f in here.iterdir() if f.name.endswith(".yaml")))


def load(spec: str) -> tuple[Profile, ...]:
    """Loads a profile or a set of them.

    Args:
        spec: Name of a shipped profile or path of a YAML file; a prefix `NAME=` gives the server another
            name, so that one profile can be started twice.

    Raises:
        UsageError: There is no such profile.
        ConfigError: The file is faulty; lists all faults with file, line and key.
    """
    named = re.fullmatch(r"([A-Za-z0-9][A-Za-z0-9._-]*)=(.+)", spec)
    wanted, source = (named[1], named[2]) if named else (None, spec)
    if source.endswith((".yaml", ".yml")) or os.sep in source:
        path = Path(source).expanduser()
        if not path.is_file():
            raise UsageError(f"no profile {source}: no such file")
        return _read(path.read_text(), path.absolute(), wanted or path.stem)
    if source not in shipped():
        raise UsageError(
            f"no profile {source!r}; {meant(source, shipped())} (the path of a file ends in .yaml)"
        )
    with resources.as_file(resources.files("nlsom_serve") / "profiles" / f"{source}.yaml") as path:
        return _read(path.read_text(), path, wanted or source)


def _read(text: str, path: Path, name: str) -> tuple[Profile, ...]:
    marks, value = _parse(text, path)
    if not isinstance(value, dict):
        raise ConfigError([Fault(f"{path}:1:1", "a profile is a mapping with the keys about, vllm, nlsom")])
    raw = cast("dict[str, Any]", value)
    kind = Together if "servers" in raw else Entry
    try:
        file = kind.model_validate(raw)
    except ValidationError as error:
        raise ConfigError(_faults(error, kind, marks, path)) from None
    entries = (
        [(f"{name}.{each}", ("servers", each), entry) for each, entry in file.servers.items()]
        if isinstance(file, Together)
        else [(name, (), file)]
    )
    faults: list[Fault] = []
    profiles: list[Profile] = []
    for each, at, entry in entries:
        profile, wrong = _complete(each, entry, file.about, path.parent)
        profiles.append(profile)
        faults.extend(Fault(_where(marks, path, (*at, *key)), what) for key, what in wrong)
    faults.extend(Fault(_where(marks, path, ("servers",)), what) for what in _crowded(profiles))
    if faults:
        raise ConfigError(faults)
    return tuple(profiles)


Key = tuple[str | int, ...]


def _complete(name: str, entry: Entry, about: str, base: Path) -> tuple[Profile, list[tuple[Key, str]]]:
    """Adds defaults and derived options; returns the profile and its faults by key."""
    wrong: list[tuple[Key, str]] = []
    vllm = {key.replace("_", "-"): value for key, value in entry.vllm.items()}
    for option in vllm.keys() & _RESERVED.keys():
        wrong.append((("vllm", option), f"vllm.{option} cannot be set: {_RESERVED[option]}"))
    model = vllm.get("model")
    if not isinstance(model, str) or not model:
        wrong.append((("vllm",), "vllm.model is missing: a hub id (org/name) or a folder (./…, ~/…, /…)"))
        model = "?"
    elif _LOCAL.match(model):
        model = model.replace("${NLSOM_HOME}", str(home()))
        model = str((base / Path(os.path.expandvars(model)).expanduser()).resolve())
    vllm["model"] = model
    vllm.setdefault("served-model-name", Path(model).name if model.startswith("/") else model)
    vllm.setdefault("host", "127.0.0.1")
    vllm.setdefault("enable-prompt-tokens-details", True)  # else usage lacks cached tokens
    images = entry.nlsom.images_per_prompt
    if ("image" in entry.nlsom.modalities) != (images > 0):
        wrong.append(
            (
                ("nlsom", "images_per_prompt"),
                "nlsom.images_per_prompt must be above 0 if and only if modalities has image",
            )
        )
    limit: JsonValue = {"image": images, "video": 0} if images else None
    if limit is not None and vllm.setdefault("limit-mm-per-prompt", limit) != limit:
        given = vllm["limit-mm-per-prompt"]
        if not isinstance(given, dict) or given.get("image") != images:
            wrong.append(
                (
                    ("vllm", "limit-mm-per-prompt"),
                    f"vllm.limit-mm-per-prompt is {given}, but nlsom.images_per_prompt is {images}",
                )
            )
    return Profile(name=name, about=entry.about or about, vllm=vllm, facts=entry.nlsom), wrong


def _crowded(profiles: list[Profile]) -> Iterator[str]:
    """Faults of sets whose servers need more than a whole GPU."""
    shares: dict[str, float] = {}
    for profile in profiles:
        if profile.facts.device == "gpu":
            gpus = profile.facts.env.get("CUDA_VISIBLE_DEVICES", "0")
            shares[gpus] = shares.get(gpus, 0.0) + profile.number("gpu-memory-utilization", 0.92)
    for gpus, share in shares.items():
        if len(profiles) > 1 and share > 0.98:
            yield (
                f"the servers on GPU {gpus} together need {share:.2f} of its memory: lower "
                "gpu-memory-utilization, or give each its own (env: {CUDA_VISIBLE_DEVICES: …})"
            )


def _faults(error: ValidationError, kind: type[Frozen], marks: Mapping[Key, str], path: Path) -> list[Fault]:
    known = {name for model in (kind, Entry, Facts, Traits, Shape) for name in model.model_fields}
    found: list[Fault] = []
    for each in error.errors(include_url=False):
        key = each["loc"]
        what = each["msg"]
        if each["type"] == "extra_forbidden":
            what = f"unknown key; {meant(str(key[-1]), known)}"
        found.append(Fault(_where(marks, path, key), f"{'.'.join(map(str, key))}: {what}"))
    return found


def _where(marks: Mapping[Key, str], path: Path, key: Key) -> str:
    """The place of a key, or of its nearest ancestor in the file."""
    while key and key not in marks:
        key = key[:-1]
    return f"{path}:{marks.get(key, '1:1')}"


def _parse(text: str, path: Path) -> tuple[dict[Key, str], Any]:
    """Parses YAML as vLLM does (scalars typed by YAML's rules); also returns the place of each key.

    Raises:
        ConfigError: It is not YAML, or a mapping has a key twice.
    """
    marks: dict[Key, str] = {}
    doubled: list[Fault] = []

    def visit(node: yaml.Node, at: Key) -> None:
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                here = (*at, str(key.value))
                place = f"{key.start_mark.line + 1}:{key.start_mark.column + 1}"
                if here in marks:
                    doubled.append(Fault(f"{path}:{place}", f"{'.'.join(map(str, here))} is there twice"))
                marks[here] = place
                visit(value, here)

    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        if node is not None:
            visit(node, ())
        value = yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f"{mark.line + 1}:{mark.column + 1}" if mark else "1:1"
        raise ConfigError([Fault(f"{path}:{place}", f"not YAML: {error.problem}")]) from None
    if doubled:
        raise ConfigError(doubled)
    return marks, value
