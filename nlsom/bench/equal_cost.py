"""The comparison of structures, each with a vote of equal cost."""

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
    """A structure and the vote of equal cost.

    Attributes:
        standing: The structure.
        rival: The largest vote that spends no more tokens.
        comparison: The structure against the vote.
        seconds: Per sample: the slowest member of each step, summed.
    """

    standing: Standing
    rival: Standing
    comparison: Comparison
    seconds: float


async def run_all(runner: Runner, structures: Structures, *, most: int = 64) -> list[Row]:
    """Runs all structures, and for each a vote without discussion that spends no more tokens.

    Votes are nested: the first five voters of a vote of seven are a vote of five, whose replies come from the
    trace. So all votes together cost no more than the largest one.

    Args:
        runner: Runs them; has the set and the folder.
        structures: Makes the societies.
        most: Maximum number of voters.

    Raises:
        UsageError: `Structures.all` or `Runner.run` raised it.
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
    """The rows for a run made by `run_all`, with p-values adjusted for multiple testing.

    Raises:
        UsageError: The run has no votes.
    """
    every = standings(folder)
    votes = sorted((one for one in every if one.name.startswith("vote@")), key=lambda one: one.tokens)
    if not votes:
        raise UsageError(f"{folder.path}: this run was not made by `nlsom bench structures`: it has no votes")
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
    """The rows as a Markdown table, with 95 % intervals."""
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
