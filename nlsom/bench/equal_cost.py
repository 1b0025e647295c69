"""The table of structures, each beside a vote that spends as many tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nlsom.bench.compare import Comparison, adjusted, compare
from nlsom.bench.run import Contender, Runner
from nlsom.bench.standing import Standing, standings
from nlsom.bench.structures import Structures


@dataclass(frozen=True, slots=True)
class Row:
    """A structure beside a vote of as many tokens.

    Attributes:
        standing: The structure.
        rival: The vote.
        comparison: Of both; None for the vote itself.
    """

    standing: Standing
    rival: Standing | None
    comparison: Comparison | None


async def run_all(runner: Runner, structures: Structures, *, most: int = 64) -> list[Row]:
    """Runs every structure, and beside each a vote without talk that spends as many tokens.

    Votes are nested: the vote of five is the vote of seven without its last two, and takes their replies from
    the trace. So all votes together cost no more than the largest.

    Args:
        runner: Where and over what.
        structures: The structures.
        most: Voters at most.

    Raises:
        UsageError: As of `Runner.run`.
    """
    talking = list(structures.all())
    await runner.run([Contender.of(society) for society in talking])
    minds = len(structures.cast.minds)
    await runner.run([Contender.of(structures.vote(minds))])
    known = {one.name: one for one in standings(runner.folder)}
    a_vote = known[f"vote@{minds}"].tokens / minds
    sizes = {
        society.name: min(most, max(1, int(known[society.name].tokens / a_vote))) if a_vote else minds
        for society in talking
    }
    largest = max(sizes.values())
    votes = [structures.vote(size) for size in sorted({*sizes.values()} - {minds}, reverse=True)]
    await runner.run([Contender.of(society) for society in votes])
    await runner.run([Contender.of(structures.self_consistency(largest))])
    return rows(standings(runner.folder), sizes, f"self-consistency@{largest}", f"vote@{minds}")


def rows(every: Sequence[Standing], sizes: Mapping[str, int], *others: str) -> list[Row]:
    """The table: structures beside the votes of equal cost, with p-values adjusted; then the others."""
    known = {one.name: one for one in every}
    pairs = [(known[name], known[f"vote@{size}"]) for name, size in sizes.items()]
    pairs += [(known[name], known[f"vote@{max(sizes.values())}"]) for name in others[:1]]
    compared = adjusted([compare(one, rival) for one, rival in pairs])
    found = [Row(one, rival, comparison) for (one, rival), comparison in zip(pairs, compared, strict=True)]
    return [*found, *(Row(known[name], None, None) for name in others[1:])]


def markdown(table: Sequence[Row]) -> str:
    """The table in Markdown, intervals at 95 %."""
    head = "| structure | score | tokens | calls | seconds | equal-cost vote | difference | p (Holm) |"
    lines = [head, "|---|---|---|---|---|---|---|---|"]
    for row in table:
        one, rival, comparison = row.standing, row.rival, row.comparison
        score = one.interval()
        cells = [one.name, f"{score.estimate:.3f} [{score.low:.3f}, {score.high:.3f}]"]
        cells += [f"{one.tokens:.0f}", f"{one.calls:.1f}", f"{one.seconds:.1f}"]
        if rival is not None and comparison is not None:
            gain = comparison.difference
            cells.append(f"{rival.name}: {rival.interval().estimate:.3f} at {rival.tokens:.0f}")
            cells.append(f"{gain.estimate:+.3f} [{gain.low:+.3f}, {gain.high:+.3f}]")
            cells.append(f"{comparison.adjusted:.3f}")
        else:
            cells += ["", "", ""]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)
