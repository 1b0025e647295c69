"""What servers say they serve, and what their models can do."""

from __future__ import annotations

import asyncio
import dataclasses
import re
from dataclasses import dataclass
from typing import Any, cast

from nlsom.errors import ModelError, ModelUnavailable, NlsomError, UsageError
from nlsom.model.contract import Settings
from nlsom.model.exchange import Exchange, RefusedError
from nlsom.model.replicas import Replica
from nlsom.model.wire import (
    Constraints,
    MalformedError,
    chat_body,
    error_text,
    object_in,
    picture_part,
    refusal,
)

_WHITE = (  # 64 x 64 pixels as PNG: models that see want some tens of them
    "data:image/png;base64,"
    "iVBORw0KGgoAAAANSUhEUgAAAEAAAABACAAAAACPAi4CAAAAK0lEQVR42u3MMREAAAgEoNf+nTWEmwcBqMlNRyAQCAQCgUAgEAgE"
    "AsHzYAFQLQF/OJ8+2wAAAABJRU5ErkJggg=="
)


@dataclass(frozen=True, slots=True)
class Served:
    """What a server says of a model in `GET /v1/models`.

    Attributes:
        name: Its name in requests.
        root: The name of what it was made from, if different; never the path of a folder.
        context: Longest prompt and reply together, in tokens; None if the server does not say.
        engine: Its owner by `owned_by`: `vllm`, `llamacpp`, `library` (Ollama), `openai`, …
        listed: Names of all models that the server lists.
    """

    name: str
    root: str | None
    context: int | None
    engine: str
    listed: tuple[str, ...] = ()

    @property
    def constraints(self) -> Constraints:
        """The constraints that this engine understands; `none` for an unknown one."""
        if self.engine == "vllm":
            return "vllm"
        return "json_schema" if self.engine in ("llamacpp", "library") else "none"


async def discover(exchange: Exchange, name: str | None) -> Served:
    """Asks all servers of an exchange at once what they serve.

    Args:
        exchange: An open exchange.
        name: The name of the model; None if each server has only one.

    Returns:
        The model that all servers which answer have in common, with the shortest context among them.

    Raises:
        ModelUnavailable: No server answers.
        ModelError: A server refuses to answer.
        UsageError: They serve several models and no name is given, or different models under the name.
    """
    async with asyncio.TaskGroup() as group:
        asked = [group.create_task(_ask(exchange, replica, name)) for replica in exchange.replicas]
    answers = [task.result() for task in asked]
    found = [answer for answer in answers if isinstance(answer, Served)]
    # A server that is away may come back; any other error is there to stay.
    for error in answers:
        if isinstance(error, NlsomError) and not (found and isinstance(error, ModelUnavailable)):
            raise error
    kinds = sorted({f"{one.name} ({one.root or one.name})" for one in found})
    if len(kinds) > 1:
        raise UsageError(f"servers that should serve one model serve several: {', '.join(kinds)}")
    known = [one.context for one in found if one.context is not None]
    return dataclasses.replace(found[0], context=min(known, default=None))


async def _ask(exchange: Exchange, replica: Replica, name: str | None) -> Served | NlsomError:
    """What one server serves, or the error: other servers may still answer."""
    try:
        models = await exchange.send("GET", "/models", read=read_served, at=replica)
    except RefusedError as refused:
        if refused.status in (404, 405) and name is not None:
            return Served(name, root=None, context=None, engine="")
        return ModelError(
            f"{replica.url}/models answered {refused.status}: {error_text(refused.body)}; "
            "does the address end in /v1?"
        )
    except NlsomError as error:
        return error
    if name is None:
        if len(models) == 1:
            return models[0]
        return UsageError(
            f"{replica.url} serves {_names(models[0].listed if models else ())}; say which (`model`)"
        )
    # Some servers take names that they do not list (Ollama does); others answer them with 404 later.
    named = [model for model in models if model.name == name]
    if named or not models:
        return named[0] if named else Served(name, root=None, context=None, engine="")
    return dataclasses.replace(models[0], name=name, root=None, context=None)


async def takes_pictures(exchange: Exchange, served: Served) -> bool:
    """Finds out whether a model takes pictures, by asking it about a white square.

    Raises:
        ModelUnavailable: The server has no such model, or cannot be reached.
        ModelError: What it sent could not be read as an answer.
    """
    body = chat_body(
        served.name,
        "What is this?",
        [picture_part(_WHITE)],
        constraint=None,
        max_tokens=1,
        settings=Settings(),
        seed=0,
        constraints="none",
    )
    try:
        await exchange.send("POST", "/chat/completions", body, read=len, final=(500,))
    except RefusedError as refused:
        if refused.status == 404:
            raise unlisted(served, refused) or refusal(
                refused.body,
                status=refused.status,
                where=refused.url,
                model=served.name,
                prompt="",
                reply=1,
                context=served.context,
            ) from None
        return False
    return True


def unlisted(served: Served, refused: RefusedError) -> ModelUnavailable | None:
    """The error for a 404 about a model that the server does not list; None for any other refusal."""
    if refused.status != 404 or served.name in served.listed:
        return None
    serves = f"it serves {_names(served.listed)}" if served.listed else "does the address end in /v1?"
    return ModelUnavailable(f"{refused.url} has no model {served.name!r}; {serves}")


def _names(listed: tuple[str, ...]) -> str:
    """The first names of models, for a message."""
    return (", ".join(listed[:12]) or "none") + (", …" if len(listed) > 12 else "")


def read_served(body: bytes) -> tuple[Served, ...]:
    """Reads the answer of `GET /v1/models`.

    Raises:
        MalformedError: It is not such an answer.
    """
    listed = object_in(body).get("data")
    if not isinstance(listed, list):
        raise MalformedError("it lists no models under `data`")
    served: list[Served] = []
    for entry in cast("list[Any]", listed):
        if not isinstance(entry, dict) or not isinstance(cast("dict[str, Any]", entry).get("id"), str):
            raise MalformedError("a model without an `id`")
        fields = cast("dict[str, Any]", entry)
        name, root, context = fields["id"], fields.get("root"), fields.get("max_model_len")
        named = _base(root) if isinstance(root, str) else None
        served.append(
            Served(
                name=name,
                root=named if named != name else None,
                context=context if isinstance(context, int) else None,
                engine=str(fields.get("owned_by", "")),
            )
        )
    listed_names = tuple(model.name for model in served)
    return tuple(dataclasses.replace(model, listed=listed_names) for model in served)


def _base(root: str) -> str:
    return re.split(r"[/\\]", root.rstrip("/\\"))[-1] if re.match(r"[/\\~.]|[A-Za-z]:", root) else root
