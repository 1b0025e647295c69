"""Open answers that are the same answer, said differently, are counted as one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from nlsom.message import Approval, Ballot, Choice, Ranking, Scores


def group(answers: Sequence[str], canonical: Callable[[str], str | None]) -> dict[str, str | None]:
    """Groups raw answers that have one canonical form, and picks a raw form to stand for each group.

    Args:
        answers: As they were said, one a member, in declaration order.
        canonical: What an answer counts as (`Task.canonical`); None for "I don't know".

    Returns:
        For each raw answer, the form that stands for its group: the one said most often, and of several such
        the one said first. None for an answer that says nothing.
    """
    groups: dict[str, Counter[str]] = {}
    form: dict[str, str | None] = {}
    for answer in answers:
        form[answer] = key = canonical(answer)
        if key is not None:
            groups.setdefault(key, Counter())[answer] += 1
    # Counter.most_common keeps the order of first appearance among equals.
    standing = {key: said.most_common(1)[0][0] for key, said in groups.items()}
    return {answer: None if key is None else standing[key] for answer, key in form.items()}


def relabel(ballot: Ballot, forms: Mapping[str, str | None]) -> Ballot | None:
    """The ballot in terms of the forms that stand for what it names; a name that is not in `forms` stays.

    Alternatives that turn out to be one: a ranking keeps the best place. Scores keep the score if it is the
    same for all.

    Returns:
        The ballot; None where nothing is left of it, or it scores one alternative in two ways.
    """
    if isinstance(ballot, Choice):
        new = forms.get(ballot.choice, ballot.choice)
        return None if new is None else Choice(choice=new)
    if isinstance(ballot, Scores):
        scores: dict[str, float] = {}
        for name, score in ballot.scores.items():
            new = forms.get(name, name)
            if new is not None and scores.setdefault(new, score) != score:
                return None
        return Scores(scores=scores) if scores else None
    old = ballot.approved if isinstance(ballot, Approval) else ballot.ranking
    renamed = (forms.get(name, name) for name in old)
    names = tuple(dict.fromkeys(name for name in renamed if name is not None))
    if old and not names:
        return None
    return Approval(approved=names) if isinstance(ballot, Approval) else Ranking(ranking=names)
