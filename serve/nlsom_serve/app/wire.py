"""Events, messages and verdicts as the JSON that clients get; causes and reasons are redacted."""

from __future__ import annotations

from typing import Any

from nlsom.answers import OpenTurn
from nlsom.event import Abstained, Asked, Decided, Event, Lagged, RoundClosed, Spoke, Started, Stopped
from nlsom.message import Message, Usage
from nlsom.verdict import Abstention, Verdict
from nlsom_serve.app.redact import redact


def verdict_json(verdict: Verdict) -> dict[str, Any]:
    """A verdict."""
    body = verdict.model_dump(mode="json")
    body["abstained"] = [abstention_json(one) for one in verdict.abstained]
    body["cut_short"] = redact(verdict.cut_short) if verdict.cut_short else None
    return body


def abstention_json(abstention: Abstention) -> dict[str, Any]:
    """An abstention."""
    return {**abstention.model_dump(mode="json"), "cause": redact(abstention.cause)}


def message_json(message: Message) -> dict[str, Any]:
    """A member's message."""
    said = message.said
    return {
        "sender": message.sender,
        "label": message.label,
        "phase": message.phase,
        "round": message.round,
        "text": said.text,
        "answer": said.answer,
        "ballot": said.ballot.model_dump(mode="json") if said.ballot else None,
        "confidence": said.confidence,
        "why": redact(said.why) if said.why else None,
        "usage": said.usage.model_dump(mode="json"),
    }


def turn_json(open_turn: OpenTurn) -> dict[str, Any]:
    """A turn that waits for a person's answer."""
    turn = open_turn.turn
    return {
        "key": turn.key,
        "member": turn.member.name,
        "phase": turn.phase,
        "round": turn.round,
        "ask": turn.ask,
        "form": turn.form.kind,
        "options": list(getattr(turn.form, "options", ())),
        "instruction": turn.form.instruct(),
        "deadline": open_turn.deadline,
    }


def event_json(event: Event, turn: OpenTurn | None = None) -> dict[str, Any]:
    """An event; `turn` is the open turn of an `asked` that waits for a person."""
    match event:
        case Started():
            task = event.task
            return {
                "society": event.society,
                "members": list(event.members),
                "question": task.question,
                "choices": list(task.choices),
                "context": task.context,
                "images": len(task.images),
                "seed": event.seed,
            }
        case Asked():
            asked = {"member": event.member, "phase": event.phase, "label": event.label, "round": event.round}
            return asked | {"waits": turn_json(turn) if turn else None}
        case Spoke():
            return message_json(event.message)
        case Abstained():
            return abstention_json(event.abstention)
        case RoundClosed():
            return event.model_dump(mode="json", exclude={"kind", "mindstorm"})
        case Decided():
            return verdict_json(event.verdict)
        case Stopped():
            return {"reason": redact(event.reason)}
        case Lagged():
            return {"missed": event.missed}


def usage_json(usages: list[Usage]) -> dict[str, Any]:
    """Token counts over all mindstorms of a request, in OpenAI's format."""
    total = sum(usages, Usage())
    body: dict[str, Any] = {
        "prompt_tokens": total.prompt_tokens,
        "completion_tokens": total.completion_tokens,
        "total_tokens": total.tokens,
    }
    if total.cached_tokens is not None:
        body["prompt_tokens_details"] = {"cached_tokens": total.cached_tokens}
    return body
