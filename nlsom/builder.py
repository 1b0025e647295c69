"""From the specification in a society's file to the parts of the society."""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from pydantic import ValidationError

from nlsom import plugins
from nlsom.agent import Agent
from nlsom.blueprint import Seat
from nlsom.errors import ConfigError, Fault, NlsomError, UsageError, cause_of, meant
from nlsom.member import Member
from nlsom.model.contract import Model
from nlsom.nesting import beside
from nlsom.options import bind, faults, parameters
from nlsom.phase import Ask
from nlsom.reputation import Reputation
from nlsom.rights import Knowing, Rights, revisable, votes
from nlsom.rules import Plurality
from nlsom.society import Society
from nlsom.source import KeyPath, Source
from nlsom.spec import MemberSpec, SocietySpec
from nlsom.structure import Democracy, StructureSpec, shape_of
from nlsom.task import Task
from nlsom.turn import Turn
from nlsom.verdict import Rule

_MAX_MEMBERS = 1_000_000
"""Most members of one entry of `members`: a typing error should not fill the memory."""


class _Nobody:
    """Takes the place of an agent that could not be made, so that selectors can still be checked."""

    async def speak(self, turn: Turn) -> None:
        raise AssertionError("a faulty society is never run")


@dataclass
class Builder:
    """Makes the parts of a society from its specification; gathers faults instead of raising the first.

    Attributes:
        source: The file, for the places of faults.
        spec: What it holds.
        faults: What is wrong with it, as far as is known.
        shared: Models by what they are (JSON), so that societies opened together can share them.
    """

    source: Source
    spec: SocietySpec
    faults: list[Fault] = field(default_factory=list[Fault])
    shared: dict[str, Model] = field(default_factory=dict[str, Model])
    _models: dict[str, Model | None] = field(default_factory=dict[str, "Model | None"])

    def seats(self) -> tuple[list[Seat], dict[str, tuple[int, ...]]]:
        """The seats, and which of them each entry of `members` made."""
        seats: list[Seat] = []
        groups: dict[str, tuple[int, ...]] = {}
        for name, spec in self.spec.members.items():
            made = list(self._members(name, spec, ("members", name)))
            groups[name] = tuple(range(len(seats), len(seats) + len(made)))
            seats.extend(made)
        return seats, groups

    def _members(self, name: str, spec: MemberSpec, path: KeyPath) -> Iterator[Seat]:
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
        count = spec.count
        if len(personas) * len(models) * count > _MAX_MEMBERS:
            what = f"this makes more than {_MAX_MEMBERS} members"
            self.faults.append(self.source.fault((*path, "count"), what))
            count = 1
        every = list(itertools.product(personas, models, range(count)))
        agents: dict[str | None, Agent | None] = {}
        for number, (persona, model, _) in enumerate(every, 1):
            if model not in agents:
                agents[model] = self._agent(spec.agent, model, dict(spec.model_extra or {}), path)
            own = name if len(every) == 1 else f"{name}.{number}"
            part = (number - 1, len(every)) if spec.sees == "share" else None
            yield Seat(Member(own, role, persona, part=part), agents[model] or _Nobody(), spec.limit)

    def _is_open(self, model: str) -> bool:
        """Whether a model is optional and was not given."""
        given = self.spec.models.get(model)
        return given is not None and set(given) == {"optional"}

    def _agent(self, agent: str, model: str | None, options: dict[str, Any], path: KeyPath) -> Agent | None:
        try:
            factory = plugins.load("agents", agent)
            takes = "model" in parameters(factory)
            if takes and model is None:
                self.faults.append(self.source.fault(path, f"agent {agent!r} needs a model: `model: KEY`"))
                bind(factory, options, self.source, path, given=("model",))  # `modell` is told beside it
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

    def _blame(self, path: KeyPath, error: Exception) -> None:
        """Adds a fault for what a plugin raised, which may be anything: its file names it."""
        known = isinstance(error, NlsomError | ValueError)
        self.faults.append(self.source.fault(path, str(error) if known else cause_of(error)))

    def _model(self, name: str, path: KeyPath) -> Model | None:
        """The model of that name, made once for all who share it."""
        if name not in self._models:
            self._models[name] = self._make_model(name, path)
        return self._models[name]

    def _make_model(self, name: str, path: KeyPath) -> Model | None:
        spec = self.spec.models.get(name)
        if spec is None:
            what = f"no model is called {name!r}; {meant(name, self.spec.models)}"
            self.faults.append(self.source.fault((*path, "model"), what))
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
        """How often each voter was right before, if the verdict names a record of it."""
        given = self.spec.verdict.reputation
        if given is None:
            return {}
        try:
            return Reputation.read(beside(Path(given))).competence()
        except UsageError as error:
            self.faults.append(self.source.fault(("verdict", "reputation"), str(error)))
            return {}

    def entitled(self, society: Society, rights: Rights) -> Society:
        """The society with the rights that its file grants."""
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
        """Whose messages may reach whom."""
        path: KeyPath = ("structure",)
        try:
            shape = shape_of(self.spec.structure)
        except UsageError as error:
            self.faults.append(self.source.fault(path, str(error)))
            return Democracy()
        try:
            return shape.made()
        except ValidationError as error:
            alone = isinstance(shape.options, list)  # the list of `edges`, which then is no key of the file
            within = path if alone else (*path, shape.name)
            self.faults.extend(faults(error, self.source, within, {(): shape.spec}))
            return Democracy()

    def rule(self) -> Rule:
        """The rule that counts the votes."""
        spec = self.spec.verdict
        path: KeyPath = ("verdict",)
        try:
            factory = plugins.load("rules", spec.rule)
            rule: object = factory(**bind(factory, spec.model_extra or {}, self.source, path))
            if callable(rule):
                return cast("Rule", rule)
            self._blame((*path, "rule"), UsageError(f"{spec.rule!r} (of rules) makes no rule, but {rule!r}"))
        except ConfigError as error:
            self.faults.extend(error.faults)
        except Exception as error:  # noqa: BLE001
            self._blame((*path, "rule"), error)
        return Plurality()

    def task(self) -> type[Task]:
        """The kind of task."""
        name = self.spec.task
        try:
            kind = plugins.load("tasks", name)
            if isinstance(kind, type) and issubclass(kind, Task):
                return kind
            self._blame(("task",), UsageError(f"{name!r} (of tasks) is no subclass of nlsom.Task"))
        except NlsomError as error:
            self._blame(("task",), error)
        return Task
