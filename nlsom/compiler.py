"""From a society's declarations to its program."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

from nlsom.blueprint import Blueprint
from nlsom.errors import ConfigError, Fault, UsageError
from nlsom.phase import Ask, Inline, Repeat
from nlsom.program import Decision, Program, Rounds, Seating, Step, flatten
from nlsom.structure import Democracy, Structure, StructureSpec
from nlsom.task import Task
from nlsom.template import Template
from nlsom.verdict import SettlingRule


class Compiler:
    """Checks a society's declarations and binds them to its members; reports all faults at once."""

    def __init__(self, society: Blueprint) -> None:
        self._society = society
        self._members = tuple(seat.member for seat in society.seats)
        self._seating = Seating(self._members, society.groups)
        self._faults: list[Fault] = []
        self._where: dict[str, str] = {}

    def program(self) -> Program:
        """Makes the program.

        Raises:
            ConfigError: Declarations are faulty; `where` of each fault is the dotted path in the file.
        """
        society = self._society
        self._check_members()
        structure = self._built(society.structure, "structure")
        steps: list[Step | Rounds] = []
        for at, phase in enumerate(society.phases):
            where = f"mindstorm.{at}"
            steps.append(
                self._rounds(phase, where, structure)
                if isinstance(phase, Repeat)
                else self._step(phase, where, structure, rounds=1)
            )
        decision = self._decision(steps)
        self._check_hearing(steps)
        if self._faults:
            raise ConfigError(self._faults)
        return Program(
            name=society.name,
            members=self._members,
            identities=("",) * len(self._members),
            steps=tuple(steps),
            decision=decision,
            limits=society.limits,
        )

    def _built(self, spec: StructureSpec, where: str) -> Structure:
        try:
            return spec.build(self._members)
        except ConfigError as error:
            self._faults += [Fault(f"{where}.{fault.where}", fault.what) for fault in error.faults]
            return Democracy().build(self._members)

    def _fault(self, where: str, what: object) -> None:
        self._faults.append(Fault(where, str(what)))

    def _check_members(self) -> None:
        if not self._members:
            self._fault("members", "a society needs at least one member")
        for seat in self._society.seats:
            if isinstance(seat.agent, type) or not callable(getattr(seat.agent, "speak", None)):
                told = "its agent is no object with a method `speak`"
                self._fault(f"members.{seat.member.name}", f"{told}, but {seat.agent!r}")
            if seat.limit is not None and seat.limit < 1:
                self._fault(f"members.{seat.member.name}.limit", f"at least 1, not {seat.limit}")
        seen: set[str] = set()
        groups = self._society.groups
        for member in self._members:
            if member.name in seen:
                self._fault(f"members.{member.name}", "two members have this name")
            if not member.name.strip() or not member.name.isprintable():
                self._fault(f"members.{member.name!r}", "a name needs printable text, on one line")
            seen.add(member.name)
        for name in {*seen, *groups}:
            if name == "everyone":
                self._fault(f"members.{name}", "`everyone` stands for all members; call this one otherwise")
            elif not name.strip():
                self._fault(f"members.{name}", "a name needs printable text, on one line")

    def _select(self, selector: str, where: str) -> tuple[int, ...]:
        try:
            return self._seating.select(selector)
        except UsageError as error:
            self._fault(where, error)
            return ()

    def _step(self, ask: Ask, where: str, structure: Structure, *, rounds: int) -> Step:
        society = self._society
        name = ask.name or ask.label
        if not ask.label.strip() or not ask.label.isprintable():
            self._fault(f"{where}.as", "a label needs printable text, on one line")
        if name in self._where:
            name = next(f"{name}#{n}" for n in itertools.count(2) if f"{name}#{n}" not in self._where)
        self._where[name] = where
        try:
            if isinstance(ask.prompt, Inline):
                template = Template.of(ask.prompt.text)
            else:
                template = society.templates.get(ask.prompt, society.task.kind)
        except UsageError as error:
            self._fault(f"{where}.prompt", error)
            template = Template.of("")
        if unknown := sorted(name for name in template.reads if not _has(society.task, name)):
            told = f"{template.name}: a {society.task.kind} task has no {unknown[0]!r}"
            self._fault(f"{where}.prompt", told)
        who = self._select(ask.ask, f"{where}.ask")
        if ask.structure is not None:
            structure = self._built(ask.structure, f"{where}.structure")
        return Step(
            ask=ask,
            name=name,
            who=who,
            template=template,
            structure=structure,
            quorum=society.limits.quorum if ask.quorum is None else ask.quorum,
            on_error=ask.on_error or society.limits.on_error,
            rounds=rounds,
        )

    def _rounds(self, repeat: Repeat, where: str, structure: Structure) -> Rounds:
        steps = tuple(
            self._step(ask, f"{where}.phases.{at}", structure, rounds=repeat.repeat)
            for at, ask in enumerate(repeat.phases)
        )
        until = repeat.until
        of = self._select(until.of, f"{where}.until.of") if until and until.of else ()
        if until is not None and (until.agreement or until.unchanged):
            labels = {step.ask.label for step in steps}
            if until.over not in labels:
                self._fault(f"{where}.until.over", f"no phase of this repeat is labelled {until.over!r}")
        return Rounds(repeat.repeat, steps, until, of)

    def _decision(self, steps: Sequence[Step | Rounds]) -> Decision:
        by = self._society.verdict
        flat = flatten(steps)
        if not flat:
            self._fault("mindstorm", "a mindstorm needs at least one phase")
        labels = [step.ask.label for step in flat]
        over = by.over or ("ballot" if "ballot" in labels else labels[-1] if labels else "ballot")
        if over not in labels:
            self._fault("verdict.over", f"no phase is labelled {over!r}; there are {_names({*labels})}")
        asked = {at for step in flat if step.ask.label == over for at in step.who}
        of = self._select(by.of, "verdict.of") if by.of is not None else tuple(sorted(asked))
        if never := [self._members[at].name for at in of if at not in asked]:
            self._fault("verdict.of", f"{never[0]!r} is never asked for a {over!r}")
        for step in flat:
            if step.ask.wait == "certain":
                where = f"{self._where[step.name]}.wait"
                if step is not flat[-1] or step.ask.label != over:
                    self._fault(where, "`wait: certain` is for the last phase, the one that is counted")
                elif not isinstance(by.rule, SettlingRule):
                    self._fault(where, f"`wait: certain` cannot be had with the rule {by.name!r}")
        proposals = {step.ask.over for step in flat if step.ask.label == over}
        if len(proposals) > 1:
            self._fault("verdict.over", f"phases labelled {over!r} vote over different things")
        voters = {self._members[at].name for at in of}
        competence = {name: p for name, p in by.competence.items() if name in voters}
        return Decision(by.rule, by.name, over, of, by.tie_break, next(iter(proposals), None), competence)

    def _check_hearing(self, steps: Sequence[Step | Rounds]) -> None:
        """Reports labels that none of those asked could ever hear: they are typing errors."""
        flat = flatten(steps)
        senders: dict[str, set[int]] = {}
        for step in flat:
            senders.setdefault(step.ask.label, set()).update(step.who)
        for step in flat:
            if step.ask.over is not None and step.ask.over not in senders:
                where = f"{self._where[step.name]}.over"
                self._fault(where, f"no phase is labelled {step.ask.over!r}; there are {_names(senders)}")
            for label in step.ask.hears.label or ():
                where = f"{self._where[step.name]}.hears.label"
                if label not in senders:
                    self._fault(where, f"no phase is labelled {label!r}; there are {_names(senders)}")
                    continue
                said = senders[label]
                if (
                    step.who
                    and said
                    and not any(
                        at in said or not said.isdisjoint(step.structure.hears(at)) for at in step.who
                    )
                ):
                    self._fault(
                        where, f"nobody asked here can hear those who say {label!r} in this structure"
                    )


def _has(task: type[Task], name: str) -> bool:
    return name in task.model_fields or hasattr(task, name)


def _names(labels: Iterable[str]) -> str:
    return ", ".join(sorted(labels))
