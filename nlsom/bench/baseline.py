"""The rivals of a society at equal cost: what it has to beat before its talk is worth anything."""

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
    """A society and its rivals over the same samples.

    Attributes:
        society: The society.
        single: Its first mind alone, told what the members without a model see.
        consistency: So many samples of that mind, and a vote, as the society's tokens buy.
        alone: Every different member by itself, the best first; it is chosen with the gold answers in hand.
        oracle: Score of one who always follows a member that is right, if any is.
        comparisons: The society against single, self-consistency and best member.
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
        runner: Where and over what.
        contender: The society.
        most: Samples of self-consistency at most.

    Raises:
        UsageError: The society has no member with a model; or as of `Runner.run`.
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
    """A society of one for every member; members who would say the same are one."""
    different: dict[Hashable, Seat] = {}
    for seat in society.seats:
        different.setdefault(_mind(seat), seat)
    return [_by_itself(society, seat) for seat in different.values()]


def _mind(seat: Seat) -> Hashable:
    """What the words of a member by itself depend on."""
    model = getattr(seat.agent, "model", None)
    # Behind a model there is nothing but its identity; an agent of another kind may keep more to itself.
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
    """The lenient score of one who always follows the member that is right, sample by sample.

    Raises:
        UsageError: There is none, or they were not run over the same samples.
    """
    if not every:
        raise UsageError("an oracle needs members to choose from")
    first = every[0]
    for other in every[1:]:
        check(first, other)
    return bootstrap(np.max([one.scores(samples=first.samples) for one in every], axis=0))


def markdown(found: Baseline) -> str:
    """The table in Markdown, intervals at 95 %."""
    told = {comparison.other: comparison for comparison in found.comparisons}
    rows = [("society", found.society), ("single", found.single), ("self-consistency", found.consistency)]
    rows += [("best member" if not at else "member", one) for at, one in enumerate(found.alone)]
    cells: list[list[str]] = []
    for kind, one in rows:
        gain = told.get(one.name)
        compared = ["", ""] if gain is None else [f"{gain.difference:+.3f}", f"{gain.adjusted:.3f}"]
        cost = [f"{one.tokens:.0f}", f"{one.calls:.1f}"]
        cells.append([f"{kind}: {one.name}", f"{one.interval():.3f}", *cost, *compared])
    cells.append(["oracle: any member alone", f"{found.oracle:.3f}", "", "", "", ""])
    return table(("", "score", "tokens", "calls", "society gains", "p (Holm)"), cells)
