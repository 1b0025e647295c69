"""Facts from a run's trace: rounds, changed answers, members' shares; and calibration, kinds of question."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from nlsom.bench.compare import RIGHT
from nlsom.bench.line import Line
from nlsom.bench.scores import Scorer, scorer
from nlsom.bench.standing import Standing
from nlsom.message import Choice, Ranking, Said
from nlsom.task import Task
from nlsom.trace import Record, Trace
from nlsom.trace.stored import read_stored

Step = tuple[str, int]
"""A phase and its round."""

_KINDS = ("question_type", "answer_type", "category", "type", "subject", "topic", "domain")


@dataclass(frozen=True, slots=True)
class Answered:
    """A member's answer in a step, and whether it is right."""

    member: str
    step: Step
    answer: str
    right: bool


@dataclass(slots=True)
class Round:
    """A step in which members answered, over all samples.

    Attributes:
        step: Phase and round.
        answers: Number of answers.
        right: Number of right answers.
        agreement: For each sample, the share of the most frequent answer.
        lost: Changes from right to wrong, compared with the member's previous answer.
        won: Changes from wrong to right.
        kept: Answers that are right, or wrong, like the member's previous one.
    """

    step: Step
    answers: int = 0
    right: int = 0
    agreement: list[float] = field(default_factory=list[float])
    lost: int = 0
    won: int = 0
    kept: int = 0

    @property
    def name(self) -> str:
        """The phase, with the round unless that is the first."""
        phase, number = self.step
        return phase if number == 1 else f"{phase} {number}"

    @property
    def agreed(self) -> float:
        """Mean agreement over samples."""
        return sum(self.agreement) / len(self.agreement) if self.agreement else 0.0


@dataclass(slots=True)
class Share:
    """A member's contribution and cost, over all samples.

    Attributes:
        name: Name of the member.
        calls: Calls to models.
        tokens: Tokens read and written.
        seconds: Seconds of its model, summed.
        answers: Number of samples that it answered.
        right: Number of samples on which its last answer was right.
    """

    name: str
    calls: int = 0
    tokens: int = 0
    seconds: float = 0.0
    answers: int = 0
    right: int = 0


@dataclass(slots=True)
class Facts:
    """The facts about one society.

    Attributes:
        standing: Its results.
        rounds: Steps with answers, in order.
        shares: Members, in order.
        path: Seconds per sample on the critical path: the slowest member of each step, summed. This is what a
            sample takes if no reply is stored and no call waits for another sample.
    """

    standing: Standing
    rounds: list[Round]
    shares: list[Share]
    path: float


def answer_of(said: Said, task: Task) -> str | None:
    """The answer of a message in canonical form; None if it has none."""
    match said.ballot:
        case Choice(choice=choice):
            return task.canonical(choice)
        case Ranking(ranking=(first, *_)):
            return task.canonical(first)
        case _:
            return task.canonical(said.answer) if said.answer is not None else None


async def replies(trace: Trace, line: Line) -> list[tuple[Record, Said]]:
    """The replies in the mindstorm of a line, in order; empty if the line has no mindstorm.

    Raises:
        TraceError: A record cannot be read.
    """
    if not line.mindstorm:
        return []
    return [
        (record, read_stored(Said, record.body))
        async for record in trace.records(line.mindstorm)
        if record.kind == "replied"
    ]


def answers(
    replied: Iterable[tuple[Record, Said]], line: Line, labels: Sequence[str], judge: Scorer
) -> list[Answered]:
    """The answers to the task in a mindstorm, in order, each scored.

    Args:
        replied: All replies of the mindstorm.
        line: The line of the sample.
        labels: Labels of the phases whose messages answer the task.
        judge: Scores the answers.
    """
    sample = line.as_sample()
    found: list[Answered] = []
    for record, said in replied:
        answer = answer_of(said, sample.task) if record.label in labels else None
        if answer is None:
            continue
        score = judge.score(answer, sample)
        right = score is not None and score.lenient > RIGHT
        step = (record.phase, record.round)
        found.append(Answered(record.member, step, answer, right))
    return found


