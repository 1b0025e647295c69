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

    An agent may also have

    - `identity: str`: name, version, model and whatever else its replies depend on; part of the key of its
      turns;
    - `model`: a model that is opened with the society, once for all agents that share it;
    - be an async context manager, opened and closed with its society;
    - `cost(turn)`: the most that a turn can cost, for budgets (`nlsom.budget.Priced`).
    """

    async def speak(self, turn: Turn) -> Said | None:
        """Answers a turn.

        Returns:
            What is said, or None for "nothing to say". What cannot be answered in the form that the turn
            asks for is a `Said` whose `why` gives the reason: an abstention, never a guess.

        Raises:
            Exception: Any; the society's file says whether the member then abstains or the run stops.
        """
        ...


def identity(agent: Agent) -> str:
    """What an agent's replies depend on, as a part of the key of its turns."""
    named = getattr(agent, "identity", None)
    return named if isinstance(named, str) else f"{type(agent).__module__}.{type(agent).__qualname__}"


def checked(said: object, form: Form) -> tuple[Said, bytes]:
    """What an agent returned, with its answer read, and serialised.

    Raises:
        TypeError: It is nothing that an agent may return.
        ValidationError: It is a `Said` that could not be read again: copied with a wrong value, or extended.
    """
    return serialised(_read(valid(said), form))


def valid(said: object) -> Said:
    """What an agent returned, if it is what an agent may return; raises as `checked` does."""
    if not isinstance(said, Said):
        raise TypeError(f"the agent returned {type(said).__name__}, not Said")
    return Said.__pydantic_validator__.validate_python(said.__dict__)


def serialised(said: Said) -> tuple[Said, bytes]:
    """What was said, in characters that can be encoded, and its JSON."""
    try:
        return said, said.__pydantic_serializer__.to_json(said)
    except PydanticSerializationError:
        # Half a surrogate pair, such as a model cut off within an emoji leaves behind.
        body = whole(json.dumps(said.model_dump(), ensure_ascii=False)).encode()
        return Said.model_validate_json(body), body


def _read(said: Said, form: Form) -> Said:
    """Reads the answer out of the words of an agent that gave none itself; what cannot be read says why.

    Free text that is not asked for an answer has none.
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
