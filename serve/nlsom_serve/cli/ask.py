"""`nlsom ask` and `nlsom caption`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

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
    spread,
)
from nlsom_serve.cli.screen import Dialogue, out, print_json, show_verdict, tame


@dataclass(frozen=True, slots=True, kw_only=True)
class AskOptions:
    """Options of `ask` and `caption`."""

    image: Images = None
    model: Models = None
    set: Overrides = None
    extra: Extras = None
    seed: Seed = 0
    trace: TraceFile = None
    retry_failed: RetryFailed = False
    bus: BusUrl = None
    json: AsJson = False
    quiet: Quiet = False


@spread
def ask(
    society: SocietyName,
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="The question.")],
    choices: Choices = None,
    *,
    options: AskOptions,
) -> None:
    """Asks a society a question, and shows its dialogue and verdict.

    Example: `nlsom ask vqa-monarchy "What animal is this?" --image sample:cat --choices cat,dog,horse,bird`
    """
    if not question.strip():
        raise typer.BadParameter("the question is empty")
    _run(society, question, read_choices(choices), options)


@spread
def caption(society: SocietyName, *, options: AskOptions) -> None:
    """Lets a society write a caption for a picture.

    Example: `nlsom caption caption-monarchy --image sample:coffee`
    """
    if not options.image:
        raise typer.BadParameter("a caption needs a picture: --image PATH_OR_URL")
    _run(society, None, (), options)


def _run(society: str, question: str | None, choices: Sequence[str], options: AskOptions) -> None:
    pictures = [picture(one) for one in options.image or ()]
    extra = read_extra(options.extra)

    async def work() -> Verdict:
        async with opened(
            society,
            models=options.model,
            overrides=options.set,
            trace=options.trace,
            retry_failed=options.retry_failed,
            bus=options.bus,
        ) as made:
            task = await made.make_task(question, images=pictures, choices=choices, extra=extra)
            if options.json or options.quiet:
                return await made.ask(task, seed=options.seed)
            dialogue = Dialogue()
            async with made.mindstorm(task, seed=options.seed) as storm:
                async for event in storm:
                    dialogue.show(event)
                return await storm.verdict()

    verdict = asyncio.run(work())
    if options.json:
        print_json(verdict.model_dump(mode="json"))
    elif options.quiet:
        out.print(tame(verdict.answer or ""), markup=False, soft_wrap=True)
    else:
        out.print()
        show_verdict(verdict)
    if verdict.answer is None:
        raise typer.Exit(NoVerdict.exit_code)
