"""Society files: a name, a path or a mapping in; a `Society` out. Reads and checks, opens nothing."""

from __future__ import annotations

import copy
import dataclasses
import difflib
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, ValidationError, model_validator

from nlsom import plugins
from nlsom.agent import Agent
from nlsom.bus import Bus
from nlsom.errors import ConfigError, Fault, NlsomError, UsageError
from nlsom.media import MediaStore
from nlsom.member import Member
from nlsom.message import Frozen
from nlsom.model.contract import Model
from nlsom.nesting import beside, within
from nlsom.options import bind, faults, parameters
from nlsom.phase import Ask, Hears, Limits, Positive, Repeat, Until
from nlsom.reputation import Reputation
from nlsom.rights import Knowing, Rights, revisable, votes
from nlsom.rules import Plurality, TieBreak
from nlsom.society import Reach, Seat, Society, VerdictBy
from nlsom.source import Path_, Source, Tree, has, inner, plain, read, read_file
from nlsom.structure import Democracy, StructureSpec, shape_of
from nlsom.task import Task
from nlsom.template import Templates
from nlsom.trace.contract import Trace
from nlsom.turn import Turn
from nlsom.verdict import Rule


class MemberSpec(BaseModel):
    """A member, or a group of members made from one entry. Other keys are options of its agent.

    Attributes:
        agent: Name of the agent; left out, nobody sits here but those of `instead`.
        model: Key of `models`, or a list of keys: one member for each.
        role: What it is in the society; its key, if not given.
        persona: Who it is to be.
        personas: Several: one member for each.
        count: So many members of each kind, `NAME.1`, `NAME.2`, …
        instead: Who sits here while the model is optional and not given: names of agents, or members.
        limit: How many turns of it may run at once.
    """

    model_config = ConfigDict(extra="allow", frozen=True)

    agent: str | None = None
    model: str | tuple[str, ...] | None = None
    role: str | None = None
    persona: str = ""
    personas: tuple[str, ...] = ()
    count: Positive = 1
    instead: tuple[str | MemberSpec, ...] = ()
    limit: Positive | None = None

    @model_validator(mode="after")
    def _somebody(self) -> Self:
        if self.agent is None and not self.instead:
            raise ValueError("who sits here? `agent` is missing")
        return self


class VerdictSpec(BaseModel):
    """How the verdict comes about. Other keys are options of the rule.

    Attributes:
        rule: Name of the rule.
        of: Whose votes count: a member, a role, or `everyone`.
        over: Label of the votes.
        tie_break: What chooses among tied alternatives; without it they stay tied.
        reputation: File with the record of past tasks (`nlsom.reputation`), beside the society's file; read
            once.
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
        about: What it is, in a sentence or two; a paper and its number.
        task: Kind of task.
        models: By name: `{embedded: NAME}`, `{url: …, model: …}`, or `{optional: true}`.
        members: By name.
        structure: Whose messages may reach whom: a name, or a name with parameters.
        rights: The rights to know, to change one's answer and to vote.
        mindstorm: The phases.
        verdict: How the verdict comes about.
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


_SHAPES: dict[Path_, type[BaseModel]] = {
    (): SocietySpec,
    ("limits",): Limits,
    ("rights",): Rights,
    ("mindstorm", "*"): Ask,
    ("mindstorm", "*", "hears"): Hears,
    ("mindstorm", "*", "until"): Until,
    ("mindstorm", "*", "phases", "*"): Ask,
    ("mindstorm", "*", "phases", "*", "hears"): Hears,
}


def schema() -> dict[str, Any]:
    """The JSON Schema of society files, for editors."""
    return SocietySpec.model_json_schema()


def shipped() -> dict[str, Traversable]:
    """The society files of all installed packages of societies, by name."""
    return {
        file.name.removesuffix(".yaml"): file
        for package in _packages()
        for file in sorted(package.iterdir(), key=lambda file: file.name)
        if file.name.endswith(".yaml")
    }


def _packages() -> Iterator[Traversable]:
    for name in plugins.installed("societies"):
        module: ModuleType = plugins.load("societies", name)
        yield files(module)


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
        society: The name of an installed society, the path of a file, or a mapping of the same shape.
        overrides: `dotted.key=value`, each replacing what the file says there.
        models: By key of `models`: `URL[#MODEL]` of a server, `profile:NAME` of one that nlsom started, or
            the name of an embedded model.
        trace: Where outcomes are kept.
        bus: What carries its turns, or makes what does, instead of a bus within this process.
        media: Where its pictures live.
        retry_failed: Whether members that abstained in an earlier run are asked again.
        prompts: Prompts by name that come before those of all folders.
        shared: Models by what they are, for societies that are opened together: those that are there are
            used, those that are made are added.

    Raises:
        ConfigError: The file is faulty: everything that is wrong, each with file, line and column.
        UsageError: There is no such society.
    """
    source, folder, known_as = _find(society)
    for override in overrides:
        key, equals, value = override.partition("=")
        if not equals:
            raise UsageError(f"--set {override}: write KEY=VALUE, such as limits.tokens=5000")
        source.set(key.strip(), _value(value, override), told=f"--set {override}")
    for name, where in (models or {}).items():
        _give_model(source, name, where)
    spec, wrong = _read_spec(source)
    builder = _Builder(source, spec, wrong, {} if shared is None else shared)
    with within(known_as, folder):
        seats, groups = builder.seats()
        competence = builder.competence()
    structure, rule, kind = builder.structure(), builder.rule(), builder.task()
    folders = [*([folder / "prompts"] if folder else []), *(package / "prompts" for package in _packages())]
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
        raise ConfigError(sorted(set(builder.faults), key=_line))
    return made


