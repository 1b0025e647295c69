"""Calls that a certain stop saves, over levels of agreement: `python benchmarks/certain_stop.py [--json]`.

So many voters are asked in seeded order, some at a time, until the votes still to come cannot change the
winner. Of them, just the share that a level says would vote for the leader; the others are spread evenly. All
votes that were asked for count as calls. The winners are checked against the full count.
"""

import argparse
import json
import sys
from statistics import fmean

from nlsom.message import Choice
from nlsom.rules import Plurality
from nlsom.testing.voters import chance
from nlsom.verdict import Vote

LEVELS = (0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.9, 1.0)
FLOORS = {2: 0.25, 4: 0.33}
"""Share of calls to be saved at least, at 70 % agreement among 129 voters asked one by one."""


def electorate(voters: int, options: int, agreement: float) -> list[Vote]:
    """Votes of which a share of `agreement`, rounded, goes to the first option."""
    leading = round(voters * agreement)
    places = [0] * leading + [1 + at % (options - 1) for at in range(voters - leading)]
    return [Vote(f"voter.{at}", Choice(choice=f"option {place}")) for at, place in enumerate(places)]


def calls(votes: list[Vote], options: int, batch: int, seed: str) -> int:
    """Calls spent until it is settled.

    Raises:
        AssertionError: The winners are not those of the full count.
    """
    rule, alternatives = Plurality(), [f"option {at}" for at in range(options)]
    order = sorted(votes, key=lambda vote: chance(seed, vote.voter))
    heard = 0
    while not rule.settled(order[:heard], [None] * (len(order) - heard), alternatives):
        heard = min(heard + batch, len(order))
    early, full = rule(order[:heard], alternatives).winners, rule(votes, alternatives).winners
    if early != full:
        raise AssertionError(f"seed {seed}: stopped with {early}, the full count has {full}")
    return heard


def main() -> int:
    """Prints the table; 1 if a floor is not reached."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--voters", type=int, default=129)
    parser.add_argument("--batch", type=int, default=1, help="voters asked at a time (default: 1)")
    parser.add_argument("--runs", type=int, default=50, help="orders tried at each level (default: 50)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    seeds = [f"{given.seed}, order {at}" for at in range(given.runs)]
    table: list[dict[str, float]] = []
    for options in FLOORS:
        for agreement in LEVELS:
            votes = electorate(given.voters, options, agreement)
            spent = [calls(votes, options, given.batch, seed) for seed in seeds]
            saved = 1 - fmean(spent) / given.voters
            least = 1 - max(spent) / given.voters
            table.append({"options": options, "agreement": agreement, "saved": saved, "least": least})
    floors_apply = given.voters == 129 and given.batch == 1
    missed = [
        row
        for row in table
        if floors_apply and row["agreement"] == 0.7 and row["saved"] < FLOORS[int(row["options"])]
    ]
    if given.json:
        print(
            json.dumps(
                {**vars(given), "table": table, "floors_reached": not missed if floors_apply else None}
            )
        )
    else:
        print(
            f"{given.voters} voters, {given.batch} at a time, {given.runs} orders; same winners as all votes"
        )
        print("options  agreement  calls saved  in the worst order")
        for row in table:
            print(f"{row['options']:7}  {row['agreement']:9.0%}  {row['saved']:11.1%}  {row['least']:18.1%}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
