"""`nlsom ask` and `nlsom caption`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from nlsom.errors import NoVerdict
from nlsom.verdict import Verdict
from nlsom_serve.cli.options import (
    AsJson,
    BusUrl,
    Choices,
    Extras,
    Images,
    Models,
    Overrides,
    Quiet,
    RetryFailed,
    Seed,
    SocietyName,
    TraceFile,
    opened,
    picture,
    read_choices,
    read_extra,
)
from nlsom_serve.cli.screen import Dialogue, out, print_json, show_verdict, tame


def ask(
    society: SocietyName,
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="What is asked.")],
    image: Images = None,
    choices: Choices = None,
    model: Models = None,
    set: Overrides = None,
    extra: Extras = None,
    seed: Seed = 0,
    trace: TraceFile = None,
    retry_failed: RetryFailed = False,
    bus: BusUrl = None,
    json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Asks a society a question, and shows it think.

    Example: `nlsom ask vqa-monarchy "What animal is this?" --image cat.jpg --choices cat,dog,horse,bird`
    """
    if not question.strip():
        raise typer.BadParameter("the question is empty")
    _run(
        society,
        question,
        image,
        read_choices(choices),
        model,
        set,
        read_extra(extra),
        seed,
        trace,
        retry_failed,
        bus,
        json,
        quiet,
    )


def caption(
    society: SocietyName,
    image: Images = None,
    model: Models = None,
    set: Overrides = None,
    extra: Extras = None,
    seed: Seed = 0,
    trace: TraceFile = None,
    retry_failed: RetryFailed = False,
    bus: BusUrl = None,
    json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Lets a society write the caption of a picture.

    Example: `nlsom caption caption-monarchy --image coffee.jpg`
    """
    if not image:
        raise typer.BadParameter("a caption needs a picture: --image PATH_OR_URL")
    _run(society, None, image, (), model, set, read_extra(extra), seed, trace, retry_failed, bus, json, quiet)


def _run(
    society: str,
    question: str | None,
    images: Sequence[str] | None,
    choices: Sequence[str],
    models: Sequence[str] | None,
    overrides: Sequence[str] | None,
    extra: Mapping[str, Any],
    seed: int,
    trace: Path | None,
    retry_failed: bool,
    bus: str | None,
    as_json: bool,
    quiet: bool,
) -> None:
    pictures = [picture(one) for one in images or ()]

    async def work() -> Verdict:
        async with opened(
            society, models=models, overrides=overrides, trace=trace, retry_failed=retry_failed, bus=bus
        ) as made:
            task = await made.make_task(question, images=pictures, choices=choices, extra=extra)
            if as_json or quiet:
                return await made.ask(task, seed=seed)
            dialogue = Dialogue()
            async with made.mindstorm(task, seed=seed) as storm:
                async for event in storm:
                    dialogue.show(event)
                return await storm.verdict()

    verdict = asyncio.run(work())
    if as_json:
        print_json(verdict.model_dump(mode="json"))
    elif quiet:
        out.print(tame(verdict.answer or ""), markup=False, soft_wrap=True)
    else:
        out.print()
        show_verdict(verdict)
    if verdict.answer is None:
        raise typer.Exit(NoVerdict.exit_code)
