"""Loads societies: from a name, a path or a mapping to a `Society`. Reads and checks, opens nothing."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from nlsom import plugins
from nlsom.blueprint import VerdictBy
from nlsom.builder import Builder
from nlsom.bus import Bus
from nlsom.errors import ConfigError, Fault, NlsomError, UsageError, meant
from nlsom.media import MediaStore
from nlsom.model.contract import Model
from nlsom.nesting import beside, within
from nlsom.society import Reach, Society
from nlsom.source import KeyPath, Source, Tree, number, plain, read, read_file
from nlsom.spec import in_file_order, read_spec
from nlsom.template import Templates
from nlsom.trace.contract import Trace


def shipped() -> dict[str, Traversable]:
    """The society files of all installed packages of societies, by name."""
    return {
        file.name.removesuffix(".yaml"): file
        for package in _packages()[0]
        for file in sorted(package.iterdir(), key=lambda file: file.name)
        if file.name.endswith(".yaml")
    }


def _packages() -> tuple[list[Traversable], list[NlsomError]]:
    """The installed packages of societies, and the errors of those that are broken."""
    had, faults = plugins.sound("societies")
    return [files(package) for package in had.values()], faults


def load(
    society: str | Path | Mapping[str, object],
    *,
    overrides: Sequence[str] = (),
    models: Mapping[str, str] | None = None,
    trace: Trace | None = None,
    bus: Bus | Reach | None = None,
    media: MediaStore | None = None,
    retry_failed: bool = False,
    prompts: Mapping[str, str] | None = None,
    shared: dict[str, Model] | None = None,
) -> Society:
    """Reads a society.

    Args:
        society: Name of an installed society, path of a file, or a mapping of the same shape.
        overrides: `dotted.key=value`; each replaces what the file says there.
        models: For keys of `models` in the file: `URL[#MODEL]` of a server, `profile:NAME` of one that nlsom
            started, or the name of an embedded model.
        trace: Where outcomes are kept; None keeps them nowhere.
        bus: What carries the turns, or a function that makes it; None for a bus within this process.
        media: Where pictures live; None for a new store in memory.
        retry_failed: Whether members that abstained in an earlier run are asked again.
        prompts: Prompts by name; they take precedence over those in folders.
        shared: Models of societies that will be opened together. Models found here are used, and new ones
            are added.

    Raises:
        ConfigError: The file is faulty. Lists everything that is wrong, with file, line and column.
        UsageError: There is no such society.
    """
    if isinstance(overrides, str):
        raise UsageError(f"overrides={overrides!r}: give a list")
    source, folder, known_as = _find(society)
    for override in overrides:
        key, equals, value = override.partition("=")
        if not equals:
            raise UsageError(f"--set {override}: write KEY=VALUE, such as limits.tokens=5000")
        source.set(key.strip(), read_value(value, f"--set {override}"), told=f"--set {override}")
    for name, where in (models or {}).items():
        _give_model(source, name, where)
    spec, wrong = read_spec(source)
    builder = Builder(source, spec, wrong, {} if shared is None else shared)
    with within(known_as, folder):
        seats, groups = builder.seats()
        competence = builder.competence()
    structure, rule, kind = builder.structure(), builder.rule(), builder.task()
    folders = [
        *([folder / "prompts"] if folder else []),
        *(package / "prompts" for package in _packages()[0]),
    ]
    by = spec.verdict
    try:
        made = Society(
            name=spec.name,
            about=spec.about,
            seats=seats,
            phases=spec.mindstorm,
            verdict=VerdictBy(rule, by.rule, by.of, by.over, by.tie_break, competence),
            structure=structure,
            task=kind,
            limits=spec.limits,
            groups=groups,
            templates=Templates(folders, prompts or {}),
            trace=trace,
            bus=bus,
            media=media or MediaStore(),
            retry_failed=retry_failed,
            source=source.tree,
        )
        if spec.rights is not None and not builder.faults:
            made = builder.entitled(made, spec.rights)
    except ConfigError as error:
        builder.faults += [source.fault(_path(fault.where), fault.what) for fault in error.faults]
        made = None
    if made is None or builder.faults:
        raise ConfigError(sorted(set(builder.faults), key=in_file_order))
    return made


def _path(dotted: str) -> KeyPath:
    return tuple(step if (at := number(step)) is None else at for step in dotted.split("."))


def _find(society: str | Path | Mapping[str, object]) -> tuple[Source, Path | None, str]:
    """The source, the folder of its file, and what distinguishes the society from others."""
    if isinstance(society, Mapping):
        return plain(society), None, f"mapping {id(society)}"
    path = Path(society)
    if isinstance(society, Path) or path.suffix in (".yaml", ".yml") or len(path.parts) > 1:
        path = beside(path)
        return read_file(path), path.parent, str(path.resolve())
    known = shipped()
    if society in known:
        return read(known[society].read_text(encoding="utf-8"), f"{society}.yaml"), None, society
    broken = "".join(f" ({fault})" for fault in _packages()[1])
    if os.path.isfile(beside(Path(f"{society}.yaml"))):  # never an error, whatever the name
        told = f"did you mean the file {society}.yaml?"
    else:
        told = f"{meant(society, known)} (a file needs its ending: {society}.yaml)"
    raise UsageError(f"no society is called {society!r}; {told}{broken}")


def read_value(text: str, told: str) -> Tree:
    """Reads a value as in a society file: `a` is text, `[a, b]` a list.

    Raises:
        ConfigError: It is not YAML, or more than one value; `told` names its place.
    """
    tree = read(f"value: {text}", told).tree
    if len(tree) > 1:
        raise ConfigError([Fault(told, "this is more than one value")])
    return tree["value"]


_ADDRESS = re.compile(r"(localhost|\d+(\.\d+){3})([:/#]|$)|[\w.-]+:\d{1,5}([/#]|$)|\[[\da-f:]+\]", re.I)
"""How a server's address without `http://` begins; no embedded model has such a name."""


def _give_model(source: Source, name: str, where: str) -> None:
    told = f"--model {name}={where}"
    models = source.tree.get("models")
    known = list(models) if isinstance(models, dict) else []
    if name not in known:
        raise UsageError(f"{told}: the society has no model {name!r}; {meant(name, known)}")
    kind, colon, value = where.partition(":")
    if "://" in where:
        url, _, model = where.partition("#")
        source.set(f"models.{name}", {"url": url, **({"model": model} if model else {})}, told=told)
    elif colon and kind in plugins.installed("models"):
        source.set(f"models.{name}", {kind: value}, told=told)
    elif _ADDRESS.match(where):
        address, sharp, model = where.partition("#")
        url = f"http://{address}{'' if '/' in address else '/v1'}{sharp}{model}"
        raise UsageError(
            f"{told}: a server's URL begins with http:// or https://; did you mean --model {name}={url}?"
        )
    else:
        source.set(f"models.{name}", {"embedded": where}, told=told)
