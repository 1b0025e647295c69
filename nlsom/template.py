"""Prompts: what a member is asked, in sandboxed Jinja. Unknown names are found before anything runs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from pathlib import Path
from types import MappingProxyType

from jinja2 import Template as Compiled
from jinja2 import TemplateError, TemplateSyntaxError, meta, nodes

from nlsom.errors import UsageError, meant
from nlsom.member import Member
from nlsom.sandbox import LEFT, Allowance, Sandbox, bounded
from nlsom.task.base import Task

VARIABLES = frozenset({"task", "member", "members", "round", "rounds", "label"})
"""Names that a prompt may use: the task; the member asked; the names of all members; the round and the number
of rounds; the label of the phase."""

_MEMBER = frozenset({"id", "name", "persona", "role"})


_ENVIRONMENT = Sandbox()


@dataclass(frozen=True, slots=True)
class Template:
    """A prompt, compiled.

    Attributes:
        name: What messages call it.
        source: Its text.
        personal: Whether it uses `member`, so that it has to be rendered for each.
        reads: Attributes of the task that it uses.
        fixed: The rendered text, if it is always the same.
    """

    name: str
    source: str
    personal: bool
    reads: frozenset[str]
    fixed: str | None
    _compiled: Compiled

    @classmethod
    def of(cls, source: str, name: str = "inline prompt") -> Template:
        """Compiles a prompt.

        Raises:
            UsageError: Its syntax is wrong, or it uses a name that no prompt may use.
        """
        try:
            tree = _ENVIRONMENT.parse(source)
            parts = [part for output in tree.body for part in getattr(output, "nodes", (None,))]
            plain = [part.data for part in parts if isinstance(part, nodes.TemplateData)]
            fixed = "".join(plain).strip() if len(plain) == len(parts) else None
            bounded(tree, VARIABLES)
            names = meta.find_undeclared_variables(tree)
            compiled = _ENVIRONMENT.from_string(tree)
        except TemplateSyntaxError as error:
            raise UsageError(f"{name}, line {error.lineno}: {error.message}") from None
        except UsageError as error:
            raise UsageError(f"{name}, {error}") from None
        except (RecursionError, SyntaxError):  # Python itself limits how deeply loops may be nested
            raise UsageError(f"{name}: too deeply nested") from None
        if unknown := sorted(names - VARIABLES):
            raise UsageError(f"{name}: {unknown[0]!r} is not defined; a prompt may name {_listed(VARIABLES)}")
        read: dict[str, set[str]] = {"task": set(), "member": set()}
        for node in tree.find_all(nodes.Getattr):
            if node.attr.startswith("_"):
                raise UsageError(f"{name}, line {node.lineno}: {node.attr!r} is out of a prompt's reach")
            if isinstance(node.node, nodes.Name) and node.node.name in read:
                read[node.node.name].add(node.attr)
        if unknown := sorted(read["member"] - _MEMBER):
            raise UsageError(f"{name}: a member has no {unknown[0]!r}; it has {_listed(_MEMBER)}")
        return cls(name, source, "member" in names, frozenset(read["task"]), fixed, compiled)

    def render(
        self, *, task: Task, member: Member, members: Sequence[str], round: int, rounds: int, label: str
    ) -> str:
        """Renders the prompt for one turn.

        Raises:
            UsageError: It fails, such as for something that the task does not have, or grows too large.
        """
        if self.fixed is not None:
            return self.fixed
        try:
            allowance = Allowance()
            given = {"task": task, "member": member, "members": members, "label": label}
            given |= {"round": round, "rounds": rounds, LEFT: allowance}
            made: list[str] = []
            for part in self._compiled.generate(given):
                allowance.take(len(part))
                made.append(part)
            return "".join(made).strip()
        except (TemplateError, ArithmeticError, LookupError, TypeError, ValueError) as error:
            raise UsageError(f"{self.name}: {error}") from None
        except (MemoryError, RecursionError):
            raise UsageError(f"{self.name}: it grows without end") from None


class Templates:
    """Finds prompts by name in folders; earlier folders take precedence.

    In each folder, a prompt for the task's kind (`vqa/answer.md`) precedes a general one (`answer.md`).
    """

    def __init__(
        self, folders: Iterable[Path | Traversable], texts: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        """Makes a collection of prompts.

        Args:
            folders: Where prompts are looked for.
            texts: Prompts by name; they take precedence over all folders.
        """
        self._folders, self._texts = tuple(folders), texts

    def get(self, name: str, kind: str) -> Template:
        """The prompt `name` for tasks of a kind.

        Raises:
            UsageError: There is none, or it is faulty.
        """
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,200}", name):
            shown = name if len(name) <= 60 else f"{name[:60]}…"
            raise UsageError(f"{shown!r} is no name of a prompt; for a text write `prompt: {{text: …}}`")
        if name in self._texts:
            return Template.of(self._texts[name], f"prompt {name!r}")
        for folder in self._folders:
            for file in (folder / kind / f"{name}.md", folder / f"{name}.md"):
                if file.is_file():
                    try:
                        text = file.read_text(encoding="utf-8")
                    except UnicodeDecodeError as error:
                        raise UsageError(f"{file}: not UTF-8 text (byte {error.start})") from None
                    return Template.of(text, f"prompt {name!r}")
        raise UsageError(f"there is no prompt {name!r} for {kind}; {meant(name, self.names(kind))}")

    def names(self, kind: str) -> list[str]:
        """The names of all prompts for tasks of a kind."""
        found: set[str] = set()
        for folder in self._folders:
            for place in (folder / kind, folder):
                if place.is_dir():
                    found.update(file.name[:-3] for file in place.iterdir() if file.name.endswith(".md"))
        return sorted(found)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"
