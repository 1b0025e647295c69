"""What a society is, for people and programs to read."""

from __future__ import annotations

from typing import Any

from nlsom.program import Rounds, Step
from nlsom.society import Society
from nlsom.structure import Structure


def structure_of(society: Society) -> Structure:
    """Whose messages may reach whom, in its first phase."""
    first = society.program.steps[0]
    return (first.steps[0] if isinstance(first, Rounds) else first).structure


def about(society: Society) -> dict[str, Any]:
    """Members and whom they hear (None is everyone), phases, and how the verdict comes about."""
    program = society.program
    structure = structure_of(society)
    names = program.names
    members: list[dict[str, Any]] = []
    for at, seat in enumerate(society.seats):
        heard = [other for other in structure.hears(at) if other != at]
        everyone = len(heard) == len(names) - 1
        members.append(
            {
                "name": seat.member.name,
                "role": seat.member.role,
                "agent": type(seat.agent).__name__.lower(),
                "hears": None if everyone else [names[other] for other in heard],
                "persona": seat.member.persona,
            }
        )
    phases: list[str] = []
    for step in program.steps:
        if isinstance(step, Rounds):
            phases.append(f"up to {step.count} rounds of" if step.until else f"{step.count} rounds of")
            phases += [f"  {_line(inner)}" for inner in step.steps]
        else:
            phases.append(_line(step))
    decision = program.decision
    voters = society.verdict.of or f"all who gave a {decision.over}"
    return {
        "name": society.name,
        "about": society.about,
        "members": members,
        "phases": phases,
        "verdict": f"verdict by {decision.name} over {decision.over!r}, of {voters}",
    }


def _line(step: Step) -> str:
    ask = step.ask
    prompt = ask.prompt if isinstance(ask.prompt, str) else "its own prompt"
    hears = "" if ask.hears.label is None else f", hearing {', '.join(ask.hears.label)} ({ask.hears.scope})"
    order = "" if ask.order == "together" else f", {ask.order.replace('_', ' ')}"
    form = ask.form if isinstance(ask.form, str) else ask.form.kind
    return f"ask {ask.ask} ({len(step.who)}) by {prompt!r}, as {ask.label!r}, form {form}{hears}{order}"
