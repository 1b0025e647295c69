"""The table of structures, each beside a vote that spends as many tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nlsom.bench.compare import Comparison, adjusted, compare
from nlsom.bench.folder import RunFolder
from nlsom.bench.report import text
from nlsom.bench.report.facts import facts
from nlsom.bench.run import Contender, Runner
from nlsom.bench.standing import Standing, named, standings
from nlsom.bench.structures import Structures
from nlsom.errors import UsageError
from nlsom.trace import SqliteTrace


@dataclass(frozen=True, slots=True)
class Row:
    """A structure beside a vote of as many tokens.

    Attributes:
        standing: The structure.
        rival: The largest vote that spends no more.
        comparison: Of both.
        seconds: A sample, along the slowest member of every step.
    """

    standing: Standing
    rival: Standing
    comparison: Comparison
    seconds: float


async def run_all(runner: Runner, structures: Structures, *, most: int = 64) -> list[Row]:
    """Runs every structure, and beside each a vote without talk that spends as many tokens.

    Votes are nested: the vote of five is the vote of seven without its last two, and takes their replies from
    the trace. So all votes together cost no more than the largest.

    Args:
        runner: Where and over what.
        structures: The structures.
        most: Voters at most.

    Raises:
        UsageError: As of `Structures.all` and `Runner.run`.
    """
    talking = structures.all()
    minds = len(structures.cast.minds)
    everyone = structures.vote(minds)
    await runner.run([Contender.of(society) for society in (*talking, everyone)])
    known = named(runner.folder, [society.name for society in (*talking, everyone)])
    a_vote = known[everyone.name].tokens / minds
    spent = [known[society.name].tokens for society in talking]
    sizes = {min(most, max(1, int(tokens / a_vote))) if a_vote else minds for tokens in spent}
    votes = [structures.vote(size) for size in sorted(sizes - {minds}, reverse=True)]
    votes.append(structures.self_consistency(max(sizes)))
    await runner.run([Contender.of(society) for society in votes])
    return await table(runner.folder)


async def table(folder: RunFolder) -> list[Row]:
    """The table of a run that `run_all` made: p-values adjusted for being many.

    Raises:
        UsageError: The run holds no votes.
    """
    every = standings(folder)
    votes = sorted((one for one in every if one.name.startswith("vote@")), key=lambda one: one.tokens)
    if not votes:
        raise UsageError(f"{folder.path}: is not a run of `nlsom bench structures`: it has no votes")
    pairs = [
        (one, next((vote for vote in reversed(votes) if vote.tokens <= one.tokens + 1e-6), votes[0]))
        for one in every
        if one not in votes
    ]
    compared = adjusted([compare(one, rival) for one, rival in pairs])
    async with SqliteTrace(folder.trace, read_only=True) as trace:
        seconds = [(await facts(one, trace)).path for one, _ in pairs]
    return [
        Row(one, rival, comparison, path)
        for (one, rival), comparison, path in zip(pairs, compared, seconds, strict=True)
    ]


def markdown(rows: Sequence[Row]) -> str:
    """The table in Markdown, intervals at 95 %."""
    head = ("structure", "score", "tokens", "calls", "seconds", "equal-cost vote", "gain over it", "p (Holm)")
    cells = [
        [
            row.standing.name,
            f"{row.standing.interval():.3f}",
            f"{row.standing.tokens:.0f}",
            f"{row.standing.calls:.1f}",
            f"{row.seconds:.1f}",
            f"{row.rival.name}: {row.rival.interval().estimate:.3f} at {row.rival.tokens:.0f}",
            f"{row.comparison.difference:+.3f}",
            f"{row.comparison.adjusted:.3f}",
        ]
        for row in rows
    ]
    return text.table(head, cells)
