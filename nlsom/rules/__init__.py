"""Voting rules: pure functions from votes to a count, installed by name under the entry points `nlsom.rules`.

Sums are exact fractions, so a tie is a tie and the order of votes never matters. What a ballot means to a
rule is said in `nlsom.rules.ballots`, and nowhere else; tied winners are broken only in `nlsom.rules.ties`.
"""

from nlsom.rules.consensus import Consensus
from nlsom.rules.decree import Decree, Unanimity
from nlsom.rules.pairwise import Copeland, Minimax, Schulze
from nlsom.rules.points import Approval, Borda, Competence, Confidence, Plurality, Range
from nlsom.rules.ranked_pairs import RankedPairs
from nlsom.rules.runoff import Bucklin, InstantRunoff
from nlsom.rules.ties import TieBreak, break_tie

__all__ = [
    "Approval",
    "Borda",
    "Bucklin",
    "Competence",
    "Confidence",
    "Consensus",
    "Copeland",
    "Decree",
    "InstantRunoff",
    "Minimax",
    "Plurality",
    "Range",
    "RankedPairs",
    "Schulze",
    "TieBreak",
    "Unanimity",
    "break_tie",
]
