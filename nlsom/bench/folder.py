"""A run's folder: what was run, its lines, its trace and its pictures."""

from __future__ import annotations

import platform
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

from pydantic import PositiveInt, ValidationError

from nlsom import __version__
from nlsom.bench.line import Lines, first_fault
from nlsom.errors import UsageError
from nlsom.form import TextForm
from nlsom.message import Frozen
from nlsom.phase import FormSpec
from nlsom.rules import TieBreak
from nlsom.society import Society

_WITH = ("numpy", "pillow", "pydantic", "openvino-genai", "rapidocr", "vllm")


class Entrant(Frozen):
    """A society that takes part in a run.

    Attributes:
        name: What it is called here; unique in a run.
        file: Its name or path, for a society that comes from a file; "" for one built in Python.
        overrides: `KEY=VALUE` options it was loaded with.
        models: `NAME=URL` options it was loaded with.
        digest: SHA-256 (hex) of its program.
        members: Names, roles and identities of members.
        answering: Labels of the phases whose messages answer the task.
        rule: Name of its rule.
        over: Label of the votes.
        voters: Names of those whose votes count.
        tie_break: What chooses among tied answers.
        spends: Names of the members that call a model.
    """

    name: str
    file: str = ""
    overrides: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    digest: str = ""
    members: tuple[tuple[str, str, str], ...] = ()
    answering: tuple[str, ...] = ()
    rule: str = ""
    over: str = ""
    voters: tuple[str, ...] = ()
    tie_break: TieBreak = "none"
    spends: tuple[str, ...] = ()

    @property
    def given(self) -> tuple[object, ...]:
        """How it was asked for."""
        return self.file, self.overrides, self.models


class Config(Frozen):
    """What a run is: written when it begins; a run that goes on has to be the same.

    Attributes:
        on: Name of the set.
        path: Where it lies; "" for a set that comes as a package.
        scorer: Name of its scorer.
        limit: How many samples; None for all.
        sample_seed: Of drawing them; None takes the first.
        seeds: How many seeds each sample is asked with, from 0.
        entrants: The societies.
        budget: Tokens that the whole run may spend; None is without limit.
        versions: Of this package, Python and what answers may depend on.
        started: When it was begun, in seconds since 1970 (UTC).
    """

    schema_version: Literal[1] = 1
    on: str
    path: str = ""
    scorer: str
    limit: int | None = None
    sample_seed: int | None = None
    seeds: PositiveInt = 1
    entrants: tuple[Entrant, ...]
    budget: int | None = None
    versions: dict[str, str] = {}
    started: float = 0.0


def entrant(society: Society, told: Entrant) -> Entrant:
    """What is told of an entrant, with what an open society knows of itself."""
    program = society.program
    decision = program.decision
    return told.model_copy(
        update={
            "digest": program.digest,
            "members": tuple(
                (member.name, member.role, identity)
                for member, identity in zip(program.members, program.identities, strict=True)
            ),
            "answering": tuple(
                dict.fromkeys(step.ask.label for step in program.flat if _answers(step.ask.form))
            ),
            "rule": decision.name,
            "over": decision.over,
            "voters": tuple(program.members[at].name for at in decision.of),
            "tie_break": decision.tie_break,
            "spends": tuple(
                seat.member.name for seat in society.seats if getattr(seat.agent, "model", None) is not None
            ),
        }
    )


def _answers(form: FormSpec) -> bool:
    """Whether what is said in this form answers the task; free text answers whatever was asked last."""
    return form != "text" and not (isinstance(form, TextForm) and not form.short)


def versions() -> dict[str, str]:
    """Versions of this package, of Python, and of what answers may depend on."""
    found = {"nlsom": __version__, "python": platform.python_version()}
    for name in _WITH:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


class RunFolder:
    """Where a run lies."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.lines = Lines(self.path / "samples.jsonl")
        self.trace = self.path / "trace.sqlite"
        self.media = self.path / "trace.sqlite.media"  # where a trace looks for its pictures

    @property
    def name(self) -> str:
        """What it is called: the last part of its path."""
        return self.path.resolve().name

    def exists(self) -> bool:
        """Whether a run was begun here."""
        return (self.path / "config.json").exists()

    def config(self) -> Config:
        """What is run here.

        Raises:
            UsageError: This is not the folder of a run.
        """
        file = self.path / "config.json"
        try:
            return Config.model_validate_json(file.read_text(encoding="utf-8"))
        except (FileNotFoundError, NotADirectoryError):
            raise UsageError(
                f"{self.path}: holds no run; `nlsom bench run … -o {self.path}` makes one"
            ) from None
        except ValidationError as error:
            fault = first_fault(error)
            if fault.startswith("schema_version:"):
                raise UsageError(
                    f"{file}: was written by another version of nlsom ({fault}); read it with that version, "
                    "or give another folder"
                ) from None
            raise UsageError(f"{file}: {fault}") from None

    def begin(self, config: Config) -> Config:
        """Writes down what is run, or checks that it is what was begun here.

        Raises:
            UsageError: Another run was begun here; names what differs. Or the folder cannot be made.
        """
        if not self.exists():
            try:
                self.path.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise UsageError(
                    f"{self.path}: the folder cannot be made ({error.strerror or error})"
                ) from None
            self.write(config.model_copy(update={"versions": versions(), "started": time.time()}))
            return self.config()
        held = self.config()
        same = ("on", "path", "limit", "sample_seed", "seeds")
        differs = [
            f"{key} was {getattr(held, key)!r}" for key in same if getattr(held, key) != getattr(config, key)
        ]
        if differs:
            raise UsageError(
                f"{self.path}: another run was begun here ({', '.join(differs)}); "
                "give the same options to go on with it, or another folder"
            )
        known = {one.name: one for one in held.entrants}
        new = {one.name: one for one in config.entrants}
        for name in known.keys() & new.keys():
            if known[name].given != new[name].given:
                raise self._other(name)
        # Whoever is known keeps its place, and what was found out of it when it was opened.
        entrants = tuple((known | new | known).values())
        merged = held.model_copy(update={"entrants": entrants, "budget": config.budget})
        self.write(merged)
        return merged

    def enter(self, entrant: Entrant) -> None:
        """Writes down an entrant, now that its members are known; refuses another under the same name.

        Raises:
            UsageError: Another society of this name was run here.
        """
        held = self.config()
        known = {one.name: one for one in held.entrants}
        before = known.get(entrant.name)
        if before is not None and before.digest and before.digest != entrant.digest:
            raise self._other(entrant.name)
        known[entrant.name] = entrant
        self.write(held.model_copy(update={"entrants": tuple(known.values())}))

    def _other(self, name: str) -> UsageError:
        return UsageError(
            f"{self.path}: society {name!r} was another one when this run was begun; its file, options or "
            "models have changed. Give another folder, or undo the change"
        )

    def write(self, config: Config) -> None:
        """Replaces the file as a whole: a killed process leaves the old one or the new one."""
        part = self.path / "config.json.part"
        part.write_text(config.model_dump_json(indent=1), encoding="utf-8")
        part.replace(self.path / "config.json")
