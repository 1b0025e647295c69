"""What a society file may hold, and how it is read: past its faults, so that all of them are reported."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    PositiveInt,
    Tag,
    ValidationError,
    model_validator,
)

from nlsom.errors import ConfigError, Fault
from nlsom.message import Frozen
from nlsom.options import faults, problems
from nlsom.phase import Ask, Hears, Limits, Repeat, Until
from nlsom.rights import Rights
from nlsom.rules import TieBreak
from nlsom.source import KeyPath, Source, Tree, has, inner


class MemberSpec(BaseModel):
    """One entry of `members`: a member or a group of members. Further keys are options of the agent.

    Attributes:
        agent: Name of the agent; may be left out if `instead` is given.
        model: A key of `models`, or a list of keys for one member each.
        role: Its role in the society; by default the key of this entry.
        persona: Who it should be, in plain words.
        personas: Several personas, for one member each.
        count: Members per model and persona; they are called `NAME.1`, `NAME.2`, …
        instead: Who takes this place if the model is optional and not given: agents by name, or entries.
        limit: Most turns of a member that may run at once.
        sees: `all` pictures and evidence, or a `share` of them, dealt out among the members of this entry.
    """

    model_config = ConfigDict(extra="allow", frozen=True)

    agent: str | None = None
    model: str | tuple[str, ...] | None = None
    role: str | None = None
    persona: str = ""
    personas: tuple[str, ...] = ()
    count: PositiveInt = 1
    instead: tuple[str | MemberSpec, ...] = ()
    limit: PositiveInt | None = None
    sees: Literal["all", "share"] = "all"

    @model_validator(mode="after")
    def _somebody(self) -> Self:
        if self.agent is None and not self.instead:
            raise ValueError("who sits here? `agent` is missing")
        return self


class VerdictSpec(BaseModel):
    """How the verdict is reached. Further keys are options of the rule.

    Attributes:
        rule: Name of the rule.
        of: Whose votes count: a member, a role, or `everyone`; by default all who were asked for one.
        over: Label of the votes; by default `ballot` if a phase has that label, else the last phase's label.
        tie_break: What chooses among tied alternatives; by default they stay tied.
        reputation: File with the record of past tasks (`nlsom.reputation`), relative to the society's file.
    """

    model_config = ConfigDict(extra="allow", frozen=True)

    rule: str = "plurality"
    of: str | None = None
    over: str | None = None
    tie_break: TieBreak = "none"
    reputation: str | None = None


def _which(value: object) -> str:
    repeats = "repeat" in value if isinstance(value, dict) else isinstance(value, Repeat)  # pyright: ignore[reportUnknownArgumentType]
    return "<repeat>" if repeats else "<ask>"


_Phase = Annotated[Annotated[Ask, Tag("<ask>")] | Annotated[Repeat, Tag("<repeat>")], Discriminator(_which)]


class SocietySpec(Frozen):
    """A society file.

    Attributes:
        name: What it is called.
        about: What it is, in a sentence or two, with the paper it follows.
        task: Kind of task.
        models: By name: `{embedded: NAME}`, `{url: …, model: …}`, or `{optional: true}`.
        members: By name.
        structure: Whose messages may reach whom: a name, or `{name: {parameter: value}}`.
        rights: The rights to know, to change one's answer and to vote.
        mindstorm: The phases.
        verdict: How the verdict is reached.
        limits: What a mindstorm may spend.
    """

    name: str
    about: str = ""
    task: str = "vqa"
    models: dict[str, dict[str, Any]] = {}
    members: dict[str, MemberSpec] = Field(min_length=1)
    structure: str | dict[str, Any] = "democracy"
    rights: Rights | None = None
    mindstorm: tuple[_Phase, ...] = Field(min_length=1)
    verdict: VerdictSpec = VerdictSpec()
    limits: Limits = Limits()


SHAPES: dict[KeyPath, type[BaseModel]] = {
    (): SocietySpec,
    ("limits",): Limits,
    ("rights",): Rights,
    ("mindstorm", "*"): Ask,
    ("mindstorm", "*", "<repeat>"): Repeat,
    ("mindstorm", "*", "hears"): Hears,
    ("mindstorm", "*", "until"): Until,
    ("mindstorm", "*", "phases", "*"): Ask,
    ("mindstorm", "*", "phases", "*", "hears"): Hears,
}


def schema() -> dict[str, Any]:
    """The JSON Schema of society files, for editors."""
    return SocietySpec.model_json_schema()


def read_spec(source: Source) -> tuple[SocietySpec, list[Fault]]:
    """Reads the specification. Faulty parts are left out, so that the rest is checked too.

    Returns:
        The specification without the faulty parts; and the faults.

    Raises:
        ConfigError: Nothing is left that could be checked further; lists all faults found.
    """
    tree: Any = copy.deepcopy(source.tree)
    wrong: list[Fault] = []
    while True:
        try:
            return SocietySpec.model_validate(tree), wrong
        except ValidationError as error:
            told = [fault for fault in faults(error, source, (), SHAPES) if fault not in wrong]
            wrong += told
            # All places first, before anything is left out: one fault may be inside what another leaves out.
            places = [
                (*place, problem["type"] == "extra_forbidden")
                for problem in problems(error)
                if (place := _place(tree, problem["loc"], problem["type"])) is not None
            ]
            if not told or not places:
                raise ConfigError(sorted(wrong, key=in_file_order)) from None
            for mapping, key, unknown in places:
                if key in _STAND_INS and not unknown:
                    mapping[key] = copy.deepcopy(_STAND_INS[key])
                else:
                    mapping.pop(key, None)


_STAND_INS: dict[str, Tree] = {
    "name": "unnamed",
    "ask": "everyone",
    "prompt": {"text": ""},
    "repeat": "1",
    "phases": [{"ask": "everyone", "prompt": {"text": ""}}],
    "agreement": "1",
    "confident": "1",
}
"""Values for faulty or missing parts without which the rest could not be checked."""


def _place(tree: Tree, loc: Sequence[str | int], kind: str) -> tuple[dict[str, Tree], str] | None:
    """The mapping and key of the part to leave out or replace for a fault; None if neither helps."""
    held: tuple[dict[str, Tree], str] | None = None
    for step in (step for step in loc if not str(step).startswith("<")):
        if not has(tree, step):
            break
        if isinstance(tree, dict):
            held = (tree, str(step))
        tree = inner(tree, step)
    if kind == "missing" and isinstance(tree, dict) and loc[-1] in _STAND_INS:
        held = (tree, str(loc[-1]))
    return None if held is None or held[1] in ("members", "mindstorm") else held


def in_file_order(fault: Fault) -> tuple[str, int, int]:
    """A sort key: faults in the order of their places in the file."""
    name, line, column = ("::" + fault.where).rsplit(":", 2)
    return (name, int(line), int(column)) if line.isdigit() and column.isdigit() else (fault.where, 0, 0)
