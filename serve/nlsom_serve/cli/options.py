"""Options shared by several commands, and functions that parse them."""

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
    """Completes names of installed societies."""
    return [name for name in shipped() if name.startswith(incomplete)]


def complete_picture(incomplete: str) -> list[str]:
    """Completes names of shipped pictures; for an empty word, lets the shell complete files."""
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
        help=f"A picture; repeatable. Shipped ones: {', '.join(f'sample:{n}' for n in NAMES)}.",
        autocompletion=complete_picture,
    ),
]
Models = Annotated[
    list[str] | None,
    typer.Option(
        "--model",
        "-m",
        metavar="NAME=URL[#MODEL]",
        help="Sets one of the society's models (`nlsom societies show` lists them) to a server's URL, "
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
    typer.Option("--choices", "-c", metavar="A,B,C", help="Options of a multiple choice, comma-separated."),
]
Extras = Annotated[
    list[str] | None,
    typer.Option(
        "--extra",
        metavar="KEY=VALUE",
        help="Other data of the task, such as --extra 'evidence=[it rained, the lamp was out]'.",
    ),
]
Seed = Annotated[int, typer.Option("--seed", help="The run's seed.")]
TraceFile = Annotated[
    Path | None,
    typer.Option("--trace", metavar="FILE", help="Stores every outcome; run again to continue."),
]
BusUrl = Annotated[
    str | None,
    typer.Option(
        "--bus",
        metavar="nats://HOST:PORT",
        help="Asks members that workers (`nlsom worker`) host there, instead of hosting them here.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Prints JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Prints only the answer.")]
RetryFailed = Annotated[
    bool, typer.Option("--retry-failed", help="With --trace: asks members again that abstained earlier.")
]


def spread(command: Callable[..., None]) -> Callable[..., None]:
    """Turns each field of a command's last parameter, a dataclass, into an option of its own."""
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
    """Parses `KEY=VALUE` options.

    Raises:
        UsageError: An option has another format.
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
    """Parses `NAME=URL` options.

    Raises:
        UsageError: An option has another format.
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
    """Parses the options of a multiple choice.

    Raises:
        UsageError: There are fewer than two, or one is there twice, so that votes for it were ambiguous.
    """
    options = [option.strip() for option in (given or "").split(",") if option.strip()]
    if twice := [option for option, number in Counter(options).items() if number > 1]:
        raise UsageError(f"--choices {given}: {twice[0]!r} is there more than once")
    if given is not None and len(options) < 2:
        raise UsageError(f"--choices {given}: write at least two options, separated by commas: cat,dog")
    return options


def picture(given: str) -> str:
    """Resolves `sample:NAME`, and checks that a file exists before a model is downloaded and loaded.

    Raises:
        MediaError: There is no such file.
    """
    scheme, colon, name = given.partition(":")
    if colon and scheme == "sample":
        return str(sample(name))
    if "://" not in given and scheme.lower() != "data" and not os.path.exists(given):
        raise MediaError(f"{given}: no such file")
    return given


def fetch_missing(society: Society) -> None:
    """Downloads the embedded models that a society needs and that are not in the cache yet."""
    for model in {
        id(model): model for seat in society.seats if (model := getattr(seat.agent, "model", None))
    }.values():
        if isinstance(model, Embedded | Sentences) and (name := model.missing()) is not None:
            fetch(name)


def reach(bus: str | None) -> Reach | None:
    """A function that makes the NATS bus for a society; None without `--bus`."""
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
    """Loads and opens a society and its trace, from the options that `ask` and `caption` share."""
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
        if humans := list(people(made)):
            terminal = Terminal()
            for human in humans:
                human.answers = terminal
        with err.status(f"opening {escape(made.name)} …"):  # loading a model takes seconds
            await stack.enter_async_context(made)
        yield made
