"""What clients are told of events, mindstorms and societies; words from below are redacted."""

from __future__ import annotations

from typing import Any

from nlsom.answers import OpenTurn
from nlsom.event import Abstained, Asked, Decided, Event, Lagged, RoundClosed, Spoke, Started, Stopped
from nlsom.message import Message, Usage
from nlsom.verdict import Abstention, Verdict
from nlsom_serve.app.redact import redact


def told_verdict(verdict: Verdict) -> dict[str, Any]:
    """A verdict."""
    told = verdict.model_dump(mode="json")
    told["abstained"] = [told_abstention(one) for one in verdict.abstained]
    told["cut_short"] = redact(verdict.cut_short) if verdict.cut_short else None
    return told


def told_abstention(abstention: Abstention) -> dict[str, Any]:
    """Who did not answer, and why."""
    return {**abstention.model_dump(mode="json"), "cause": redact(abstention.cause)}


def told_message(message: Message) -> dict[str, Any]:
    """What a member said."""
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


def told_turn(open_turn: OpenTurn) -> dict[str, Any]:
    """A turn that waits for a person."""
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


def told_event(event: Event, waits: OpenTurn | None = None) -> dict[str, Any]:
    """An event; an `asked` that waits for a person says what is wanted of them."""
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
            told = {"member": event.member, "phase": event.phase, "label": event.label, "round": event.round}
            return told | {"waits": told_turn(waits) if waits else None}
        case Spoke():
            return told_message(event.message)
        case Abstained():
            return told_abstention(event.abstention)
        case RoundClosed():
            return event.model_dump(mode="json", exclude={"kind", "mindstorm"})
        case Decided():
            return told_verdict(event.verdict)
        case Stopped():
            return {"reason": redact(event.reason)}
        case Lagged():
            return {"missed": event.missed}


def told_usage(usages: list[Usage]) -> dict[str, Any]:
    """Tokens of all members of all mindstorms of a request, as OpenAI tells them."""
    total = sum(usages, Usage())
    told: dict[str, Any] = {
        "prompt_tokens": total.prompt_tokens,
        "completion_tokens": total.completion_tokens,
        "total_tokens": total.tokens,
    }
    if total.cached_tokens is not None:
        told["prompt_tokens_details"] = {"cached_tokens": total.cached_tokens}
    return told
