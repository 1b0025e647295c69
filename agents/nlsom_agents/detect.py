"""`detect`: an expert that finds, counts and locates things of eighty kinds (NanoDet-g, COCO)."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import JsonValue

from nlsom.media import MediaStore
from nlsom.message import Image
from nlsom_agents.sight import detector
from nlsom_agents.sight.detector import Thing
from nlsom_agents.sight.expert import Expert
from nlsom_agents.sight.finding import Finding, bare, cannot_tell
from nlsom_agents.sight.places import place, places, side
from nlsom_agents.sight.question import Question
from nlsom_agents.sight.runtime import digest_of
from nlsom_agents.sight.things import EASILY_MISSED, GROUPS, KINDS, PHRASES, Kind, kind_of
from nlsom_agents.sight.words import a, count_of, listed, mentions, number, plural, tokens

# Least detection scores:
HINT = detector.LEAST  # of a doubtful thing
SEEN = 0.3  # of a thing that is there, if a question asks for it
COUNTED = 0.4  # of a thing that counts
SURE = 0.45  # of a thing that is mentioned unasked without "perhaps"
CONFIDENT = 0.6  # of a thing that is mentioned as confident

ABSENT = 0.75  # confidence that a kind that is not seen is absent

Things = tuple[Thing, ...]


class Detect(Expert[Things]):
    """Finds things of COCO's eighty kinds, counts them and says where they are.

    Its confidence: 0.5 + s / 2 that a thing detected with score s is there; 0.75 that a kind without any
    detection (score of 0.25 or more) is absent, except for kinds that are easily missed, of which it cannot
    tell. A word narrower than the kind (woman, kitten) halves the confidence. Of 226 questions "Is there
    a …?" over 42 photographs of COCO, half of them with the answer yes, it answered 144, and 135 correctly.
    """

    @property
    def identity(self) -> str:
        """Name, version and the weights' digest."""
        return f"detect/2 nanodet-g {digest_of(detector.WEIGHTS)}"

    async def view(self, media: MediaStore, image: Image) -> Things:
        """All things with a score of at least `HINT`, highest first."""
        return await detector.things_in(self.sight, media, image)

    def introduce(self, view: Things) -> Finding:
        """All things that are seen, doubtful ones marked as such, and main kinds that are absent."""
        return Finding(summary(view))

    def data(self, view: Things) -> dict[str, JsonValue]:
        """Things with their boxes: left, top, right, bottom as fractions of width and height."""
        boxes: list[JsonValue] = [
            {"name": t.name, "score": t.score, "box": [t.left, t.top, t.right, t.bottom]}
            for t in view
            if t.score >= SEEN
        ]
        return {"things": boxes}

    def answer(self, view: Things, question: Question, options: Sequence[str]) -> Finding:
        """Answers how many, whether, where and what, for the kinds that it knows."""
        match question.sort:
            case "count":
                return _count(view, question)
            case "presence":
                return _presence(view, question)
            case "where":
                return _where(view, question, options)
            case "all" | "what" if options:
                return _choose(view, question, options)
            case "all":
                best = _largest(view)
                return Finding(summary(view), best.name if best else None, _sure(best) if best else None)
            case "what":
                return _what(view, question)
            case _:
                return cannot_tell(_named(view, question))


def summary(view: Things) -> str:
    """The things in a picture, in sentences."""
    seen = _by_name(view, SURE)
    confident = [_counted(name, things) for name, things in seen.items() if things[0].score >= CONFIDENT]
    fairly = [_counted(name, things) for name, things in seen.items() if things[0].score < CONFIDENT]
    doubtful = [_counted(name, things) for name, things in _by_name(view, SEEN).items() if name not in seen]
    sentences = [f"I see {', '.join(confident)}; confident."] if confident else []
    if fairly:
        sentences.append(f"I see {', '.join(fairly)}; fairly sure.")
    if not seen:
        sentences.append("I see nothing that I know and am sure of.")
    if doubtful:
        sentences.append(f"Perhaps {', '.join(doubtful)}; unsure.")
    if (largest := _largest(view)) and sum(map(len, seen.values())) > 1:
        sentences.append(f"The largest is the {largest.name} {place(largest)}.")
    absent = [word for word in ("person", "animal", "vehicle") if not _of(view, KINDS[word], HINT)]
    if absent:
        sentences.append(f"I see no {listed(absent, 'or')}.")
    return " ".join(sentences)


