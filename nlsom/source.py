"""Reading YAML without guessing: every scalar stays source text, and everything knows its place in the file.

YAML's own typing turns `no` into False, `007` into 7 and `12:30` into 750. Here a scalar stays the text that
was written, and the type of the field it is for decides what it means.
"""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, cast

import yaml
from pydantic import BeforeValidator, JsonValue

from nlsom.errors import ConfigError, Fault, UsageError
from nlsom.message import whole

Tree = str | None | list["Tree"] | dict[str, "Tree"]
KeyPath = tuple[str | int, ...]

_MAX_BYTES = 16 * 1024 * 1024


@dataclass(slots=True)
class Source:
    """A tree of mappings, lists and texts, and where each of its parts stands.

    Attributes:
        name: Name of the file, for messages.
        tree: What was read.
        marks: `line:column` of each value, by path; or the option that set it.
        keys: `line:column` of each key of a mapping, by path.
    """

    name: str
    tree: dict[str, Tree]
    marks: dict[KeyPath, str] = field(default_factory=dict["KeyPath", str])
    keys: dict[KeyPath, str] = field(default_factory=dict["KeyPath", str])

    def fault(self, path: KeyPath, what: str, *, key: bool = False) -> Fault:
        """A fault at a path, or at the nearest part above it that is in the file."""
        for end in range(len(path), -1, -1):
            at = (self.keys if key and end == len(path) else self.marks).get(path[:end])
            if at is not None:
                return Fault(f"{self.name}:{at}" if at[0].isdecimal() else at, what)
        return Fault(".".join(map(str, path)) or self.name, what)

    def set(self, dotted: str, value: Tree, *, told: str) -> None:
        """Sets the value at a dotted path (`limits.tokens`, `mindstorm.0.prompt`).

        Args:
            dotted: The path.
            value: The value.
            told: The option that asks for it, for messages.

        Raises:
            UsageError: The path leads through something that is neither a mapping nor a list.
        """
        path: list[str | int] = []
        here: Tree = self.tree
        *way, last = dotted.split(".")
        for step in way:
            here, step = _inside(here, step, told)
            path.append(step)
        if isinstance(here, list) and (at := number(last)) is not None and at < len(here):
            path.append(at)
            here[at] = value
        elif isinstance(here, dict):
            path.append(last)
            here[last] = value
        else:
            raise UsageError(f"{told}: {'.'.join(map(str, path))} is no mapping that could hold {last!r}")
        for known in [known for known in self.marks if known[: len(path)] == tuple(path)]:
            del self.marks[known]
        self.marks[tuple(path)] = self.keys[tuple(path)] = told


def as_json(value: object) -> object:
    """A value of a file, for use as JSON: scalars that are valid JSON are read as JSON, others stay text.

    So `true`, `null` and `0.5` become what they say; `no`, `007` and `12:30` stay text; and the text `5` has
    to be written `'"5"'`.
    """
    if isinstance(value, dict):
        return {key: as_json(inner) for key, inner in cast("dict[str, object]", value).items()}
    if isinstance(value, list):
        return [as_json(inner) for inner in cast("list[object]", value)]
    if not isinstance(value, str) or value[:1] in "[{" or value != value.strip():
        return value
    try:
        scalar = json.loads(value)
    except ValueError:
        return value
    return value if isinstance(scalar, float) and not math.isfinite(scalar) else scalar


JsonObject = Annotated[dict[str, JsonValue], BeforeValidator(as_json)]
"""The type of a plugin's option that is a JSON object."""


def number(step: str) -> int | None:
    """A step of a dotted path as the index of a list's item; None if it cannot be one."""
    return int(step) if step.isdecimal() and len(step) < 10 else None


def has(tree: Tree, step: str | int) -> bool:
    """Whether a mapping has this key, or a list an item with this index."""
    if isinstance(tree, dict):
        return step in tree
    return isinstance(tree, list) and isinstance(step, int) and 0 <= step < len(tree)


def inner(tree: Tree, step: str | int) -> Tree:
    """The value under a key or index for which `has` is true."""
    if isinstance(tree, dict):
        return tree[str(step)]
    assert isinstance(tree, list)
    return tree[int(step)]


def _inside(here: Tree, step: str, told: str) -> tuple[Tree, str | int]:
    if isinstance(here, dict):
        inner = here.setdefault(step, {})
        if inner is None or isinstance(inner, str):
            inner = here[step] = {}
        return inner, step
    if isinstance(here, list) and (at := number(step)) is not None and at < len(here):
        return here[at], at
    raise UsageError(f"{told}: there is no {step!r} on the way")


