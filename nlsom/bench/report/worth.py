"""What a member is worth: the score of its society less that of the society without it.

Without fresh draws the votes are counted again without the member's, and the others' words stay as they were,
although they may have heard it. With fresh draws the society is run again without the member: whoever did not
hear it gives the stored reply, whoever did is asked anew, and those draws are counted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from nlsom import plugins
from nlsom.bench.folder import RunFolder
from nlsom.bench.line import Line
from nlsom.bench.report.facts import answer_of, replies
from nlsom.bench.scores import scorer
from nlsom.bench.standing import Standing
from nlsom.bench.stats import Interval, paired_bootstrap
from nlsom.config import load
from nlsom.counterfactual import built_from, leave_out
from nlsom.errors import ConfigError, NlsomError, PluginError, UsageError
from nlsom.media import FolderStore
from nlsom.message import Choice, Said
from nlsom.rules import break_tie
from nlsom.society import Society
from nlsom.trace import Record, SqliteTrace, Trace
from nlsom.verdict import Rule, Vote


@dataclass(frozen=True, slots=True)
class Worth:
    """What a member is worth.

    Attributes:
        member: Its name.
        gain: Score with it less score without it, with the interval over samples.
        draws: Calls of models made for this; 0 where only votes were counted again.
    """

    member: str
    gain: Interval
    draws: int = 0


async def recounted(standing: Standing, trace: Trace) -> list[Worth]:
    """By counting votes again without each voter's; nothing where there are no votes to count.

    A decree is no count: without the one who decides nothing is decided.
    """
    entrant = standing.entrant
    if len(entrant.voters) < 2 or entrant.rule == "decree":
        return []
    try:
        rule: Rule = plugins.load("rules", entrant.rule)()
    except (PluginError, TypeError):  # a rule of one's own, or one that needs options: it cannot be made here
        return []
    judge = scorer(standing.scorer)
    kept: dict[str, list[float]] = {name: [] for name in entrant.voters}
    whole: list[float] = []
    for line, score in standing.scored:
        if judge.score(line.answer, line.as_sample()) is None:
            return []  # scored only as a whole set
        votes = _votes(await replies(trace, line), line, entrant.over, entrant.voters)
        whole.append(score.lenient)
        for name, scores in kept.items():
            rest = [vote for vote in votes if vote.voter != name]
            scores.append(_recount(rule, rest, line, standing))
    return [Worth(name, paired_bootstrap(whole, scores)) for name, scores in kept.items()] if whole else []


def _votes(
    replied: Sequence[tuple[Record, Said]], line: Line, over: str, voters: Sequence[str]
) -> list[Vote]:
    """The last vote of each voter."""
    task = line.as_task()
    last = {
        record.member: said for record, said in replied if record.label == over and record.member in voters
    }
    votes: list[Vote] = []
    for name, said in last.items():
        answer = answer_of(said, task)
        ballot = said.ballot if answer is None or not isinstance(said.ballot, Choice | None) else None
        votes.append(Vote(name, ballot or (Choice(choice=answer) if answer else None), said.confidence))
    return votes


def _recount(rule: Rule, votes: Sequence[Vote], line: Line, standing: Standing) -> float:
    sample = line.as_sample()
    named = (vote.ballot.choice for vote in votes if isinstance(vote.ballot, Choice))
    alternatives = sample.task.choices or tuple(dict.fromkeys(named))
    count = rule(votes, alternatives)
    answer = break_tie(
        count.winners,
        standing.entrant.tie_break,
        alternatives=alternatives,
        votes=votes,
        seed=line.seed,
        salt=sample.task.digest,
    )
    score = scorer(standing.scorer).score(answer, sample)
    return score.lenient if score is not None else 0.0


async def redrawn(standing: Standing, folder: RunFolder, *, at_once: int = 8) -> list[Worth]:
    """By running the society again without each member, over the same samples, with the run's trace.

    Args:
        standing: What it came to with all of them.
        folder: Of the run.
        at_once: Samples at once.

    Raises:
        UsageError: The society was built in Python, so that no trace can say how.
    """
    media, found = FolderStore(folder.media), list[Worth]()
    with_all = [score.lenient for _, score in standing.scored]
    held = {line.mindstorm for line in standing.lines if line.mindstorm}
    async with SqliteTrace(folder.trace) as trace:
        async for header in trace.mindstorms():
            if header.mindstorm in held:
                break
        else:
            return []
        built = built_from(header)
        for name, _ in header.members:
            try:
                rest = leave_out(load(built.society, prompts=built.prompts), [name])
            except (ConfigError, UsageError):
                continue  # it cannot be without this member
            rest.trace, rest.media = trace, media
            async with rest:
                scored = await _scored(rest, standing, at_once)
            gain = paired_bootstrap(with_all, [score for score, _ in scored])
            found.append(Worth(name, gain, sum(draws for _, draws in scored)))
    return found


async def _scored(society: Society, standing: Standing, at_once: int) -> list[tuple[float, int]]:
    """The score of every sample, and how many calls it took."""
    judge, slots = scorer(standing.scorer), asyncio.Semaphore(at_once)

    async def one(line: Line) -> tuple[float, int]:
        async with slots:
            try:
                verdict = await society.ask(line.as_task(), seed=line.seed)
            except NlsomError:
                return 0.0, 0  # without this member there is no verdict: that is what it is worth
        score = judge.score(verdict.counted, line.as_sample())
        return (score.lenient if score is not None else 0.0), verdict.usage.calls

    async with asyncio.TaskGroup() as group:
        asked = [group.create_task(one(line)) for line, _ in standing.scored]
    return [task.result() for task in asked]
