"""Describes a society, for people and programs: members, structure, phases, verdict."""

from __future__ import annotations

from typing import Any

from nlsom.phase import Hears
from nlsom.program import Rounds, Step
from nlsom.society import Society
from nlsom.structure import Structure


def structure_of(society: Society) -> Structure:
    """The society's structure, which applies to all phases without a structure of their own."""
    return society.structure.build(society.members)


def about(society: Society) -> dict[str, Any]:
    """Members and whom they hear (None for everyone), phases, and how the verdict is reached."""
    program = society.program
    structure = structure_of(society)
    members = [
        {
            "name": seat.member.name,
            "role": seat.member.role,
            "agent": type(seat.agent).__name__.lower(),
            "hears": _hears(structure, at, program.names),
            "persona": seat.member.persona,
            "sees": None
            if seat.member.part is None
            else f"share {seat.member.part[0] + 1} of {seat.member.part[1]}",
        }
        for at, seat in enumerate(society.seats)
    ]
    phases: list[str] = []
    for step in program.steps:
        if isinstance(step, Rounds):
            phases.append(_rounds(step))
            phases += [f"  {line}" for inner in step.steps for line in _lines(inner, society)]
        else:
            phases += _lines(step, society)
    decision = program.decision
    voters = society.verdict.of or "all who were asked for it"
    tie = "" if decision.tie_break == "none" else f"; ties are broken by {_TIES[decision.tie_break]}"
    return {
        "name": society.name,
        "about": society.about,
        "members": members,
        "phases": phases,
        "verdict": f"verdict by {decision.name} over {decision.over!r}, of {voters}{tie}",
    }


_TIES = {"first": "declaration order", "random": "a draw from the seed", "confidence": "confidence"}


def _rounds(step: Rounds) -> str:
    """The number of rounds, and what ends them early."""
    times = f"{step.count} round" if step.count == 1 else f"{step.count} rounds"
    until = step.until
    if until is None:
        return f"{times}:"
    ends: list[str] = []
    if until.agreement is not None:
        ends.append(f"{until.agreement:.0%} give the same {until.over!r}")
    if until.unchanged:
        ends.append(f"nobody changes their {until.over!r}")
    if until.confident is not None:
        ends.append(f"{until.of} is {until.confident:.0%} sure")
    if until.says is not None:
        ends.append(f"{until.of} says {until.says!r}")
    return f"up to {times}, until {' or '.join(ends)}:"


def rows(description: dict[str, Any]) -> list[dict[str, str]]:
    """The members of a description (see `about`) as table rows; equal ones (`eyes.1`, …) share a row."""
    found: list[dict[str, str]] = []
    for member in description["members"]:
        stem = member["name"].rpartition(".")[0] if member["name"].rpartition(".")[2].isdigit() else ""
        row = {
            "name": member["name"],
            "stem": stem or member["name"],
            "role": member["role"],
            "agent": member["agent"] + (", sees its share" if member["sees"] else ""),
            "hears": briefly(member["hears"], description["members"]),
        }
        last = found[-1] if found else {}
        if all(last.get(key) == row[key] for key in ("stem", "role", "agent", "hears")):
            last["name"] = f"{last['name'].partition(' … ')[0]} … {row['name']}"
        else:
            found.append(row)
    return found


def briefly(hears: list[str] | None, members: list[dict[str, Any]]) -> str:
    """Whom a member hears, in short: a role of three or more that is heard entirely goes by its name."""
    if hears is None:
        return "everyone"
    rest, roles = dict.fromkeys(hears), list[str]()
    for role in dict.fromkeys(member["role"] for member in members):
        of_it = {member["name"] for member in members if member["role"] == role}
        if len(of_it) > 2 and of_it <= rest.keys():
            roles.append(f"every {role}")
            rest = dict.fromkeys(name for name in rest if name not in of_it)
    return ", ".join([*roles, *rest]) or "nobody"


def _hears(structure: Structure, at: int, names: tuple[str, ...]) -> list[str] | None:
    heard = [names[other] for other in structure.hears(at) if other != at]
    return None if heard and len(heard) == len(names) - 1 else heard


def _lines(step: Step, society: Society) -> list[str]:
    """Describes a phase; if it has its own structure, also whom its members hear."""
    if step.ask.structure is None:
        return [_line(step)]
    names = society.program.names
    hearing: list[str] = []
    for at in step.who:
        heard = _hears(step.structure, at, names)
        hearing.append(f"  {names[at]} hears {'everyone' if heard is None else ', '.join(heard) or 'nobody'}")
    return [f"{_line(step)}, in a structure of its own:", *hearing]


def _heard(hears: Hears) -> str:
    if hears.scope == "none":
        return "nothing"
    what = "the latest" if hears.scope == "latest" else "all"
    of = f" {', '.join(map(repr, hears.label))}" if hears.label else ""
    how = {"reasons": "", "answers": ", answers only", "tally": ", how often each answer was given"}
    return f"{what}{of}{how[hears.content]}"


def _line(step: Step) -> str:
    ask = step.ask
    prompt = ask.prompt if isinstance(ask.prompt, str) else "its own prompt"
    form = ask.form if isinstance(ask.form, str) else ask.form.kind
    called = "" if step.name == ask.label else f" (the phase {step.name!r})"
    line = f"ask {ask.ask} ({len(step.who)}) by {prompt!r}, as {ask.label!r}{called}, form {form}"
    if ask.over is not None:
        line += f" over every {ask.over!r}"
    if ask.hears != Hears():
        line += f", hearing {_heard(ask.hears)}"
    if ask.order != "together":
        line += f", {ask.order.replace('_', ' ')}"
    if ask.wait != "all":
        line += ", until certain" if ask.wait == "certain" else f", until {ask.wait} replied"
    return line
