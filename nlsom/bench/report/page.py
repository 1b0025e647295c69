"""The report of runs as one self-contained HTML file, without scripts."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from html import escape
from importlib.resources import files

from nlsom.bench.folder import RunFolder
from nlsom.bench.report import sections
from nlsom.bench.report.dialogues import dialogues
from nlsom.bench.report.facts import facts
from nlsom.bench.report.worth import recounted, redrawn
from nlsom.bench.standing import Standing
from nlsom.trace import SqliteTrace


async def page(
    folders: Sequence[RunFolder],
    every: Sequence[Standing],
    *,
    fresh: bool = False,
    samples: int = 16,
) -> str:
    """Makes the report.

    Args:
        folders: Folders of the runs.
        every: Their standings.
        fresh: Whether to run societies again without each member, for the members' worth.
        samples: Maximum number of samples to show.

    Raises:
        TraceError: A trace cannot be read.
        UsageError: `fresh` is set, and a society was built in Python.
    """
    known = {folder.name: folder for folder in folders}
    async with AsyncExitStack() as stack:
        traces = {
            name: await stack.enter_async_context(SqliteTrace(folder.trace, read_only=True))
            for name, folder in known.items()
        }
        found = [await facts(one, traces[one.run]) for one in every]
        worth = {one.name: await recounted(one, traces[one.run]) for one in every}
        shown = await dialogues(every, known, traces, samples)
    drawn = {one.name: await redrawn(one, known[one.run]) for one in every} if fresh else {}
    body = [
        _head(folders),
        sections.scores(every, found),
        sections.costs(every, found),
        sections.compared(every),
        sections.rounds(found),
        sections.calibrated(every),
        sections.kinds(every),
        sections.members(found, worth, drawn),
        sections.section("Samples", "Those on which the societies disagree most come first.", shown),
        _foot(folders),
    ]
    style = files("nlsom.bench.report").joinpath("style.css").read_text(encoding="utf-8")
    title = escape(", ".join(known))
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{style}</style></head><body>{''.join(body)}</body></html>\n"
    )


def _head(folders: Sequence[RunFolder]) -> str:
    runs: list[str] = []
    for folder in folders:
        config = folder.config()
        many = "all samples" if config.limit is None else f"{config.limit} samples"
        drawn = "" if config.sample_seed is None else f", drawn with seed {config.sample_seed}"
        seeds = "" if config.seeds == 1 else f", {config.seeds} seeds each"
        when = datetime.fromtimestamp(config.started, UTC).strftime("%Y-%m-%d %H:%M UTC")
        runs.append(f"{escape(folder.name)}: {escape(config.on)}, {many}{drawn}{seeds}; started {when}")
    names = escape(", ".join(folder.name for folder in folders))
    return f'<h1>Comparison of societies: {names}</h1><p class="note">{"<br>".join(runs)}</p>'


def _foot(folders: Sequence[RunFolder]) -> str:
    versions = [
        f"{escape(folder.name)}: "
        + ", ".join(f"{escape(k)} {escape(v)}" for k, v in folder.config().versions.items())
        for folder in folders
    ]
    return f"<footer>{'<br>'.join(versions)}</footer>"
