"""Voting rules: pure functions from votes to a count, installed under the entry points `nlsom.rules`.

Sums are exact fractions, so ties are exact and the order of votes never matters. `nlsom.rules.ballots` alone
says what a ballot means to a rule, and `nlsom.rules.ties` alone breaks ties between winners.
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
