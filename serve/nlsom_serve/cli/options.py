"""Options that several commands share."""

from __future__ import annotations

import dataclasses
import inspect
import os
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from nlsom.bus.nats import NatsBus
from nlsom.config import load, read_value, shipped
from nlsom.errors import MediaError, UsageError
from nlsom.media import FolderStore
from nlsom.society import Reach, Society
from nlsom.trace import SqliteTrace
from nlsom_agents.local.embed import Sentences
from nlsom_agents.local.embedded import Embedded
from nlsom_serve.cli.fetching import fetch
from nlsom_serve.cli.screen import err, escape
from nlsom_serve.cli.terminal import Terminal, people
from nlsom_societies.samples import NAMES, sample


def complete_society(incomplete: str) -> list[str]:
    """Names of installed societies, for the shell."""
    return [name for name in shipped() if name.startswith(incomplete)]


def complete_picture(incomplete: str) -> list[str]:
    """Names of the shipped pictures, once they are begun; else the shell completes files."""
    names = [f"sample:{name}" for name in NAMES]
    return [name for name in names if incomplete and name.startswith(incomplete)]


SocietyName = Annotated[
    str,
    typer.Argument(
        metavar="SOCIETY", help="An installed society, or a YAML file.", autocompletion=complete_society
    ),
]
SocietyNames = Annotated[
    list[str],
    typer.Argument(
        metavar="SOCIETY", help="Installed societies, or YAML files.", autocompletion=complete_society
    ),
]
Images = Annotated[
    list[str] | None,
    typer.Option(
        "--image",
        "-i",
        metavar="PATH_OR_URL",
        help=f"A picture; give it again for more. Shipped ones: {', '.join(f'sample:{n}' for n in NAMES)}.",
        autocompletion=complete_picture,
    ),
]
Models = Annotated[
    list[str] | None,
    typer.Option(
        "--model",
        "-m",
        metavar="NAME=URL[#MODEL]",
        help="Which model stands for a name of the society's (`nlsom societies show`): a server's URL, "
        "profile:NAME (`nlsom models up`), or an embedded model's name.",
    ),
]
Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "--set", "-s", metavar="KEY=VALUE", help="Overrides a field of the file, such as limits.tokens=5000."
    ),
]
Choices = Annotated[
    str | None,
    typer.Option("--choices", "-c", metavar="A,B,C", help="Options of a multiple choice, by commas."),
]
Extras = Annotated[
    list[str] | None,
    typer.Option(
        "--extra",
        metavar="KEY=VALUE",
        help="Anything else of the task: --extra 'evidence=[it rained, the lamp was out]' for witnesses.",
    ),
]
Seed = Annotated[int, typer.Option("--seed", help="The run's seed.")]
TraceFile = Annotated[
    Path | None,
    typer.Option("--trace", metavar="FILE", help="Keeps every outcome; run again, it goes on where it was."),
]
BusUrl = Annotated[
    str | None,
    typer.Option(
        "--bus",
        metavar="nats://HOST:PORT",
        help="Asks members that workers host there (`nlsom worker`), instead of hosting them here.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Prints one JSON object instead.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Prints the answer only.")]
RetryFailed = Annotated[
    bool, typer.Option("--retry-failed", help="With --trace: asks members again that abstained before.")
]


def spread(command: Callable[..., None]) -> Callable[..., None]:
    """Makes each field of a command's last parameter, a dataclass, an option of its own."""
    *own, last = inspect.signature(command, eval_str=True).parameters.values()
    options = last.annotation
    hints = get_type_hints(options, include_extras=True)
    spread_out = [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if field.default is dataclasses.MISSING else field.default,
            annotation=hints[field.name],
        )
        for field in dataclasses.fields(options)
    ]

    @wraps(command)
    def run(**given: Any) -> None:
        taken = {field.name: given.pop(field.name) for field in spread_out}
        command(**given, **{last.name: options(**taken)})

    parameters = [*own, *spread_out]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    run.__dict__["__signature__"] = inspect.Signature(parameters)
    return run


def read_extra(given: Sequence[str] | None) -> dict[str, Any]:
    """`KEY=VALUE` options by key.

    Raises:
        UsageError: One is not written so.
    """
    extra: dict[str, Any] = {}
    for option in given or ():
        key, equals, value = option.partition("=")
        if not equals or not key:
            raise UsageError(
                f"--extra {option}: write KEY=VALUE, such as 'evidence=[it rained, it was dark]'"
            )
        extra[key] = read_value(value, f"--extra {option}")
    return extra


def read_models(given: Sequence[str] | None) -> dict[str, str]:
    """`NAME=URL` options by name.

    Raises:
        UsageError: One is not written so.
    """
    models: dict[str, str] = {}
    for option in given or ():
        name, equals, where = option.partition("=")
        if not equals or not name or not where:
            raise UsageError(
                f"--model {option}: write NAME=URL[#MODEL], such as vlm=http://127.0.0.1:8000/v1"
            )
        models[name] = where
    return models


def read_choices(given: str | None) -> list[str]:
    """The options of a multiple choice.

    Raises:
        UsageError: There is one only, or one is there twice, so that no vote could tell which is meant.
    """
    options = [option.strip() for option in (given or "").split(",") if option.strip()]
    if twice := [option for option, number in Counter(options).items() if number > 1]:
        raise UsageError(f"--choices {given}: {twice[0]!r} is there more than once")
    if given is not None and len(options) < 2:
        raise UsageError(f"--choices {given}: write two options at least, by commas, such as cat,dog")
    return options


def picture(given: str) -> str:
    """A picture as the command line names it: `sample:cat` is one that is shipped.

    Raises:
        MediaError: There is no such file; better told now than after a model was fetched and loaded.
    """
    scheme, colon, name = given.partition(":")
    if colon and scheme == "sample":
        return str(sample(name))
    if "://" not in given and scheme.lower() != "data" and not os.path.exists(given):
        raise MediaError(f"{given}: no such file")
    return given


def fetch_missing(society: Society) -> None:
    """Fetches the embedded models that a society needs and that are not in the cache yet."""
    for model in {
        id(model): model for seat in society.seats if (model := getattr(seat.agent, "model", None))
    }.values():
        if isinstance(model, Embedded | Sentences) and (name := model.missing()) is not None:
            fetch(name)


def reach(bus: str | None) -> Reach | None:
    """What finds the members of a society on a bus, as `--bus` names it."""
    if bus is None:
        return None
    return lambda society: NatsBus(bus, society=society.name, digest=society.cast)


@asynccontextmanager
async def opened(
    society: str,
    *,
    models: Sequence[str] | None,
    overrides: Sequence[str] | None,
    trace: Path | None,
    retry_failed: bool,
    bus: str | None,
) -> AsyncGenerator[Society]:
    """A society from the options that all commands share, with its trace; both open."""
    store = SqliteTrace(trace) if trace is not None else None
    made = load(
        society,
        models=read_models(models),
        overrides=overrides or (),
        trace=store,
        media=FolderStore(store.media) if store is not None else None,
        retry_failed=retry_failed,
        bus=reach(bus),
    )
    if bus is None:
        fetch_missing(made)
    async with AsyncExitStack() as stack:
        if store is not None:
            await stack.enter_async_context(store)
        if here := list(people(made)):
            terminal = Terminal()
            for person in here:
                person.answers = terminal
        with err.status(f"opening {escape(made.name)} …"):  # loading a model takes seconds
            await stack.enter_async_context(made)
        yield made
