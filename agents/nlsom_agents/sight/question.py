"""Finds the question that a turn asks of an expert, and parses it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from nlsom.form import ChoiceForm, RankingForm, ScoresForm, TextForm
from nlsom.turn import Turn
from nlsom_agents.sight.words import tokens

Sort = Literal["all", "count", "colour", "words", "where", "presence", "what", "other"]

_PICTURE = r"(?:picture|image|photo|photograph|scene|shot|view|frame)"
_IN_PICTURE = rf"\b(?:in|on|of|within|across)\s+(?:the|this|that|these|those)\s+{_PICTURE}s?\b|\bhere\b"
_INTRODUCING = re.compile(r"\b(?:introduce|describe|caption|what (?:do|can) you see)\b", re.I)
_INTRODUCTIONS = frozenset({"caption", "introduce", "introduction", "describe"})

# The first that matches decides, so more specific patterns come first.
_SORTS: tuple[tuple[Sort, str], ...] = (
    ("count", r"\bhow many\b|\bnumber of\b|\bcount the\b"),
    ("colour", r"\bcolou?r(?:s|ed)?\b"),
    (
        "words",
        r"\b(?:says?|reads?|written|writing|words?|text|letters?|title|lines?|inscription|spells?|spelled|print(?:ed)?)\b"
        r"|\b(?:what|which|whose)\s+(?:\w+\s+)?(?:numbers?|names?|brand|company|phone number)\b|\bname of\b",
    ),
    (
        "where",
        r"\bwhere\b|\b(?:which|what) (?:side|part|corner)\b|\b(?:left|right),? or (?:the )?(?:left|right)\b",
    ),
    (
        "all",
        rf"\bdescribe\b|\bwhat (?:else )?(?:do|can) you see\b|\bwhat does (?:the|this) {_PICTURE} show\b"
        r"|\bwhat(?: objects| things| else)? (?:is|are|can be seen|appears?)? ?(?:visible |shown |seen )?"
        rf"{_IN_PICTURE}|\bwhat is in the (?:middle|cent(?:er|re)) of the {_PICTURE}\b"
        r"|\bwhat (?:is|are) (?:this|that|it|these|those)(?: an?)?"
        rf"(?: {_PICTURE}s?| objects?| things?)?(?: of)?\W*$|\bwhat (?:objects|things)\b",
    ),
    (
        "presence",
        r"(?<!what )(?<!who )\b(?:is|are|was|were) there\b(?! no\b)"
        r"|(?<!what )\b(?:can|do|could) you (?:see|spot|find|detect|recogni[sz]e)\b"
        rf"|\b(?:does|do) (?:the|this|these) {_PICTURE}s? (?:show|contain|have|include|depict)\b"
        rf"|^(?:is|are) (?:a|an|any|some|the) [^,]* (?:visible|present|shown|{_IN_PICTURE})"
        r"|^(?:is|are) (?:this|that|it|these|those) an? [\w ]+\W*$"
        r"|^(?:is|are) (?=(?:any|some)(?:one|body)\b)",
    ),
    ("what", r"\b(?:what|which)\b"),
)

# A question about what cannot be seen, or only with knowledge of the world.
_BEYOND = re.compile(
    r"\b(?:would|could|should|might|must|likely|probably|usually|commonly|often|normally|why|because|cause[sd]?"
    r"|made? of|makes?|using|used|use|purpose|for what|job|profession|occupation|sport|game|event|season"
    r"|country|city|language|originated?|represent\w*|symbol\w*|mean\w*|feel\w*|doing|trying"
    r"|about to|going to)\b",
    re.I,
)
_BREAK = re.compile(
    r"\b(?:in|on|at|near|next|behind|beside|besides|under|below|above|over|with|without|wearing|holding|that|who"
    r"|which|of|to|by|from|around|inside|outside|along|standing|sitting|riding|walking|lying|is|are|was|were|do"
    r"|does|can|could|has|have|shown|seen|visible|present|appear|appears)\b|[,;.?!]"
)
_FILLERS = frozenset(
    tokens("a an any some the at all other different total of this that these those and or please")
)
_EMPTY = _FILLERS | frozenset(
    tokens(
        "is are was were be being been do does did can could you i we see spot find detect show contain have "
        "has what which where how many much number count there visible present shown seen in on of kind type "
        "sort color colour picture image photo photograph scene anything it side"
    )
)


@dataclass(frozen=True, slots=True)
class Question:
    """A question about a picture.

    Attributes:
        text: The question.
        sort: Its kind.
        asked: Tokens of the noun phrase whose count or presence is asked for; empty for other kinds.
        rest: The other content tokens.
        plain: Whether it seems answerable by looking alone, judging by its words.
    """

    text: str
    sort: Sort
    asked: tuple[str, ...]
    rest: tuple[str, ...]
    plain: bool

    @property
    def said(self) -> tuple[str, ...]:
        """All tokens."""
        return tokens(self.text)


def question_of(turn: Turn) -> str | None:
    """The question that a turn asks of an expert; None if it asks to introduce the picture.

    1. If the form has options, they answer the task's question.
    2. Else the last message heard with the label `question` is the question.
    3. Else, if the form is free text, the turn asks for an introduction if its phase is named so (`caption`,
       `introduce`, …), its ask says so, or the task is to caption.
    4. Else an ask that is a question on one line is the question.
    5. Else, if the form is free text and nothing was heard, the turn asks for an introduction.
    6. Else the task's question is the question.
    """
    if isinstance(turn.form, ChoiceForm | RankingForm | ScoresForm):
        return turn.task.question
    for message in reversed(turn.heard):
        if message.label == "question":
            return message.text
    free = isinstance(turn.form, TextForm) and not turn.form.short
    if free and (
        turn.phase.casefold().partition("#")[0] in _INTRODUCTIONS
        or _INTRODUCING.search(turn.ask)
        or turn.task.kind == "caption"
    ):
        return None
    ask = turn.ask.strip()
    if ask.endswith("?") and "\n" not in ask:
        return ask
    return None if free and not turn.heard else turn.task.question


def options_of(turn: Turn) -> tuple[str, ...]:
    """The options to choose from; empty for an open question."""
    form = turn.form
    return form.options if isinstance(form, ChoiceForm | RankingForm | ScoresForm) else turn.task.choices


def read_question(text: str) -> Question:
    """Parses a question; of several sentences, the first that ends in a question mark."""
    sentences = [sentence.strip() for sentence in re.findall(r"[^.?!\n]+[.?!]*", text)]
    asked = next((sentence for sentence in sentences if sentence.endswith("?")), text.strip())
    asked = re.sub(r"^(?:question|q)\s*\d*\s*[:.)]\s*", "", asked, flags=re.I)
    plain = re.sub(r"['’]s\b", "", asked.casefold())
    sort, found = _sort(plain)
    phrase: tuple[str, ...] = ()
    if found is not None and sort in ("count", "presence"):
        after = plain[found.end() :]
        if re.match(r"(?:is|are) (?!there)", found[0]):  # "is a dog visible": the noun is inside the match
            after = re.sub(r"^(?:is|are) (?:this|that|it|these|those)?", "", plain)
        phrase = noun_phrase(after)
    rest = tuple(
        token
        for token in tokens(re.sub(_IN_PICTURE, "", plain))
        if token not in phrase and token not in _EMPTY
    )
    return Question(asked, sort, phrase, rest, not _BEYOND.search(asked))


def _sort(plain: str) -> tuple[Sort, re.Match[str] | None]:
    for sort, pattern in _SORTS:
        if found := re.search(pattern, plain):
            return sort, found
    return "other", None


def noun_phrase(text: str) -> tuple[str, ...]:
    """The tokens of the noun phrase at the beginning of a text: `a big dog on the bed` gives big, dog."""
    text = re.sub(_IN_PICTURE, "", text).strip()
    end = next((match.start() for match in _BREAK.finditer(text) if text[: match.start()].strip()), len(text))
    return tuple(token for token in tokens(text[:end]) if token not in _FILLERS)