def _count(view: Things, question: Question) -> Finding:
    wanted = kind_of(question.asked)
    if wanted is None:
        return cannot_tell(
            _named(view, question), what=f"how many {plural(' '.join(question.asked))} there are"
        )
    word, kind, qualified = wanted
    found, doubtful = _of(view, kind, COUNTED), _of(view, kind, HINT)
    text = _seen(word, kind, found, view)
    if qualified:
        return Finding(f"{text} Which of them are meant I cannot tell.")
    if not doubtful:
        return _absent(word, kind, "0")
    if not found:
        return Finding(f"{text} I cannot tell how many there are: I am too unsure of what I see.")
    unsure = sum(thing.score < SURE for thing in doubtful)
    confidence = max(0.1, _sure(found[-1]) * 0.9 ** (len(found) - 1 + unsure))
    return Finding(text, str(len(found)), round(_halved(confidence, kind), 3))


def _presence(view: Things, question: Question) -> Finding:
    named = mentions(question.asked, PHRASES)
    if not named:
        return cannot_tell(
            _named(view, question), what=f"whether there is {' '.join(question.asked) or 'one'}"
        )
    either = "or" in question.said
    outcomes = [_one_presence(view, mention.phrase) for mention in named]
    text = " ".join(outcome.text for outcome in outcomes)
    qualified = sum(mention.end - mention.start for mention in named) < len(question.asked)
    answers = [outcome.answer for outcome in outcomes]
    decisive = "yes" if either else "no"
    if decisive in answers:
        answer = decisive
    elif None in answers:
        return Finding(text)
    else:
        answer = answers[0]
    if qualified and answer == "yes":
        return Finding(f"{text} Whether it is as the question says I cannot tell.")
    confidence = min(outcome.confidence or 0.0 for outcome in outcomes if outcome.answer == answer)
    if question.rest and answer == "yes":
        text += " Only that it is there I can tell, nothing more of what is asked."
        confidence *= 0.7
    return Finding(text, answer, round(confidence, 3))


def _one_presence(view: Things, word: str) -> Finding:
    kind = KINDS[word]
    found, doubtful = _of(view, kind, SEEN), _of(view, kind, HINT)
    if found:
        return Finding(_seen(word, kind, found, view), "yes", _halved(_sure(found[0]), kind))
    if doubtful:
        return Finding(f"I am too unsure whether there is {a(word)}.")
    return _absent(word, kind, "no")


def _where(view: Things, question: Question, options: Sequence[str]) -> Finding:
    named = mentions(question.said, PHRASES)
    if not named:
        return cannot_tell(summary(view))
    word = named[0].phrase
    kind = KINDS[word]
    found = _of(view, kind, SEEN)
    if not found:
        return cannot_tell(f"I see no {word}.", what=f"where the {word} is")
    text = _seen(word, kind, found, view)
    if set(question.rest) - set(tokens(word)) - {"left", "right", "or", "corner", "part"}:
        return Finding(text)
    largest = max(found, key=lambda thing: thing.area)
    if not options:
        return Finding(text, place(largest), _sure(largest))
    here = {"left": {"left"}, "right": {"right"}, "centre": {"centre", "center", "middle"}}[side(largest)]
    fitting = [option for option in options if set(bare(option)) & here]
    return Finding(text, fitting[0], _sure(largest)) if len(fitting) == 1 else Finding(text)


