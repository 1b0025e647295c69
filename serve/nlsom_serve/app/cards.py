"""Builds the response bodies that describe mindstorms, running or past."""

from __future__ import annotations

import json
from typing import Any

from pydantic import JsonValue

from nlsom.event import Spoke
from nlsom.member import wire_id
from nlsom.trace import Header
from nlsom.trace.stored import read_stored
from nlsom.verdict import Verdict
from nlsom_serve.app.errors import ApiError, not_found
from nlsom_serve.app.house import House
from nlsom_serve.app.ledger import Entry
from nlsom_serve.app.past import recall
from nlsom_serve.app.redact import redact
from nlsom_serve.app.replies import MindstormCard, MindstormDetail, OpenTurnCard
from nlsom_serve.app.run import Run
from nlsom_serve.app.wire import message_json, turn_json, verdict_json


async def header_of(house: House, id: str) -> Header:
    """The header of a mindstorm.

    Raises:
        ApiError: 404: there is no such mindstorm.
    """
    header = await house.trace.header(id)
    if header is None:
        raise _no_mindstorm()
    return header


def _no_mindstorm() -> ApiError:
    return not_found("there is no mindstorm with this id", code="mindstorm_not_found")


def list_field(task: JsonValue, name: str) -> list[Any]:
    """A list in a stored task; empty if it is absent."""
    value = task.get(name) if isinstance(task, dict) else None
    return value if isinstance(value, list) else []


def card_of_run(run: Run) -> MindstormCard:
    """A card of a mindstorm that runs or is queued."""
    return MindstormCard(
        id=run.id,
        state=run.state,
        society=run.society_id,
        question=run.task.question,
        choices=list(run.task.choices),
        images=len(run.task.images),
        seed=run.seed,
        answer=run.verdict.answer if run.verdict else None,
        reason=redact(str(run.error)) if run.error else None,
    )


async def card_of(house: House, header: Header, verdict: Verdict | None = None) -> MindstormCard:
    """A card of any mindstorm in the trace; its verdict is read if none is given."""
    run = house.running(header.mindstorm)
    if run is not None:
        return card_of_run(run).model_copy(update={"started": header.started})
    verdict = verdict or await verdict_of(house, header.mindstorm)
    entry = await house.entry(header.mindstorm) if verdict is None else None
    state = "decided" if verdict else "stopped" if entry and entry.state == "stopped" else "cancelled"
    task = header.task if isinstance(header.task, dict) else {}
    return MindstormCard(
        id=header.mindstorm,
        state=state,
        society=wire_id(header.society),
        question=str(task.get("question", "")),
        choices=[str(one) for one in list_field(task, "choices")],
        images=len(list_field(task, "images")),
        seed=header.seed,
        started=header.started,
        answer=verdict.answer if verdict else None,
        reason=(entry.reason or None) if entry else None,
    )


async def verdict_of(house: House, id: str) -> Verdict | None:
    """The verdict of a mindstorm, if it reached one."""
    record = await house.trace.verdict(id)
    return read_stored(Verdict, record.body) if record is not None else None


def _from_ledger(entry: Entry) -> MindstormDetail:
    """A mindstorm that is not in the trace: it is queued, or ended before its first turn."""
    task = json.loads(entry.task)
    return MindstormDetail(
        id=entry.id,
        state="queued" if entry.state == "open" else entry.state,
        society=entry.society,
        question=task["question"],
        choices=task["choices"],
        images=len(task["images"]),
        seed=entry.seed,
        reason=entry.reason or None,
        messages=[],
        waiting=[],
        verdict=None,
    )


async def detail_of(house: House, id: str) -> MindstormDetail:
    """A mindstorm with everything that was said.

    Raises:
        ApiError: 404: there is no such mindstorm.
    """
    run = house.running(id)
    header = await house.trace.header(id)
    if header is None and run is None:
        entry = await house.entry(id)
        if entry is None:
            raise _no_mindstorm()
        return _from_ledger(entry)
    seen, verdict = (run.seen, run.verdict) if run is not None else await recall(house.trace, id)
    if header is None:
        assert run is not None
        card = card_of_run(run)
    else:
        card = await card_of(house, header, verdict)
    return MindstormDetail(
        **card.model_dump(),
        messages=[message_json(one.event.message) for one in seen if isinstance(one.event, Spoke)],
        waiting=[OpenTurnCard(**turn_json(turn)) for turn in run.waiting()] if run is not None else [],
        verdict=verdict_json(verdict) if verdict is not None else None,
    )
