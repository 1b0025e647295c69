"""What a society is, for people and programs to read."""

from __future__ import annotations

from typing import Any

from nlsom.phase import Hears
from nlsom.program import Rounds, Step
from nlsom.society import Society
from nlsom.structure import Structure


def structure_of(society: Society) -> Structure:
    """Whose messages may reach whom, in all phases that have no structure of their own."""
    return society.structure.build(society.members)


def about(society: Society) -> dict[str, Any]:
    """Members and whom they hear (None is everyone), phases, and how the verdict comes about."""
    program = society.program
    structure = structure_of(society)
    members = [
        {
            "name": seat.member.name,
            "role": seat.member.role,
            "agent": type(seat.agent).__name__.lower(),
            "hears": _hears(structure, at, program.names),
            "persona": seat.member.persona,
        }
        for at, seat in enumerate(society.seats)
    ]
    phases: list[str] = []
    for step in program.steps:
        if isinstance(step, Rounds):
            phases.append(f"up to {step.count} rounds of" if step.until else f"{step.count} rounds of")
            phases += [f"  {line}" for inner in step.steps for line in _lines(inner, society)]
        else:
            phases += _lines(step, society)
    decision = program.decision
    voters = society.verdict.of or f"all who gave a {decision.over}"
    return {
        "name": society.name,
        "about": society.about,
        "members": members,
        "phases": phases,
        "verdict": f"verdict by {decision.name} over {decision.over!r}, of {voters}",
    }


def shortly(hears: list[str] | None, members: list[dict[str, Any]]) -> str:
    """Whom a member hears, in as few words as it takes: whole roles by their name."""
    if hears is None:
        return "everyone"
    rest, told = dict.fromkeys(hears), list[str]()
    for role in dict.fromkeys(member["role"] for member in members):
        of_it = {member["name"] for member in members if member["role"] == role}
        if len(of_it) > 2 and of_it <= rest.keys():
            told.append(f"every {role}")
            rest = dict.fromkeys(name for name in rest if name not in of_it)
    return ", ".join([*told, *rest]) or "nobody"


def _hears(structure: Structure, at: int, names: tuple[str, ...]) -> list[str] | None:
    heard = [names[other] for other in structure.hears(at) if other != at]
    return None if heard and len(heard) == len(names) - 1 else heard


def _lines(step: Step, society: Society) -> list[str]:
    """A phase; and, where it has its own structure, whom its members hear in it."""
    if step.ask.structure is None:
        return [_line(step)]
    names = society.program.names
    told: list[str] = []
    for at in step.who:
        heard = _hears(step.structure, at, names)
        told.append(f"  {names[at]} hears {'everyone' if heard is None else ', '.join(heard) or 'nobody'}")
    return [f"{_line(step)}, in a structure of its own:", *told]


def _line(step: Step) -> str:
    ask = step.ask
    prompt = ask.prompt if isinstance(ask.prompt, str) else "its own prompt"
    form = ask.form if isinstance(ask.form, str) else ask.form.kind
    line = f"ask {ask.ask} ({len(step.who)}) by {prompt!r}, as {ask.label!r}, form {form}"
    if ask.over is not None:
        line += f" over every {ask.over!r}"
    if ask.hears != Hears():
        labels = "all labels" if ask.hears.label is None else ", ".join(ask.hears.label)
        line += f", hearing {labels} ({ask.hears.scope}, {ask.hears.content})"
    if ask.order != "together":
        line += f", {ask.order.replace('_', ' ')}"
    if ask.wait != "all":
        line += ", until certain" if ask.wait == "certain" else f", until {ask.wait} replied"
    return line
