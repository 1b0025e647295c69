"""The folder of a run: its configuration, lines, trace and pictures."""

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

_RECORDED = ("numpy", "pillow", "pydantic", "openvino-genai", "rapidocr", "vllm")


class Entrant(Frozen):
    """Description of a society that takes part in a run.

    The fields from `digest` on are known only once the society has been opened, and empty before.

    Attributes:
        name: Its name, unique in the run.
        file: Name or path of the file it was loaded from; "" if it was built in Python.
        overrides: `KEY=VALUE` options with which it was loaded.
        models: `NAME=URL` options with which it was loaded.
        digest: SHA-256 (hex) of its program.
        members: Name, role and identity of each member.
        answering: Labels of the phases whose messages answer the task.
        rule: Name of its voting rule.
        over: Label of the votes.
        voters: Names of the members whose votes count.
        tie_break: How ties are broken.
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
        """How it was specified: file, overrides and models."""
        return self.file, self.overrides, self.models


class Config(Frozen):
    """Configuration of a run, `config.json`. Written at the start; a resumed run has to match it.

    Attributes:
        on: Name of the set.
        path: Where the set is; "" for a set that comes as a package.
        scorer: Name of its scorer.
        limit: Number of samples; None for all.
        sample_seed: Seed for drawing the samples; None takes the first ones.
        seeds: Number of seeds with which each sample is asked, counting from 0.
        entrants: The societies.
        budget: Tokens that the whole run may spend; None for no limit.
        versions: Versions of this package, of Python, and of packages that may influence answers.
        started: Start of the run, in seconds since 1970 (UTC).
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
    """The entrant `told`, completed with what is known of its society once that is open."""
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
    """Whether a reply in this form answers the task; free text replies to the prompt instead."""
    return form != "text" and not (isinstance(form, TextForm) and not form.short)


def versions() -> dict[str, str]:
    """Versions of this package, of Python, and of installed packages that may influence answers."""
    found = {"nlsom": __version__, "python": platform.python_version()}
    for name in _RECORDED:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


class RunFolder:
    """The folder of a run; it need not exist yet."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.lines = Lines(self.path / "samples.jsonl")
        self.trace = self.path / "trace.sqlite"
        self.media = self.path / "trace.sqlite.media"  # where the trace looks for its pictures

    @property
    def name(self) -> str:
        """The last part of its path."""
        return self.path.resolve().name

    def exists(self) -> bool:
        """Whether a run was started in this folder."""
        return (self.path / "config.json").exists()

    def config(self) -> Config:
        """The configuration of the run.

        Raises:
            UsageError: This is not the folder of a run, or of another version of nlsom.
        """
        file = self.path / "config.json"
        try:
            return Config.model_validate_json(file.read_text(encoding="utf-8"))
        except (FileNotFoundError, NotADirectoryError):
            raise UsageError(
                f"{self.path}: holds no run; `nlsom bench run … -o {self.path}` starts one"
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
        """Starts a run in this folder, or resumes the one there, to which it may add societies.

        Returns:
            The configuration as it is now in the folder.

        Raises:
            UsageError: The folder has a run with other settings, which are named; or it cannot be created.
        """
        if not self.exists():
            try:
                self.path.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise UsageError(
                    f"{self.path}: the folder cannot be created ({error.strerror or error})"
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
                f"{self.path}: the run in this folder has other settings ({', '.join(differs)}); "
                "give the same options to resume it, or another folder"
            )
        known = {one.name: one for one in held.entrants}
        new = {one.name: one for one in config.entrants}
        for name in known.keys() & new.keys():
            if known[name].given != new[name].given:
                raise self._other(name)
        # Known societies keep their place, and what was learned when they were opened.
        entrants = tuple((known | new | known).values())
        merged = held.model_copy(update={"entrants": entrants, "budget": config.budget})
        self.write(merged)
        return merged

    def enter(self, entrant: Entrant) -> None:
        """Stores an entrant once its society has been opened.

        Raises:
            UsageError: A different society with this name was run here.
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
            f"{self.path}: society {name!r} has changed since this run was started (its file, options or "
            "models). Give another folder, or undo the change"
        )

    def write(self, config: Config) -> None:
        """Replaces `config.json` atomically: after a kill it is either the old or the new one."""
        part = self.path / "config.json.part"
        part.write_text(config.model_dump_json(indent=1), encoding="utf-8")
        part.replace(self.path / "config.json")