def _read_spec(source: Source) -> tuple[SocietySpec, list[Fault]]:
    """Reads the specification; faulty parts are told and left out, so that the rest is checked too.

    Raises:
        ConfigError: What is left is no society.
    """
    tree: Any = copy.deepcopy(source.tree)
    wrong: list[Fault] = []
    while True:
        try:
            return SocietySpec.model_validate(tree), wrong
        except ValidationError as error:
            told = faults(error, source, (), _SHAPES)
            wrong += [fault for fault in told if fault not in wrong]
            mended = [_mend(tree, problem["loc"], problem["type"]) for problem in error.errors()]
            if not any(mended):
                raise ConfigError(sorted(wrong, key=_line)) from None


_STAND_INS: dict[str, Tree] = {"name": "unnamed", "ask": "everyone", "prompt": {"text": ""}}
"""What takes the place of a faulty or missing part without which the rest could not be checked."""


def _mend(tree: Tree, loc: Sequence[str | int], kind: str) -> bool:
    """Leaves a faulty key out of its mapping, or puts a stand-in there; False if neither can be done."""
    held: tuple[dict[str, Tree], str] | None = None
    for step in (step for step in loc if not str(step).startswith("<")):
        if not has(tree, step):
            break
        if isinstance(tree, dict):
            held = (tree, str(step))
        tree = inner(tree, step)
    if kind == "missing" and isinstance(tree, dict) and loc[-1] in _STAND_INS:
        held = (tree, str(loc[-1]))
    if held is None or held[1] in ("members", "mindstorm"):
        return False
    mapping, key = held
    if key in _STAND_INS:
        mapping[key] = copy.deepcopy(_STAND_INS[key])
    else:
        del mapping[key]
    return True


def _line(fault: Fault) -> tuple[str, int, int]:
    """Faults in the order they stand in the file."""
    name, line, column = ("::" + fault.where).rsplit(":", 2)
    return (name, int(line), int(column)) if line.isdigit() and column.isdigit() else (fault.where, 0, 0)


class _Nobody:
    """Holds the place of an agent that could not be made, so that selectors are checked all the same."""

    async def speak(self, turn: Turn) -> None:
        raise AssertionError("a faulty society is never run")


def _path(dotted: str) -> Path_:
    return tuple(int(step) if step.isdigit() else step for step in dotted.split("."))


def _find(society: str | Path | Mapping[str, object]) -> tuple[Source, Path | None, str]:
    """The source, the folder of its file, and what tells the society from others."""
    if isinstance(society, Mapping):
        return plain(society), None, f"mapping {id(society)}"
    path = Path(society)
    if isinstance(society, Path) or path.suffix in (".yaml", ".yml") or len(path.parts) > 1:
        path = beside(path)
        return read_file(path), path.parent, str(path.resolve())
    known = shipped()
    if society in known:
        return read(known[society].read_text(encoding="utf-8"), f"{society}.yaml"), None, society
    near = difflib.get_close_matches(society, known, 1)
    meant = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
    raise UsageError(f"no society is called {society!r}; {meant} A file needs its ending: {society}.yaml")


