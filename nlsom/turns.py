"""The turns of a phase: who is asked, in which order, and what each turn contains."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

from nlsom.errors import UsageError
from nlsom.form import Form
from nlsom.media import MediaStore
from nlsom.member import Member
from nlsom.minutes import Minutes
from nlsom.program import Program, Step
from nlsom.task import Task
from nlsom.trace.contract import SCHEMA
from nlsom.turn import Turn


class Turns:
    """Makes the turns of a mindstorm, from its program, task, seed and minutes only."""

    def __init__(
        self, program: Program, task: Task, minutes: Minutes, *, seed: int, media: MediaStore
    ) -> None:
        self._program, self._task, self._minutes, self._media = program, task, minutes, media
        self._seeds = f"{seed}\x1f".encode()
        self._shown: dict[tuple[int, int] | None, Task] = {None: task}

    def order(self, step: Step, round: int) -> Sequence[Sequence[int]]:
        """Places of a phase's members, in groups: each group is asked together, one group after the other."""
        order = step.ask.order
        if order == "together":
            return [step.who]
        who = list(step.who)
        if order == "random":
            names = self._program.names
            who.sort(key=lambda at: self._draw(names[at], step.name, round, "order"))
        elif order == "confidence":
            who.sort(key=lambda at: -self._sureness(at))
        return [[at] for at in who]

    def _sureness(self, at: int) -> float:
        said = self._minutes.of(at)
        return (said[-1].said.confidence or 0.0) if said else 0.0

    def _draw(self, name: str, phase: str, round: int, use: str = "") -> int:
        """A number made from run seed, name, phase and round only, so other members do not affect it."""
        told = f"{name}\x1f{phase}\x1f{round}\x1f{use}".encode()
        return int.from_bytes(hashlib.sha256(self._seeds + told).digest()[:4]) >> 1

    def _dealt(self, member: Member) -> Task:
        """The task as a member sees it; one object for all who see the same."""
        if member.part is not None and member.part not in self._shown:
            self._shown[member.part] = self._task.dealt(*member.part)
        return self._shown[member.part]

    def _asked(self, step: Step, round: int, member: Member, shown: Task) -> str:
        """What a member is asked.

        Raises:
            UsageError: The prompt asks for something that is not there; told with phase, round and member.
        """
        try:
            return step.template.render(
                task=shown,
                member=member,
                members=self._program.names,
                round=round,
                rounds=step.rounds,
                label=step.ask.label,
            )
        except UsageError as error:
            told = f"phase {step.name!r}, round {round}, prompt for {member.name!r}: {error}"
            raise UsageError(told) from None

    def of(self, step: Step, round: int, form: Form, group: Sequence[int]) -> list[tuple[int, Turn]]:
        """The turns of a group of members, each with its member's place. Computes what they share once."""
        program, task, ask = self._program, self._task, step.ask
        shared = json.dumps([SCHEMA, task.digest, form.model_dump(), step.name, round]).encode()
        digests = program.member_digests
        texts: dict[tuple[int, int] | None, str] = {}
        turns: list[tuple[int, Turn]] = []
        for at in group:
            member = program.members[at]
            heard, own = self._minutes.heard(step.structure, at, ask.hears)
            shown = self._dealt(member)
            if member.part not in texts or step.template.personal:
                texts[member.part] = self._asked(step, round, member, shown)
            text = texts[member.part]
            seed = self._draw(member.name, step.name, round)
            owned = "".join(message.digest for message in own)
            told = f"{digests[at]}{heard.digest}{owned}\x1f{seed}\x1f{text}"
            turn = Turn(
                task=shown,
                ask=text,
                form=form,
                heard=heard,
                own=own,
                member=member,
                phase=step.name,
                round=round,
                seed=seed,
                key=hashlib.sha256(shared + told.encode("utf-8", "surrogatepass")).hexdigest(),
                media=self._media,
            )
            turns.append((at, turn))
        return turns
