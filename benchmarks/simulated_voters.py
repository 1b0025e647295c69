"""What structures can gain with members of known competence: `python benchmarks/simulated_voters.py`.

Members of known competence and correlation (`nlsom.testing.voters`) form real societies, with the same
scheduler, hearing and rules as models. In a debate, a member adopts one of the answers that it hears, or
keeps its own, at random: the debate moves opinions but adds no evidence. Each result is printed with its
theoretical value, where known, and that of a vote with as many answers.
"""

import argparse
import asyncio
import math

import numpy as np

from nlsom import Ask, Hears, Inline, Member, Repeat, Said, Seat, Society, Turn, VerdictBy
from nlsom.bench.stats import wilson
from nlsom.rules import Decree, Plurality
from nlsom.structure import Democracy, Random, Ring, StructureSpec
from nlsom.testing.voters import SimulatedVoter, chance

NAMES = ("yes", "no")
FIRST = Ask(
    ask="voter", prompt=Inline(text="Answer."), label="answer", form="answer", hears=Hears(scope="none")
)
AGAIN = FIRST.model_copy(update={"name": "again", "hears": Hears(scope="latest")})
COUNT = VerdictBy(Plurality(), "plurality", of="voter", over="answer", tie_break="random")


class Opinion:
    """Answers as a simulated voter; once it hears answers, adopts one of them or its own at random."""

    def __init__(self, voter: SimulatedVoter) -> None:
        self.voter = voter
        self.identity = f"opinion {voter}"

    async def speak(self, turn: Turn) -> Said:
        """Answers."""
        answers = [message.said.answer for message in (*turn.heard, *turn.own)]
        if answers:
            drawn = chance(turn.seed, turn.task.question, self.voter.name, turn.round, "follows")
            return Said.words(str(answers[int(drawn * len(answers))]))
        vote = self.voter.vote(turn.task.question, NAMES, right=truth(turn.task.question))
        return Said.words(vote.ballot.choice)


class Counting:
    """A leader who says the most frequent of the answers it hears."""

    identity = "counting/1"

    async def speak(self, turn: Turn) -> Said:
        """Decides."""
        answers = [message.said.answer for message in turn.heard]
        return Said.words(max(NAMES, key=answers.count))


def truth(question: str) -> str:
    """The right answer."""
    return NAMES[int(question) % 2]


def voters(n: int, competence: float, correlation: float) -> list[Seat]:
    """`n` members of equal competence."""
    made = (SimulatedVoter(f"v{at}", competence, correlation) for at in range(n))
    return [Seat(Member(voter.name, "voter"), Opinion(voter)) for voter in made]


def debate(seats: list[Seat], rounds: int, structure: StructureSpec) -> Society:
    """All members answer, then hear the answers and answer again."""
    phases = [FIRST, *([Repeat(repeat=rounds, phases=(AGAIN,))] if rounds else [])]
    return Society(name="debate", seats=seats, phases=phases, verdict=COUNT, structure=structure)


def led(seats: list[Seat], leader: Opinion | Counting) -> Society:
    """All members answer, and a leader who hears them decides."""
    seats = [*seats, Seat(Member("leader", "leader"), leader)]
    ask = Ask(ask="leader", prompt=Inline(text="Decide."), label="ballot", form="answer")
    return Society(
        name="led", seats=seats, phases=[FIRST, ask], verdict=VerdictBy(Decree(), "decree", of="leader")
    )


def right_counts(n: int, competence: float, correlation: float) -> np.ndarray:
    """Probabilities of 0 to n right answers, shape (n + 1,).

    With probability √correlation, a member follows a draw that all share.
    """
    shared = math.sqrt(correlation)
    p = np.zeros(n + 1)
    for followers in range(n + 1):
        weight = math.comb(n, followers) * shared**followers * (1 - shared) ** (n - followers)
        own = [
            math.comb(n - followers, k) * competence**k * (1 - competence) ** (n - followers - k)
            for k in range(n - followers + 1)
        ]
        p[followers : n + 1] += weight * competence * np.array(own)
        p[: n - followers + 1] += weight * (1 - competence) * np.array(own)
    return p


def majority(p: np.ndarray) -> float:
    """Probability that the majority is right; a tie counts as one half."""
    n = len(p) - 1
    return float(sum(p[k] * (1.0 if 2 * k > n else 0.5 if 2 * k == n else 0.0) for k in range(n + 1)))


def talked(p: np.ndarray, rounds: int) -> np.ndarray:
    """The probabilities after rounds in which each adopts a random answer of all (Wright-Fisher model)."""
    n = len(p) - 1
    step = np.array(
        [
            [math.comb(n, j) * (k / n) ** j * (1 - k / n) ** (n - j) for j in range(n + 1)]
            for k in range(n + 1)
        ]
    )
    return p @ np.linalg.matrix_power(step, rounds)


async def measured(society: Society, questions: int) -> tuple[int, float]:
    """The number of right verdicts, and answers per question."""
    right = answers = 0
    async with society:
        for at in range(questions):
            async with society.mindstorm(await society.make_task(str(at), choices=NAMES), seed=at) as storm:
                async for event in storm:
                    answers += event.kind == "spoke"
                verdict = await storm.verdict()
            right += verdict.answer == truth(str(at))
    return right, answers / questions


async def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=3000)
    parser.add_argument("--members", type=int, default=9)
    given = parser.parse_args()
    n = given.members
    print(f"{given.questions} questions, {n} members; theory is exact where a figure stands")
    head = ("competence", "correlation", "structure", "answers", "right [99 %]", "theory", "equal-cost vote")
    print(f"| {' | '.join(head)} |")
    print("|---|---|---|---|---|---|---|")
    for competence, correlation in ((0.6, 0.0), (0.6, 0.3), (0.45, 0.0)):
        alone = right_counts(n, competence, correlation)
        leader = Opinion(SimulatedVoter("leader", competence, correlation))

        def seats(p: float = competence, rho: float = correlation, many: int = n) -> list[Seat]:
            return voters(many, p, rho)

        table: list[tuple[str, Society, float | None]] = [
            ("single", debate(seats(many=1), 0, Democracy()), competence),
            (f"vote of {n}", debate(seats(), 0, Democracy()), majority(alone)),
            ("monarchy, the leader follows one", led(seats(), leader), competence),
            ("monarchy, the leader counts", led(seats(), Counting()), majority(alone)),
            ("debate, 1 round", debate(seats(), 1, Democracy()), majority(talked(alone, 1))),
            ("debate, 3 rounds", debate(seats(), 3, Democracy()), majority(talked(alone, 3))),
            ("sparse debate (ring), 3 rounds", debate(seats(), 3, Ring()), None),
            ("random graph (p = 0.5), 3 rounds", debate(seats(), 3, Random(p=0.5)), None),
        ]
        for name, society, theory in table:
            right, cost = await measured(society, given.questions)
            band = wilson(right, given.questions, level=0.99)
            rival = majority(right_counts(round(cost), competence, correlation))
            expected = "–" if theory is None else f"{theory:.3f}"
            print(
                f"| {competence} | {correlation} | {name} | {cost:.0f} | {band.estimate:.3f} "
                f"[{band.low:.3f}, {band.high:.3f}] | {expected} | {rival:.3f} |"
            )


if __name__ == "__main__":
    asyncio.run(main())
