"""The worth of a member: the score of its society minus that of the society without it.

`recounted` counts the votes again without the member's own; the other members' messages stay as they are,
although they may have heard it. `redrawn` runs the society again without the member: turns that did not
depend on it get their stored reply, all others are asked again, and these calls are counted.
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
    """The worth of a member.

    Attributes:
        member: Its name.
        gain: Score with it minus score without it, with the interval over samples.
        draws: Calls to models made to find it; 0 if votes were only recounted.
    """

    member: str
    gain: Interval
    draws: int = 0


async def recounted(standing: Standing, trace: Trace) -> list[Worth]:
    """The worth of each voter, by counting the votes again without its own.

    Empty if that is impossible: fewer than two voters, a decree (without its author nothing is decided), a
    rule that cannot be made by name, or a set that is only scored as a whole.

    Raises:
        TraceError: A record cannot be read.
    """
    entrant = standing.entrant
    if len(entrant.voters) < 2 or entrant.rule == "decree":
        return []
    try:
        rule: Rule = plugins.load("rules", entrant.rule)()
    except (PluginError, TypeError):  # a rule that is not installed, or needs options: cannot be made here
        return []
    judge = scorer(standing.scorer)
    kept: dict[str, list[float]] = {name: [] for name in entrant.voters}
    whole: list[float] = []
    for line, score in standing.scored:
        if judge.score(line.answer, line.as_sample()) is None:
            return []  # the set is only scored as a whole
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
    """The worth of each member, by running the society without it over the same samples and trace.

    Members without which the society is not valid are left out.

    Args:
        standing: The results with all members.
        folder: Folder of the run.
        at_once: Maximum number of samples at once.

    Raises:
        UsageError: The society was built in Python, so the trace does not say how to build it.
        TraceError: The trace cannot be read or written.
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
                continue  # the society is not valid without this member
            rest.trace, rest.media = trace, media
            async with rest:
                scored = await _scored(rest, standing, at_once)
            gain = paired_bootstrap(with_all, [score for score, _ in scored])
            found.append(Worth(name, gain, sum(draws for _, draws in scored)))
    return found


async def _scored(society: Society, standing: Standing, at_once: int) -> list[tuple[float, int]]:
    """The score of each sample, and how many calls it took."""
    judge, slots = scorer(standing.scorer), asyncio.Semaphore(at_once)

    async def one(line: Line) -> tuple[float, int]:
        async with slots:
            try:
                verdict = await society.ask(line.as_task(), seed=line.seed)
            except NlsomError:
                return 0.0, 0  # without this member there is no verdict, which counts as wrong
        score = judge.score(verdict.counted, line.as_sample())
        return (score.lenient if score is not None else 0.0), verdict.usage.calls

    async with asyncio.TaskGroup() as group:
        asked = [group.create_task(one(line)) for line, _ in standing.scored]
    return [task.result() for task in asked]