def _value(text: str, told: str) -> Tree:
    return read(f"value: {text}", f"--set {told}").tree.get("value")


def _give_model(source: Source, name: str, where: str) -> None:
    told = f"--model {name}={where}"
    models = source.tree.get("models")
    known = list(models) if isinstance(models, dict) else []
    if name not in known:
        near = difflib.get_close_matches(name, known, 1)
        meant = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known) or 'none'}"
        raise UsageError(f"{told}: the society has no model {name!r}; {meant}")
    kind, colon, value = where.partition(":")
    if "://" in where:
        url, _, model = where.partition("#")
        source.set(f"models.{name}", {"url": url, **({"model": model} if model else {})}, told=told)
    elif colon and kind in plugins.installed("models"):
        source.set(f"models.{name}", {kind: value}, told=told)
    else:
        source.set(f"models.{name}", {"embedded": where}, told=told)


@dataclass
class _Builder:
    """Makes the parts of a society from its specification; gathers faults instead of raising the first."""

    source: Source
    spec: SocietySpec
    faults: list[Fault] = field(default_factory=list[Fault])
    shared: dict[str, Model] = field(default_factory=dict[str, Model])
    _models: dict[str, Model | None] = field(default_factory=dict[str, "Model | None"])

    def seats(self) -> tuple[list[Seat], dict[str, tuple[int, ...]]]:
        seats: list[Seat] = []
        groups: dict[str, tuple[int, ...]] = {}
        for name, spec in self.spec.members.items():
            made = list(self._members(name, spec, ("members", name)))
            groups[name] = tuple(range(len(seats), len(seats) + len(made)))
            seats.extend(made)
        return seats, groups

    def _members(self, name: str, spec: MemberSpec, path: Path_) -> Iterator[Seat]:
        role = spec.role or name
        models = (spec.model,) if spec.model is None or isinstance(spec.model, str) else spec.model
        if spec.instead and all(model is not None and self._is_open(model) for model in models):
            for other in spec.instead:
                sits = MemberSpec(agent=other) if isinstance(other, str) else other
                sits = sits.model_copy(
                    update={"role": sits.role or role, "persona": sits.persona or spec.persona}
                )
                yield from self._members(f"{name}.{sits.agent}", sits, (*path, "instead"))
            return
        if spec.agent is None:
            return
        personas = spec.personas or (spec.persona,)
        every = list(itertools.product(personas, models, range(spec.count)))
        agents: dict[str | None, Agent | None] = {}
        for number, (persona, model, _) in enumerate(every, 1):
            if model not in agents:
                agents[model] = self._agent(spec.agent, model, dict(spec.model_extra or {}), path)
            own = name if len(every) == 1 else f"{name}.{number}"
            yield Seat(Member(own, role, persona), agents[model] or _Nobody(), spec.limit)

    def _is_open(self, model: str) -> bool:
        """Whether a model is optional and was not given."""
        given = self.spec.models.get(model)
        return given is not None and set(given) == {"optional"}

    def _agent(self, agent: str, model: str | None, options: dict[str, Any], path: Path_) -> Agent | None:
        try:
            factory = plugins.load("agents", agent)
            takes = "model" in parameters(factory)
            if takes and model is None:
                self.faults.append(self.source.fault(path, f"agent {agent!r} needs a model: `model: KEY`"))
                return None
            if model is not None and not takes:
                self.faults.append(self.source.fault((*path, "model"), f"agent {agent!r} takes no model"))
                return None
            read = bind(factory, options, self.source, path, given=("model",))
            if takes and model is not None:
                given = self._model(model, path)
                if given is None:
                    return None
                read["model"] = given
            return factory(**read)
        except ConfigError as error:
            self.faults.extend(error.faults)
        except Exception as error:  # noqa: BLE001
            self._blame((*path, "agent"), error)
        return None

    def _blame(self, path: Path_, error: Exception) -> None:
        """A plugin's own code may raise anything; it is a fault of the file that names it, like any other."""
        known = isinstance(error, NlsomError | ValueError)
        told = str(error) if known else f"{type(error).__name__}: {error}"
        self.faults.append(self.source.fault(path, told))

    def _model(self, name: str, path: Path_) -> Model | None:
        """The model of that name, made once for all who share it."""
        if name not in self._models:
            self._models[name] = self._make_model(name, path)
        return self._models[name]

    def _make_model(self, name: str, path: Path_) -> Model | None:
        spec = self.spec.models.get(name)
        if spec is None:
            near = difflib.get_close_matches(name, self.spec.models, 1)
            meant = f"; did you mean {near[0]!r}?" if near else ""
            self.faults.append(self.source.fault((*path, "model"), f"no model is called {name!r}{meant}"))
            return None
        here = ("models", name)
        if self._is_open(name):
            what = f"model {name!r} is not given: --model {name}=URL[#MODEL], or an embedded model's name"
            self.faults.append(self.source.fault(here, what))
            return None
        kinds = [key for key in spec if key in plugins.installed("models")]
        if len(kinds) != 1:
            known = ", ".join(sorted(plugins.installed("models")))
            self.faults.append(self.source.fault(here, f"a model needs exactly one of these keys: {known}"))
            return None
        try:
            factory = plugins.load("models", kinds[0])
            first = next(iter(parameters(factory)))
            options = {
                first if key == kinds[0] else key: value for key, value in spec.items() if key != "optional"
            }
            known = json.dumps([kinds[0], options], sort_keys=True)
            if known not in self.shared:
                self.shared[known] = factory(**bind(factory, options, self.source, here))
            return self.shared[known]
        except ConfigError as error:
            self.faults.extend(error.faults)
        except Exception as error:  # noqa: BLE001
            self._blame(here, error)
        return None

    def competence(self) -> dict[str, float]:
        """How good each voter was before, if the verdict names a record of it."""
        given = self.spec.verdict.reputation
        if given is None:
            return {}
        try:
            return Reputation.read(beside(Path(given))).competence()
        except UsageError as error:
            self.faults.append(self.source.fault(("verdict", "reputation"), str(error)))
            return {}

    def entitled(self, society: Society, rights: Rights) -> Society:
        """The society with the rights that its file gives."""
        phases, verdict, structure = list(society.phases), society.verdict, society.structure
        if rights.know:
            structure = Knowing(base=structure, of=rights.of)
        if rights.change:
            phases = [revisable(phase, rights.of) for phase in phases]
            if phases == list(society.phases):
                what = f"the right to change needs a phase of a `repeat` that asks {rights.of!r}"
                self.faults.append(self.source.fault(("rights", "change"), what))
        if rights.vote:
            last = phases[-1]
            if not isinstance(last, Ask) or verdict.name != "decree" or last.ask != verdict.of:
                what = (
                    "the right to vote needs somebody who decided without it: asked by the last phase, and "
                    "named by `verdict: {rule: decree, of: …}`"
                )
                self.faults.append(self.source.fault(("rights", "vote"), what))
            else:
                phases[-1:] = votes(last, rights.of)
                verdict = dataclasses.replace(
                    verdict, rule=Plurality(), name="plurality", of=None, over=last.label
                )
        try:
            return dataclasses.replace(society, phases=tuple(phases), verdict=verdict, structure=structure)
        except ConfigError as error:
            self.faults += [self.source.fault(("rights",), fault.what) for fault in error.faults]
            return society

    def structure(self) -> StructureSpec:
        path: Path_ = ("structure",)
        try:
            shape = shape_of(self.spec.structure)
        except UsageError as error:
            self.faults.append(self.source.fault(path, str(error)))
            return Democracy()
        try:
            return shape.made()
        except ValidationError as error:
            self.faults.extend(faults(error, self.source, (*path, shape.name), {(): shape.spec}))
            return Democracy()

    def rule(self) -> Rule:
        spec = self.spec.verdict
        path: Path_ = ("verdict",)
        try:
            factory = plugins.load("rules", spec.rule)
            return factory(**bind(factory, spec.model_extra or {}, self.source, path))
        except ConfigError as error:
            self.faults.extend(error.faults)
        except Exception as error:  # noqa: BLE001
            self._blame((*path, "rule"), error)
        return Plurality()

    def task(self) -> type[Task]:
        name = self.spec.task
        try:
            kind = plugins.load("tasks", name)
            if isinstance(kind, type) and issubclass(kind, Task):
                return kind
            self._blame(("task",), UsageError(f"{name!r} (of tasks) is no subclass of nlsom.Task"))
        except NlsomError as error:
            self._blame(("task",), error)
        return Task