def read_file(path: Path) -> Source:
    """Reads a YAML file.

    Raises:
        UsageError: There is no such file, it is not UTF-8 text, or it is too large.
        ConfigError: It is not a YAML mapping; or it has duplicate keys, tags, or aliases without end.
    """
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
        text = data.decode("utf-8-sig")
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: not UTF-8 text (byte {error.start})") from None
    if len(data) > _MAX_BYTES:
        raise UsageError(f"{path}: larger than {_MAX_BYTES} bytes; this is no society file")
    return read(text, str(path))


def read(text: str, name: str) -> Source:
    """Reads YAML text; see `read_file`."""
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = f"{name}:{mark.line + 1}:{mark.column + 1}" if mark else name
        hint = " (YAML wants spaces, not tabs)" if "\\t" in str(error.problem) else ""
        told = error.problem or "not YAML"
        if told.startswith("but "):  # the end of a sentence that the context begins
            told = f"{error.context} {told}"
        elif (begun := error.context_mark) and mark and begun.line < mark.line:
            hint += f" ({error.context} that begins at {begun.line + 1}:{begun.column + 1})"
        raise ConfigError([Fault(at, f"{told}{hint}")]) from None
    except yaml.reader.ReaderError as error:
        before = text[: error.position].split("\n")
        told = f"the character U+{ord(text[error.position]):04X} is not allowed in YAML"
        raise ConfigError([Fault(f"{name}:{len(before)}:{len(before[-1]) + 1}", told)]) from None
    except (yaml.YAMLError, RecursionError) as error:
        raise ConfigError([Fault(name, f"not YAML: {error}")]) from None
    reader = _Reader(Source(name, {}))
    tree = None if root is None else reader.value(root, ())
    if not isinstance(tree, dict):
        reader.faults.append(Fault(f"{name}:1:1", "a society file is a mapping: `name: …`, `members: …`"))
    if reader.faults:
        raise ConfigError(reader.faults)
    reader.source.tree = cast("dict[str, Tree]", tree)
    return reader.source


def plain(value: Mapping[str, object]) -> Source:
    """A mapping made in Python, as if it had been read from a file.

    Raises:
        ConfigError: It is nested too deeply, or contains itself.
    """
    try:
        return Source("society", cast("dict[str, Tree]", _copied(value)))
    except RecursionError:
        raise ConfigError([Fault("society", "too deep for a society, or holds itself")]) from None


def _copied(value: object) -> object:
    if isinstance(value, Mapping):
        items = cast("Mapping[Hashable, object]", value)
        return {whole(str(key)): _copied(inner) for key, inner in items.items()}
    if isinstance(value, list | tuple):
        return [_copied(inner) for inner in cast("list[object]", value)]
    return whole(value) if isinstance(value, str) else value


class _Reader:
    """Turns composed nodes into a tree. Limits what aliases can unfold to."""

    limit = 100_000

    def __init__(self, source: Source) -> None:
        self.source = source
        self.faults: list[Fault] = []
        self._count = 0

    def value(self, node: yaml.Node, path: KeyPath) -> Tree:
        at = f"{node.start_mark.line + 1}:{node.start_mark.column + 1}"
        self.source.marks[path] = at
        self._count += 1
        if self._count > self.limit or len(path) > 50:
            raise ConfigError([Fault(f"{self.source.name}:{at}", "too large or too deep for a society file")])
        if not node.tag.startswith("tag:yaml.org,2002:") or "python" in node.tag:
            self.faults.append(Fault(f"{self.source.name}:{at}", f"tags like {node.tag} are not allowed"))
            return None
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(inner, (*path, at)) for at, inner in enumerate(node.value)]
        empty = isinstance(node, yaml.ScalarNode) and node.value == "" and node.style is None
        return None if empty else whole(str(node.value))

    def _mapping(self, node: yaml.MappingNode, path: KeyPath) -> dict[str, Tree]:
        tree: dict[str, Tree] = {}
        for key, inner in node.value:
            at = f"{self.source.name}:{key.start_mark.line + 1}:{key.start_mark.column + 1}"
            if not isinstance(key, yaml.ScalarNode):
                self.faults.append(Fault(at, "a key has to be plain text"))
            elif key.tag == "tag:yaml.org,2002:merge":
                told = (
                    "merge keys (`<<`) are not read: write the keys out, or give the whole value by an alias"
                )
                self.faults.append(Fault(at, told))
            elif (name := whole(str(key.value))) in tree:
                self.faults.append(Fault(at, f"the key {name!r} stands here twice"))
            else:
                self.source.keys[(*path, name)] = at.removeprefix(self.source.name + ":")
                tree[name] = self.value(inner, (*path, name))
        return tree
