"""From messages to votes, and from votes to a verdict. Pure functions of the minutes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import cast

from pydantic import TypeAdapter

from nlsom.errors import NlsomError, cause_of
from nlsom.form import (
    ApprovalForm,
    ChoiceForm,
    Form,
    NumberForm,
    RankingForm,
    ScoresForm,
    TextForm,
    YesNoForm,
)
from nlsom.message import Approval, Ballot, Choice, Data, Message, Ranking, Said, Scores
from nlsom.minutes import Minutes
from nlsom.phase import Ask, Until
from nlsom.program import Decision, Program
from nlsom.rules import break_tie
from nlsom.rules.ballots import named
from nlsom.task.base import Task
from nlsom.verdict import Abstention, Count, SettlingRule, Verdict, Vote
from nlsom.wording import Given, tell, wordings

_ABSTENTIONS = TypeAdapter(tuple[Abstention, ...])
_OVER = {"choice": ChoiceForm, "approval": ApprovalForm, "ranking": RankingForm, "scores": ScoresForm}


def form_of(ask: Ask, task: Task, minutes: Minutes) -> Form | None:
    """The form that a phase asks for.

    `answer` is the task's own form. The options of `choice`, `approval`, `ranking` and `scores` are the
    proposals that the phase names (each called by who made it), else the task's choices, else the different
    answers given so far; without any, the form is the task's own.

    Returns:
        The form; None if the options are proposals and nobody made one.
    """
    form = ask.form
    if not isinstance(form, str):
        return form
    match form:
        case "text":
            return TextForm()
        case "answer":
            return task.form()
        case "yes_no":
            return YesNoForm()
        case "number":
            return NumberForm()
        case "choice" | "approval" | "ranking" | "scores":
            if ask.over is not None:
                options = tuple(_proposals(minutes, ask.over))
                return _OVER[form](options=options, named=True) if options else None
            options = task.choices or _alternatives(minutes, task)
            return _OVER[form](options=options) if options else task.form()


def is_over(until: Until, of: Sequence[int], minutes: Minutes, task: Task) -> bool:
    """Whether a `repeat` ends after this round."""
    answers = minutes.labelled(until.over)
    if until.agreement is not None and _agreement(answers, task) >= until.agreement:
        return True
    if until.unchanged and _unchanged(answers, task):
        return True
    if until.confident is not None:
        said = [minutes.of(at)[-1].said for at in of if minutes.of(at)]
        if said and all((one.confidence or 0.0) >= until.confident for one in said):
            return True
    return until.says is not None and any(_says(minutes.of(at), until.says) for at in of)


def _says(said: Sequence[Message], word: str) -> bool:
    """Whether the last message has this word as its answer or as its last line."""
    if not said:
        return False
    lines = said[-1].text.strip().splitlines()
    told = (said[-1].said.answer or "", lines[-1] if lines else "")
    return any(_bare(one) == _bare(word) for one in told)


def _bare(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))


def decide(
    program: Program, minutes: Minutes, task: Task, *, cut_short: bool, seed: int
) -> tuple[Verdict, tuple[Abstention, ...]]:
    """Reaches the verdict.

    If the mindstorm was cut short, the last answer of a voter who had not voted yet is its vote.

    Returns:
        The verdict; and an abstention for each vote that could not be read or counted.
    """
    decision = program.decision
    proposals = _proposals(minutes, decision.proposals) if decision.proposals is not None else {}
    votes: list[Vote] = []
    given: list[Given] = []
    unread: list[Abstention] = []
    for at in decision.of:
        said = minutes.of(at)
        last = next((message for message in reversed(said) if message.label == decision.over), None)
        if last is None and cut_short:
            last = next((message for message in reversed(said) if _ballot(message.said, task)[0]), None)
        if last is None:
            continue
        name = program.members[at].name
        if decision.proposals is None:
            ballot, cause = _ballot(last.said, task)
        elif last.label == decision.over:
            ballot, cause = last.said.ballot, last.said.why or "no ballot"
        elif name in proposals:
            ballot, cause = Choice(choice=name), ""
        else:
            continue
        votes.append(Vote(name, ballot, last.said.confidence, decision.competence.get(name)))
        if isinstance(ballot, Choice) and last.said.ballot is None:
            given.append((ballot.choice, _words(last.said)))
        if ballot is None:
            unread.append(Abstention(member=last.sender, phase=last.phase, round=last.round, cause=cause))
    alternatives = tuple(proposals) or task.choices or _alternatives_of(votes)
    count = _count(decision, votes, alternatives)
    places = {program.members[at].name: at for at in decision.of}
    for voter, cause in count.uncounted.items():
        unread.append(_uncounted(voter, minutes.of(places[voter]), cause, decision.over))
    winners = count.winners
    answer = break_tie(
        winners, decision.tie_break, alternatives=alternatives, votes=votes, seed=seed, salt=task.digest
    )
    if answer is not None and decision.proposals is not None:
        answer = proposals.get(answer)
    verdict = Verdict(
        answer=answer,
        counted=answer,
        confidence=count.confidence if answer is not None else None,
        rule=decision.name,
        tally=count.tally,
        pairwise=count.pairwise,
        tied=winners if len(winners) > 1 else (),
    )
    if decision.proposals is None and not task.choices:
        words = wordings(alternatives, given, task)
        if len(words) < len(alternatives):
            # Votes chosen from a list have the list's words; the members who gave the answers had their own.
            words = wordings(alternatives, _given(minutes, task), task) | words
        verdict = tell(verdict, words)
    return verdict, tuple(unread)


def _count(decision: Decision, votes: Sequence[Vote], alternatives: Sequence[str]) -> Count:
    """What the rule makes of the votes.

    Raises:
        NlsomError: The rule raised an error, or returned something else than a count of these votes.
    """
    try:
        count = cast("object", decision.rule(votes, alternatives))
    except Exception as error:
        # A rule may be a stranger's code, like an agent; but nobody can abstain in its place.
        raise NlsomError(f"the rule {decision.name!r} failed: {cause_of(error)}") from error
    if not isinstance(count, Count):
        raise NlsomError(f"the rule {decision.name!r} returned {type(count).__name__}, not Count")
    if strange := sorted(set(count.uncounted) - {vote.voter for vote in votes}):
        raise NlsomError(f"the rule {decision.name!r} could not count {strange[0]!r}, who did not vote")
    return count


def abstained_within(message: Message) -> list[Abstention]:
    """The abstentions that a nested society lists in its message, as `MEMBER/INNER_MEMBER`."""
    told = [part.value for part in message.said.parts if isinstance(part, Data)]
    return [
        abstention.model_copy(update={"member": f"{message.sender}/{abstention.member}"})
        for value in told
        if isinstance(value, dict)
        for abstention in _ABSTENTIONS.validate_python(value.get("abstained", ()))
    ]


def _uncounted(voter: str, said: Sequence[Message], cause: str, over: str) -> Abstention:
    last = next((message for message in reversed(said) if message.label == over), None)
    phase, number = (last.phase, last.round) if last else (over, 0)
    return Abstention(member=voter, phase=phase, round=number, cause=cause)


def settled(
    program: Program,
    minutes: Minutes,
    said: Mapping[int, Message],
    waiting: Container[int],
    task: Task,
    form: Form,
    read: dict[str, Vote],
) -> bool:
    """Whether the votes still to come in the last phase can no longer change the winner.

    Args:
        program: The program.
        minutes: What was said before this phase.
        said: What has been said in it, by the member's place.
        waiting: Places of the members who are still to vote.
        task: The task.
        form: The phase's form.
        read: A cache of the votes that have been read, by the digest of their message.
    """
    rule, decision = program.decision.rule, program.decision
    if not isinstance(rule, SettlingRule):
        return False
    over_proposals = decision.proposals is not None
    earlier = {message.sender: message for message in minutes.labelled(decision.over)}
    votes: list[Vote] = []
    outstanding: list[float | None] = []
    for at in decision.of:  # as `decide` will count them
        name = program.members[at].name
        competence = decision.competence.get(name)
        if at in waiting:
            outstanding.append(competence)
        elif (message := said.get(at) or earlier.get(name)) is not None:
            if (vote := read.get(message.digest)) is None:
                ballot = message.said.ballot if over_proposals else _ballot(message.said, task)[0]
                vote = read[message.digest] = Vote(name, ballot, message.said.confidence, competence)
            votes.append(vote)
    # An open question has no fixed alternatives, even if answers were offered as options.
    alternatives = tuple(getattr(form, "options", ())) if over_proposals else task.choices
    return rule.settled(votes, outstanding, alternatives)


def _ballot(said: Said, task: Task) -> tuple[Ballot | None, str]:
    """The vote in what a member said, in canonical form; or None and the reason why there is none."""
    if said.ballot is not None:
        return _canonical(said.ballot, task)
    if said.why is not None:
        return None, said.why
    answer = task.canonical(_words(said))
    return (Choice(choice=answer), "") if answer is not None else (None, "does not know")


def _words(said: Said) -> str:
    return said.answer if said.answer is not None else said.text


def _canonical(ballot: Ballot, task: Task) -> tuple[Ballot | None, str]:
    match ballot:
        case Choice(choice=choice):
            answer = task.canonical(choice)
            return (Choice(choice=answer), "") if answer is not None else (None, "does not know")
        case Approval(approved=approved):
            return Approval(approved=_kept(approved, task)), ""
        case Ranking(ranking=ranking):
            return Ranking(ranking=_kept(ranking, task)), ""
        case Scores(scores=scores):
            named = ((task.canonical(name), score) for name, score in scores.items())
            return Scores(scores={name: score for name, score in named if name is not None}), ""


def _kept(names: Sequence[str], task: Task) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one for name in names if (one := task.canonical(name)) is not None))


def _proposals(minutes: Minutes, label: str) -> dict[str, str]:
    """The last proposal of each member, by name, in the order of their first ones."""
    return {message.sender: message.text for message in minutes.labelled(label) if message.text.strip()}


def _alternatives(minutes: Minutes, task: Task) -> tuple[str, ...]:
    """The different answers given so far, in the order they were first given."""
    answers = (task.canonical(m.said.answer) for m in minutes if m.said.answer is not None)
    return tuple(dict.fromkeys(answer for answer in answers if answer is not None))


def _given(minutes: Minutes, task: Task) -> Iterator[Given]:
    """Answers given in a member's own words: the canonical form of each, and the words."""
    for message in minutes:
        answer = message.said.answer if message.said.ballot is None else None
        if answer is not None and (counted := task.canonical(answer)) is not None:
            yield counted, answer


def _alternatives_of(votes: Sequence[Vote]) -> tuple[str, ...]:
    """All alternatives that votes name, in the order in which they are first named."""
    return tuple(dict.fromkeys(name for vote in votes if vote.ballot for name in named(vote.ballot)))


def _agreement(answers: Sequence[Message], task: Task) -> float:
    """The share of the most frequent answer, counting the last answer of each member."""
    last = {message.sender: message for message in answers}
    known = [answer for message in last.values() if (answer := _answer(message, task)) is not None]
    return Counter(known).most_common(1)[0][1] / len(known) if known else 0.0


def _unchanged(answers: Sequence[Message], task: Task) -> bool:
    """Whether the last two answers of every member are the same."""
    last_two: dict[str, list[Message]] = {}
    for message in answers:
        last_two[message.sender] = [*last_two.get(message.sender, ())[-1:], message]
    return bool(last_two) and all(
        len(own) > 1 and _answer(own[0], task) == _answer(own[1], task) for own in last_two.values()
    )


def _answer(message: Message, task: Task) -> str | None:
    ballot, _ = _ballot(message.said, task)
    return ballot.choice if isinstance(ballot, Choice) else None