def _what(view: Things, question: Question) -> Finding:
    """Answers `What animal is this?`: the things of a group of kinds."""
    named = [mention.phrase for mention in mentions(question.said, PHRASES) if mention.phrase in GROUPS]
    if not named or not question.plain:
        return cannot_tell(_named(view, question))
    found = _by_name(_of(view, KINDS[named[0]], SEEN), SEEN)
    if not found:
        return cannot_tell(f"I see no {named[0]} that I know.", what=f"which {named[0]} it is")
    text = f"I see {listed([_counted(name, things) for name, things in found.items()])}."
    return Finding(text, listed(list(found)), min(_sure(things[0]) for things in found.values()))


def _choose(view: Things, question: Question, options: Sequence[str]) -> Finding:
    """The option that is seen best, if no other is close and the question can be answered by looking."""
    scores: dict[str, float] = {}
    for option in options:
        kind = KINDS.get(PHRASES.get(bare(option), ""))
        if kind and kind.exact and (found := _of(view, kind, SEEN)):
            scores[option] = _sure(found[0])
    if not scores:
        return cannot_tell(f"Of the choices I see none. {summary(view)}")
    ranked = sorted(scores, key=lambda option: -scores[option])
    text = f"Of the choices I see {listed([a(option) for option in ranked])}. {summary(view)}"
    if not question.plain or (len(ranked) > 1 and scores[ranked[0]] - scores[ranked[1]] < 0.05):
        return Finding(f"{text} Which choice is right I cannot tell from that.")
    return Finding(text, ranked[0], round(scores[ranked[0]], 3))


def _of(view: Things, kind: Kind, least: float) -> Things:
    return tuple(thing for thing in view if thing.name in kind.classes and thing.score >= least)


def _by_name(view: Things, least: float) -> dict[str, list[Thing]]:
    """Things by name, in the order of each name's best score."""
    found: dict[str, list[Thing]] = {}
    for thing in view:
        if thing.score >= least:
            found.setdefault(thing.name, []).append(thing)
    return found


def _largest(view: Things) -> Thing | None:
    return max((t for t in view if t.score >= SURE), key=lambda thing: thing.area, default=None)


def _counted(name: str, things: Sequence[Thing]) -> str:
    return f"{count_of(len(things), name)} {places(things)}"


def _sure(thing: Thing) -> float:
    return round(0.5 + thing.score / 2, 3)


def _halved(confidence: float, kind: Kind) -> float:
    return confidence if kind.exact else confidence / 2


def _seen(word: str, kind: Kind, found: Things, view: Things) -> str:
    """What is seen of a kind that was asked for, doubtful things included."""
    if not found:
        return (
            f"Perhaps {listed([_counted(*item) for item in _by_name(_of(view, kind, HINT), HINT).items()])}."
        )
    text = f"I see {listed([_counted(*item) for item in _by_name(found, HINT).items()])}."
    more = len(_of(view, kind, SEEN)) - len(found)
    if more:
        text += f" There may be {number(more)} more."
    if not kind.exact:
        narrower = f"it is {a(word)}" if len(found) == 1 else f"they are {plural(word)}"
        text += f" Whether {narrower} I cannot tell for sure."
    return text


def _none(word: str, kind: Kind) -> str:
    return f"I see no {'person' if kind == KINDS['person'] else word}."


def _absent(word: str, kind: Kind, answer: str) -> Finding:
    if kind.classes <= EASILY_MISSED:
        return Finding(f"I see no {word}, but it is a thing that I easily miss, so I cannot tell.")
    return Finding(_none(word, kind), answer, ABSENT)


def _named(view: Things, question: Question) -> str:
    """What is seen of the things that a question names; a summary if it names no known thing."""
    sentences: list[str] = []
    for mention in mentions(question.said, PHRASES):
        if mention.phrase == "orange" and question.sort == "colour":
            continue
        kind = KINDS[mention.phrase]
        found = _of(view, kind, COUNTED) or _of(view, kind, SEEN)
        sentence = _seen(mention.phrase, kind, found, view) if found else _none(mention.phrase, kind)
        if sentence not in sentences:
            sentences.append(sentence)
    return " ".join(sentences) or summary(view)
