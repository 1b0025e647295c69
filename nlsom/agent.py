"""The contract of an agent: one method."""

from __future__ import annotations

import json
from typing import Protocol, runtime_checkable

from pydantic_core import PydanticSerializationError

from nlsom.form import Form, TextForm
from nlsom.message import Said, whole
from nlsom.turn import Turn


@runtime_checkable
class Agent(Protocol):
    """Anything that can be asked to speak.

    Optionally, an agent

    - has an `identity: str`: name, version, model and whatever else its replies depend on. It becomes part of
      the key of its turns;
    - has a `model`, which is opened with the society, once for all agents that share it;
    - is an async context manager, opened and closed with its society;
    - has `cost(turn)`, which says what a turn can cost at most, for budgets (`nlsom.budget.Priced`).
    """

    async def speak(self, turn: Turn) -> Said | None:
        """Answers a turn.

        Returns:
            What the agent says; None if it has nothing to say. An agent that cannot answer in the form that
            the turn asks for returns a `Said` whose `why` gives the reason, and never guesses.

        Raises:
            Exception: Any exception means that the agent failed. The society's file says whether its member
                then abstains or the mindstorm stops.
        """
        ...


def identity(agent: Agent) -> str:
    """An agent's `identity`; the name of its class if it declares none."""
    named = getattr(agent, "identity", None)
    return named if isinstance(named, str) else f"{type(agent).__module__}.{type(agent).__qualname__}"


def checked(said: object, form: Form) -> tuple[Said, bytes]:
    """Validates what an agent returned, reads the answer out of its words, and serialises it.

    Returns:
        The `Said`, with its answer or the reason why there is none; and its JSON.

    Raises:
        TypeError: The agent returned something else than a `Said`.
        ValidationError: A field of the `Said` has a wrong value, which copying it can bring about.
    """
    return serialised(_read(valid(said), form))


def valid(said: object) -> Said:
    """Validates what an agent returned; raises what `checked` raises."""
    if not isinstance(said, Said):
        raise TypeError(f"the agent returned {type(said).__name__}, not Said")
    return Said.__pydantic_validator__.validate_python(said.__dict__)


def serialised(said: Said) -> tuple[Said, bytes]:
    """Serialises what was said; lone surrogates, which cannot be encoded, are replaced."""
    try:
        return said, said.__pydantic_serializer__.to_json(said)
    except PydanticSerializationError:
        # Half a surrogate pair: what is left of an emoji when a reply is cut off inside it.
        body = whole(json.dumps(said.model_dump(), ensure_ascii=False)).encode()
        return Said.model_validate_json(body), body


def _read(said: Said, form: Form) -> Said:
    """Reads the answer out of the words, unless the agent gave one itself; sets `why` where it finds none.

    Free text that was not asked for an answer has none.
    """
    if (
        (isinstance(form, TextForm) and not form.short)
        or said.answer is not None
        or said.ballot is not None
        or said.why is not None
    ):
        return said
    reading = form.read(said.text)
    if reading.answer is None and reading.ballot is None:
        return said.model_copy(update={"why": reading.why})
    return said.model_copy(update={"answer": reading.answer, "ballot": reading.ballot})
