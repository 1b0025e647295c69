"""Baselines of equal cost: the rivals that a society has to beat for its discussion to be worthwhile."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from nlsom.agent import identity
from nlsom.bench.compare import Comparison, adjusted, check, compare
from nlsom.bench.report.text import table
from nlsom.bench.run import Contender, Runner
from nlsom.bench.standing import Standing, named
from nlsom.bench.stats import Interval, bootstrap
from nlsom.bench.structures import ANSWER, Cast, Structures
from nlsom.blueprint import Seat, VerdictBy
from nlsom.errors import UsageError
from nlsom.phase import Ask, Hears, Inline
from nlsom.rules import Decree
from nlsom.society import Society


@dataclass(frozen=True, slots=True)
class Baseline:
    """Results of a society and its rivals over the same samples.

    Attributes:
        society: The society.
        single: Its first mind (member with a model) alone, told what the members without a model see.
        consistency: Self-consistency: a vote over as many samples of that mind as the society's tokens buy.
        alone: Each distinct member by itself, by decreasing score. The best is chosen by the gold answers.
        oracle: Score when each sample is answered by a member that is right, if there is one.
        comparisons: The society against single, self-consistency and the best member.
    """

    society: Standing
    single: Standing
    consistency: Standing
    alone: tuple[Standing, ...]
    oracle: Interval
    comparisons: tuple[Comparison, ...]


async def baseline(runner: Runner, contender: Contender, *, most: int = 64) -> Baseline:
    """Runs a society and its rivals.

    Args:
        runner: Runs them; has the set and the folder.
        contender: The society.
        most: Maximum number of samples for self-consistency.

    Raises:
        UsageError: The society has no member with a model; or `Runner.run` raised it.
    """
    society = contender.society
    made = Structures(Cast.of(society), limits=society.limits, task=society.task)
    members = alone(society)
    first = [contender, Contender.of(made.single()), *map(Contender.of, members)]
    await runner.run(first)
    known = named(runner.folder, [one.told.name for one in first])
    whole, single = known[contender.told.name], known["single"]
    samples = min(most, max(1, int(whole.tokens / single.tokens))) if single.tokens else 1
    consistent = made.self_consistency(samples)
    await runner.run([Contender.of(consistent)])
    consistency = named(runner.folder, [consistent.name])[consistent.name]
    ranked = sorted((known[one.name] for one in members), key=lambda one: -one.interval().estimate)
    rivals = [single, consistency, *ranked[:1]]
    return Baseline(
        whole,
        single,
        consistency,
        tuple(ranked),
        oracle(ranked),
        tuple(adjusted([compare(whole, rival) for rival in rivals])),
    )


def alone(society: Society) -> list[Society]:
    """A society of one for each member; members that would say the same are taken once."""
    different: dict[Hashable, Seat] = {}
    for seat in society.seats:
        different.setdefault(_mind(seat), seat)
    return [_by_itself(society, seat) for seat in different.values()]


def _mind(seat: Seat) -> Hashable:
    """A key of everything that determines a member's replies when it is alone."""
    model = getattr(seat.agent, "model", None)
    # An agent with a model is determined by its identity and model; any other may have hidden state.
    agent = id(seat.agent) if model is None else (identity(seat.agent), id(model))
    return agent, seat.member.persona, seat.member.part


def _by_itself(society: Society, seat: Seat) -> Society:
    name = seat.member.name
    ask = Ask(
        ask=name,
        prompt=Inline(text=ANSWER),
        label="ballot",
        form="answer",
        hears=Hears(scope="none"),
        quorum=0,
    )
    return Society(
        name=f"alone:{name}",
        seats=[seat],
        phases=[ask],
        verdict=VerdictBy(Decree(), "decree", of=name),
        task=society.task,
        limits=society.limits,
    )


def oracle(every: Sequence[Standing]) -> Interval:
    """The lenient score when each sample gets the best score that any member has on it.

    Raises:
        UsageError: There are no members, or they were not run over the same samples.
    """
    if not every:
        raise UsageError("an oracle needs members to choose from")
    first = every[0]
    for other in every[1:]:
        check(first, other)
    return bootstrap(np.max([one.scores(samples=first.samples) for one in every], axis=0))


def markdown(found: Baseline) -> str:
    """The results as a Markdown table, with 95 % intervals."""
    comparisons = {comparison.other: comparison for comparison in found.comparisons}
    rows = [("society", found.society), ("single", found.single), ("self-consistency", found.consistency)]
    rows += [("best member" if not at else "member", one) for at, one in enumerate(found.alone)]
    cells: list[list[str]] = []
    for kind, one in rows:
        gain = comparisons.get(one.name)
        compared = ["", ""] if gain is None else [f"{gain.difference:+.3f}", f"{gain.adjusted:.3f}"]
        cost = [f"{one.tokens:.0f}", f"{one.calls:.1f}"]
        cells.append([f"{kind}: {one.name}", f"{one.interval():.3f}", *cost, *compared])
    cells.append(["oracle: any member alone", f"{found.oracle:.3f}", "", "", "", ""])
    return table(("", "score", "tokens", "calls", "society gains", "p (Holm)"), cells)
