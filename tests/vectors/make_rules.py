"""Makes rules.json: what pref_voting says of random profiles. Run it where pref_voting is installed.

    python make_rules.py 120 > rules.json

pref_voting pins a NumPy older than ours and brings hundreds of megabytes, so its verdicts are kept instead.
"""

import json
import random
import sys
from importlib.metadata import version
from itertools import combinations

import pref_voting.voting_methods as methods
from pref_voting.profiles import Profile
from pref_voting.profiles_with_ties import ProfileWithTies

FULL = {
    "plurality": methods.plurality,
    "borda": methods.borda,
    "copeland": methods.copeland,
    "minimax": methods.minimax,
    "schulze": methods.beat_path,
    "ranked_pairs": methods.ranked_pairs,
    "instant_runoff": methods.instant_runoff_put,
    "bucklin": methods.bucklin,
}
PAIRWISE = {name: FULL[name] for name in ("copeland", "minimax", "schulze", "ranked_pairs")}


def winners(method, profile, **how):
    """The winners, as plain numbers, ascending."""
    return sorted(int(name) for name in method(profile, **how))


def main():
    """Prints as many profiles with full ballots, and as many with ballots that leave alternatives out."""
    draw, wanted = random.Random(0), int(sys.argv[1])
    cases = []
    for at in range(2 * wanted):
        options, voters = draw.choice((2, 3, 3, 4, 4)), draw.choice((2, 3, 4, 5, 6, 7, 9, 12, 21))
        ballots = [draw.sample(range(options), options) for _ in range(voters)]
        if at < wanted:
            profile = Profile(ballots)
            told = {name: winners(method, profile) for name, method in FULL.items()}
        else:
            ballots = [ballot[: draw.randint(1, options)] for ballot in ballots]
            profile = ProfileWithTies(
                [{name: place for place, name in enumerate(ballot, 1)} for ballot in ballots],
                candidates=list(range(options)),
            )
            profile.use_extended_strict_preference()
            told = {f"{name} by margin": winners(method, profile) for name, method in PAIRWISE.items()}
            pairs = combinations(range(options), 2)
            tied = any(profile.support(a, b) == profile.support(b, a) for a, b in pairs)
            for name in ("minimax", "schulze", "ranked_pairs"):
                if name == "ranked_pairs" and tied:
                    continue  # pref_voting also locks tied pairs then, as if each side had won
                told[f"{name} by winning"] = winners(
                    PAIRWISE[name], profile, strength_function=profile.support
                )
        cases.append({"options": options, "ballots": ballots, "winners": told})
    json.dump({"pref_voting": version("pref_voting"), "cases": cases}, sys.stdout, separators=(",", ":"))
    print()


if __name__ == "__main__":
    main()
