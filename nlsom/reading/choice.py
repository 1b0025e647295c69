"""Reading which option a reply chooses.

Rules, as a careful reader would state them:

1. A reply that is nothing but a label, or nothing but an option's text, chooses that option.
2. Otherwise the last explicit statement counts ("the answer is B", "Answer: B", a box, a tag,
   "no, actually C").
3. Otherwise a plain decision counts: the reply begins with the option, ends with it as a sentence of its own,
   names it in full ("(B) a cat"), or says "I choose B", "it is B", "B is correct".
4. Otherwise an option counts if no other is mentioned.

An option that is denied ("not B", "A does not fit") is not chosen. There is no answer if two options stand on
the same level or are joined by "or" or "and", if a label contradicts the text beside it, or if a change of
mind names no new option.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from nlsom.reading import phrases
from nlsom.reading.clean import clean
from nlsom.reading.mention import WORD, Mention, find_labels, find_texts, fold, without_article
from nlsom.reading.number import number_in_words
from nlsom.reading.short import without_lead
from nlsom.reading.unknown import says_unknown

_MAX_MENTIONS = 200  # only the last mentions of a very long reply are weighed
_NEAR = 160  # characters on either side of a mention that are read
_SENTENCE_END = re.compile(r"[.!?\n](?:\s|$)")
_CLAUSE_END = re.compile(
    r"[,.;!?\n](?:\s|$)|(?<!thing )(?<!all )\bbut\b|\b(?:so|therefore|hence|thus)\b", re.I
)

_NAME = re.compile(r"\A\W*(?:option|choice|answer)\b\s*:?", re.I)
_ANSWERED = re.compile(r"\W*A\s*:\W*([A-Z])\W*", re.I)
_ARTICLE = re.compile(r"\b(?:an?|the)\s+\Z", re.I)
_EDGES = re.compile(r"\A[\W_]+|[\W_]+\Z")

Read = tuple[int | None, str]


def read_choice(text: str, options: Sequence[str], labels: Sequence[str]) -> Read:
    """Finds the one option that a reply names.

    Args:
        text: The reply.
        options: The texts of the options.
        labels: Their labels in the prompt ("A", "B", … or "1", "2", …).

    Returns:
        The index of the option, or None; and how it was found, or why not.
    """
    plain = clean(text)
    if not plain:
        return None, "the reply is empty"
    for whole in dict.fromkeys((plain, without_lead(plain))):
        if (alone := _alone(whole, options, labels)) is not None:
            return alone
    texts = find_texts(plain, options, labels)
    mentions = sorted([*texts, *find_labels(plain, labels, texts)], key=lambda mention: mention.start)
    return _Judge(plain, options, mentions[-_MAX_MENTIONS:]).judge()


def _alone(plain: str, options: Sequence[str], labels: Sequence[str]) -> Read | None:
    """Reads a reply that is nothing but a label or an option; None if it is something else."""
    bare = _EDGES.sub("", _NAME.sub("", plain))
    answered = _ANSWERED.fullmatch(plain)  # "A: B", after "Q: …"
    if answered and answered[1].upper() in labels and answered[1] not in options:
        bare = answered[1]
    if bare in labels:
        return labels.index(bare), "the label alone"
    for same in (fold, _bare, _as_number):
        said = same(plain)
        matching = [at for at, option in enumerate(options) if said and same(option) == said]
        if len(matching) == 1:
            return matching[0], "the option's text alone"
        if matching:
            return None, "several options have that text"
    for at, label in enumerate(labels):
        if bare.casefold() == label.casefold():
            return at, "the label alone"
    return None


def _bare(words: str) -> str:
    return without_article(fold(words))


def _as_number(words: str) -> str:
    plain = fold(words)
    value = number_in_words(plain)
    return plain if value is None and plain.isdecimal() else "" if value is None else str(value)


class _Judge:
    """Weighs the mentions of options in one reply; `n` is the number of a mention, in order."""

    def __init__(self, plain: str, options: Sequence[str], mentions: Sequence[Mention]) -> None:
        self.plain, self.options, self.mentions = plain, options, mentions
        self.joins = [self._join(one, other) for one, other in pairwise(mentions)]
        self.denied = self._denied()

    def judge(self) -> Read:
        """The option that is chosen, all mentions considered."""
        held = [n for n in range(len(self.mentions)) if n not in self.denied]
        anew = [over.end() for over in phrases.STARTED_OVER.finditer(self.plain)]
        if anew and held and self.mentions[held[0]].start < anew[-1]:
            held = [n for n in held if self.mentions[n].start >= anew[-1]]
            if not held:
                return None, "a change of mind that names no option"
        if not held:
            return None, "only denied options are named" if self.mentions else "no option is named"
        by_grade: dict[int, list[int]] = {grade: [] for grade in range(4)}
        for n in held:
            by_grade[self._grade(n)].append(n)
        if by_grade[3]:
            return self._settle(by_grade[3][-1:], "the last explicit statement")
        stated = [cue.start() for cue in phrases.ANSWER_FOLLOWS.finditer(self.plain)]
        if stated and stated[-1] > self.mentions[held[-1]].start:
            return None, "the stated answer is none of the options"
        if by_grade[2]:
            single = [n for n in by_grade[2] if not self._joined(n)]  # "B or C, but I choose B"
            return self._settle(single or by_grade[2], "the option that is decided for")
        return self._only_mentioned(by_grade[1])

    def _only_mentioned(self, mentioned: list[int]) -> Read:
        unknown = [n for n in mentioned if says_unknown(self.options[self.mentions[n].at])]
        if unknown:
            mentioned = unknown
        elif says_unknown(self.plain):
            return None, "the reply says it cannot tell"
        if not mentioned:
            return None, "no option is named"
        return self._settle(mentioned, "the only option named")

    def _settle(self, chosen: Sequence[int], why: str) -> Read:
        """The option of these mentions, if they agree and the reply does not contradict itself."""
        first = self.mentions[chosen[0]]
        if any(self._contradicted(n) for n in chosen):
            return None, "a label and the text beside it disagree"
        if any(self.mentions[n].at != first.at for n in chosen):
            return None, "several options are named"
        if any(self._joined(n) for n in chosen):
            return None, "several options are joined"
        said = fold(self.options[first.at])
        if sum(fold(option) == said for option in self.options) > 1 and not any(
            self.mentions[n].by_label for n in chosen
        ):
            return None, "several options have that text"
        return first.at, why

    def _grade(self, n: int) -> int:
        """How a mention counts: 3 states its option, 2 decides for it, 1 mentions it, 0 does not count."""
        mention, before, after = self.mentions[n], self._before(n), self._after(n)
        if phrases.CORRECTED.search(before) or phrases.EXPLICIT.search(before):
            return 3
        first = mention.start < _NEAR and not before.strip(" \"'([")
        listed = before.rstrip(" ([").endswith("\n") and phrases.LISTED.match(after)
        named = mention.start < _NEAR and not phrases.NAMED.sub("", before).strip(" \"'([")
        if (
            named and phrases.LEADS.match(after) and re.match(r"[)\]]?(?:[,.;:!\n]|\Z)", after)
        ):  # "Option B. …"
            return 2
        leads = (first or (listed and mention.by_label)) and phrases.LEADS.match(after)
        if mention.kind == "lower":
            listing = leads and phrases.LISTED.match(after)
            if listing or phrases.DECIDED.search(before) or phrases.PRAISED.match(after):
                return 2
            return 1 if phrases.NAMED.search(before) else 0
        if self._in_full(n) and not phrases.EQUATES.search(
            self.plain, mention.end, self.mentions[n + 1].start
        ):
            return 2
        if phrases.DECIDED.search(before) and (mention.by_label or self._alone_in_sentence(n)):
            return 2
        # "Yes, there is …" decides; "dog food on the floor" merely begins with the word.
        if leads and (mention.by_label or re.match(r"\s*(?:[,.;:!\n]|$)", after)):
            return 2
        if phrases.PRAISED.match(after) or self._ruled(n):
            return 2
        begins = before if mention.by_label else _ARTICLE.sub("", before)
        said = phrases.SENTENCE_BEGINS.search(begins) or (mention.by_label and phrases.IS.search(before))
        if said and phrases.SENTENCE_ENDS.match(after):
            return 2
        return 1 if mention.kind in ("marked", "text") or phrases.NAMED.search(before) else 0

    def _before(self, n: int) -> str:
        start = self.mentions[n].start
        return self.plain[max(0, start - _NEAR) : start]

    def _after(self, n: int) -> str:
        end = self.mentions[n].end
        return self.plain[end : end + _NEAR]

    def _alone_in_sentence(self, n: int) -> bool:
        """Whether "it is a dog" is all that its sentence names: "it is a dog beside a cat" names two."""
        end = _SENTENCE_END.search(self.plain, self.mentions[n].end)
        stop = end.start() if end else len(self.plain)
        for other in range(n + 1, len(self.mentions)):
            mention = self.mentions[other]
            if mention.start >= stop:
                break
            if not mention.by_label and mention.at != self.mentions[n].at and other not in self.denied:
                return False
        return True

    def _denied(self) -> set[int]:
        """Which mentions are denied: in "A, B and C are wrong" all three, in "not A, B" only the first."""
        links = [self._listed_with_next(n) for n in range(len(self.joins))]
        denied, begins, clause = set[int](), 0, ""
        for n in range(len(self.mentions)):
            if n and (ruled := self._ruled(n - 1)):
                begins = ruled.end()  # its "no" is about the option before
            own = n and self._in_full(n - 1) and not phrases.DENIES_WEAKLY.search(clause)
            linked = n and n - 1 in denied and (links[n - 1] or own)
            start = self.mentions[n].start
            clause = _CLAUSE_END.split(self.plain[max(begins, start - _NEAR) : start])[-1]
            if phrases.DENIED_BEFORE.search(clause) or linked:
                denied.add(n)
        for n in reversed(range(len(self.mentions))):
            if self._denied_after(n) or (n + 1 in denied and (links[n] or self._in_full(n))):
                denied.add(n)
        return denied

    def _denied_after(self, n: int) -> bool:
        ruled = self._ruled(n)
        return bool(
            phrases.DENIED_AFTER.match(self._after(n)) or (ruled and phrases.RULED_OUT.search(ruled[0]))
        )

    def _ruled(self, n: int) -> re.Match[str] | None:
        """The "no" of "A: no", unless it is an option itself, as in "B: No"."""
        rule = phrases.RULED_MARKED if self.mentions[n].kind == "marked" else phrases.RULED
        ruled = rule.match(self.plain, self.mentions[n].end)
        if ruled and n + 1 < len(self.mentions) and self.mentions[n + 1].start < ruled.end():
            return None
        return ruled

    def _in_full(self, n: int) -> bool:
        """Whether a label has its own text behind it: "(B) a cat"."""
        mention = self.mentions[n]
        if not mention.by_label or n + 1 == len(self.mentions):
            return False
        text, gap = self.mentions[n + 1], phrases.BESIDE_LABEL.match(self.plain, mention.end)
        return not text.by_label and text.at == mention.at and bool(gap) and text.start <= gap.end()

    def _listed_with_next(self, n: int) -> bool:
        """Whether a mention and the next belong to one list that a word ("and", "or") closes."""
        while n < len(self.joins) and self.joins[n]:
            if phrases.AND_OR.search(self.plain, self.mentions[n].end, self.mentions[n + 1].start):
                return True
            n += 1
        return False

    def _join(self, one: Mention, other: Mention) -> bool:
        return (
            one.at != other.at
            and other.start - one.end < _NEAR
            and phrases.JOINT.fullmatch(self.plain, one.end, other.start) is not None
        )

    def _joined(self, n: int) -> bool:
        """Whether the mention is one of several: "A or B"."""
        with_last = n > 0 and self.joins[n - 1] and n - 1 not in self.denied
        last = n + 1 if self._in_full(n) else n  # "(A) a dog or (B) a cat"
        with_next = last < len(self.joins) and self.joins[last] and last + 1 not in self.denied
        return with_last or with_next

    def _contradicted(self, n: int) -> bool:
        """Whether label and text of different options stand side by side: "B. a dog" where B is a cat."""
        mention = self.mentions[n]
        behind = [m for k, m in enumerate(self.mentions[n + 1 : n + 3], n + 1) if k not in self.denied]
        if not mention.by_label:  # "a dog (B)"
            return any(
                m.kind == "marked" and m.at != mention.at and self._touch(mention, m) for m in behind[:1]
            )
        gap = phrases.BESIDE_LABEL.match(self.plain, mention.end)
        edge = gap.end() if gap else mention.end
        beside = [m.at for m in behind if m.kind == "text" and m.start <= edge and not self._anew(mention, m)]
        if mention.kind == "marked" and n and n - 1 not in self.denied:
            before = self.mentions[n - 1]
            beside += [before.at] if not before.by_label and self._touch(before, mention) else []
        return bool(beside) and mention.at not in beside

    def _anew(self, label: Mention, text: Mention) -> bool:
        """Whether a text behind a label begins a sentence of its own: "B. A dog would be larger"."""
        between = self.plain[label.end : text.start]
        return bool(re.search(r"\.\s+[A-Z]", between) and re.match(r"\s+\w", self.plain[text.end :]))

    def _touch(self, one: Mention, other: Mention) -> bool:
        return not re.search(rf"[{WORD}]", self.plain[one.end : other.start])
