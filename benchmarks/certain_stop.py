"""Calls saved by stopping a vote once it is decided, by electorate, agreement and concurrency.

    python benchmarks/certain_stop.py [--voters 9,33,129] [--runs 3] [--json]

Real mindstorms with `wait: certain`, whose voters are asked in turn, or together through a model with limited
concurrency. A share of the voters, the agreement, votes for the first option; the other votes are spread
evenly, and assigned to voters at random in each run. Calls in flight at the stop count as spent. Each winner
is checked against a count of all votes, and the usage against the calls made.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from dataclasses import dataclass
from statistics import fmean

from nlsom import Ask, Inline, Member, Said, Seat, Society, Turn, Usage, VerdictBy, VqaTask
from nlsom.message import Choice
from nlsom.model.limits import Limits
from nlsom.rules import Plurality
from nlsom.testing.voters import chance
from nlsom.verdict import Vote

LEVELS = (0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.9, 1.0)
AT_ONCE = (1, 4, 16, 64)
FLOORS = {2: 0.25, 4: 0.33}
"""Target by number of options: the share of calls saved with 129 voters in turn and 70 % agreement."""


@dataclass
class Voters:
    """The agent of all voters, behind a model with limited concurrency."""

    votes: dict[str, str]
    limits: Limits
    begun: int = 0

    async def speak(self, turn: Turn) -> Said:
        """Says the member's vote."""
        async with self.limits.slot():
            self.begun += 1
            await asyncio.sleep(0)
        return Said.words(self.votes[turn.member.name], usage=Usage(calls=1))


def electorate(voters: int, options: int, agreement: float, seed: str) -> dict[str, str]:
    """Votes by voter; a share of `agreement`, rounded, is for the first option."""
    leading = round(voters * agreement)
    votes = [0] * leading + [1 + at % (options - 1) for at in range(voters - leading)]
    order = sorted(range(voters), key=lambda at: chance(seed, at))
    return {f"voter.{at + 1}": f"option {votes[place]}" for at, place in enumerate(order)}


async def saved(votes: dict[str, str], options: int, at_once: int) -> int:
    """The number of calls saved in a mindstorm of these voters.

    Raises:
        AssertionError: The winner is not that of a full count, or the usage is wrong.
    """
    alternatives = tuple(f"option {at}" for at in range(options))
    agent = Voters(votes, Limits(at_once))
    order = "in_turn" if at_once == 1 else "together"
    society = Society(
        name="electorate",
        seats=[Seat(Member(name), agent) for name in votes],
        phases=[
            Ask(
                ask="everyone",
                prompt=Inline(text="Vote."),
                label="ballot",
                form="answer",
                order=order,
                wait="certain",
            )
        ],
        verdict=VerdictBy(Plurality(), "plurality"),
    )
    async with society:
        verdict = await society.ask(VqaTask(question="Which?", choices=alternatives))
    full = Plurality()([Vote(name, Choice(choice=vote)) for name, vote in votes.items()], alternatives)
    winners = verdict.tied or (verdict.answer,)
    if winners != full.winners:
        raise AssertionError(f"stopped with {winners}, the full count has {full.winners}")
    if not agent.begun == verdict.usage.calls == len(votes) - verdict.saved:
        raise AssertionError(
            f"{agent.begun} calls made, {verdict.usage.calls} counted, {verdict.saved} saved"
        )
    return verdict.saved


def main() -> int:
    """Prints the table; returns 1 if a target is missed."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--voters", default="9,33,129", help="comma-separated sizes (default: 9,33,129)")
    parser.add_argument("--runs", type=int, default=3, help="electorates drawn per cell (default: 3)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    table: list[dict[str, float]] = []
    for voters in map(int, given.voters.split(",")):
        for options in FLOORS:
            for agreement in LEVELS:
                for at_once in AT_ONCE:
                    if at_once >= voters:
                        continue
                    drawn = [
                        electorate(voters, options, agreement, f"{given.seed}, {run}")
                        for run in range(given.runs)
                    ]
                    shares = [asyncio.run(saved(votes, options, at_once)) / voters for votes in drawn]
                    table.append(
                        {
                            "voters": voters,
                            "options": options,
                            "agreement": agreement,
                            "at_once": at_once,
                            "saved": fmean(shares),
                            "least": min(shares),
                        }
                    )
    floored = [row for row in table if (row["voters"], row["at_once"], row["agreement"]) == (129, 1, 0.7)]
    missed = [row for row in floored if row["saved"] < FLOORS[int(row["options"])]]
    if given.json:
        print(
            json.dumps({"runs": given.runs, "table": table, "floors_reached": bool(floored) and not missed})
        )
        return 1 if missed else 0
    print(f"Share of calls saved, mean of {given.runs} electorates; the winners are those of all votes.")
    print("voters  options  agreement  " + "  ".join(_way(at_once) for at_once in AT_ONCE))
    cells = {(r["voters"], r["options"], r["agreement"], r["at_once"]): r["saved"] for r in table}
    for voters, options, agreement in dict.fromkeys(key[:3] for key in cells):
        found = [cells.get((voters, options, agreement, at_once)) for at_once in AT_ONCE]
        row = "  ".join(f"{'' if one is None else f'{one:.1%}':>10}" for one in found)
        print(f"{voters:6}  {options:7}  {agreement:9.0%}  {row}")
    return 1 if missed else 0


def _way(at_once: int) -> str:
    return "   in turn" if at_once == 1 else f"{at_once:>2} at once"


if __name__ == "__main__":
    sys.exit(main())