async def facts(standing: Standing, trace: Trace) -> Facts:
    """Reads all mindstorms of a society, one after the other.

    Raises:
        TraceError: A record cannot be read.
    """
    judge, labels = scorer(standing.scorer), standing.entrant.answering
    rounds: dict[Step, Round] = {}
    shares = {name: Share(name) for name, _, _ in standing.entrant.members}
    paths: list[float] = []
    for line in standing.lines:
        if not line.mindstorm:
            continue
        replied = await replies(trace, line)
        slowest: defaultdict[Step, float] = defaultdict(float)
        for record, said in replied:
            share = shares.setdefault(record.member, Share(record.member))
            share.calls += said.usage.calls
            share.tokens += said.usage.tokens
            share.seconds += said.usage.seconds
            step = (record.phase, record.round)
            slowest[step] = max(slowest[step], said.usage.seconds)
        paths.append(sum(slowest.values()))
        _count(answers(replied, line, labels, judge), rounds, shares)
    path = sum(paths) / len(paths) if paths else 0.0
    return Facts(standing, list(rounds.values()), list(shares.values()), path)


def _count(found: Sequence[Answered], rounds: dict[Step, Round], shares: dict[str, Share]) -> None:
    before: dict[str, Answered] = {}
    steps: defaultdict[Step, list[str]] = defaultdict(list)
    for one in found:
        at = rounds.setdefault(one.step, Round(one.step))
        at.answers += 1
        at.right += one.right
        steps[one.step].append(one.answer)
        if (last := before.get(one.member)) is not None:
            if last.right == one.right:
                at.kept += 1
            elif one.right:
                at.won += 1
            else:
                at.lost += 1
        before[one.member] = one
    for step, said in steps.items():
        rounds[step].agreement.append(Counter(said).most_common(1)[0][1] / len(said))
    for member, last in before.items():
        shares[member].answers += 1
        shares[member].right += last.right


@dataclass(frozen=True, slots=True)
class Bin:
    """Verdicts of similar confidence.

    Attributes:
        confidence: Mean confidence.
        right: Share of right verdicts.
        number: Number of verdicts.
    """

    confidence: float
    right: float
    number: int


def calibration(standing: Standing, bins: int = 10) -> tuple[list[Bin], float | None]:
    """The bins, of equal width, and the expected calibration error (Guo et al. 2017).

    Without confidences there are no bins, and the error is None.
    """
    held: defaultdict[int, list[tuple[float, bool]]] = defaultdict(list)
    for line, score in standing.scored:
        if line.confidence is not None:
            at = min(bins - 1, int(line.confidence * bins))
            held[at].append((line.confidence, score.lenient > RIGHT))
    total = sum(map(len, held.values()))
    if not total:
        return [], None
    found = [
        Bin(sum(c for c, _ in some) / len(some), sum(r for _, r in some) / len(some), len(some))
        for _, some in sorted(held.items())
    ]
    return found, sum(one.number / total * abs(one.confidence - one.right) for one in found)


def kind_of(line: Line) -> str:
    """The kind of question: the set's own, or else the first two words."""
    for key in _KINDS:
        value = line.meta.get(key)
        if isinstance(value, str) and value:
            return value
    return " ".join(line.question.casefold().split()[:2]) or line.kind


def by_kind(standing: Standing) -> dict[str, tuple[float, int]]:
    """Mean lenient score and number of samples for each kind of question, the most frequent first."""
    held: defaultdict[str, list[float]] = defaultdict(list)
    for line, score in standing.scored:
        held[kind_of(line)].append(score.lenient)
    ranked = sorted(held.items(), key=lambda one: (-len(one[1]), one[0]))
    return {kind: (sum(scores) / len(scores), len(scores)) for kind, scores in ranked}
