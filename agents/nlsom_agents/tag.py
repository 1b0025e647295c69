"""`tag`: an expert that says what a picture as a whole looks like (EfficientNet-Lite0, ImageNet)."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import JsonValue

from nlsom.media import MediaStore
from nlsom.message import Image
from nlsom_agents.sight import tagger
from nlsom_agents.sight.expert import Expert
from nlsom_agents.sight.finding import Finding, cannot_tell
from nlsom_agents.sight.question import Question
from nlsom_agents.sight.runtime import Floats, digest_of
from nlsom_agents.sight.words import a, listed, mentions

# Least probabilities:
CERTAIN = 0.45  # to state something plainly
PERHAPS = 0.3  # to state it with "perhaps"
POSSIBLE = 0.15  # to name a class beside the likeliest, or vote for an option
AHEAD = 2.0  # how many times as likely as the next an option must be to vote for it


class Tag(Expert[Floats]):
    """Names what a picture shows as a whole, out of 1,000 classes and common nouns that group them.

    Its confidence is the model's probability. It may say that something is there, never that it is absent,
    since small or distant things hardly affect how the whole picture is classified.
    """

    @property
    def identity(self) -> str:
        """Name, version and the weights' digest."""
        return f"tag/1 efficientnet-lite0 {digest_of(tagger.WEIGHTS)}"

    async def view(self, media: MediaStore, image: Image) -> Floats:
        """The probability of each class, shape (1000,)."""
        return await self.sight.look(media, image, "tag", lambda picture: tagger.tag(self.sight, picture))

    def introduce(self, view: Floats) -> Finding:
        """What the picture looks like: a common noun and the likeliest classes."""
        return Finding(summary(view))

    def data(self, view: Floats) -> dict[str, JsonValue]:
        """The five likeliest classes."""
        return {"tags": [{"name": name, "probability": share} for name, share in _top(view, 5)]}

    def answer(self, view: Floats, question: Question, options: Sequence[str]) -> Finding:
        """Answers what it is and whether it is there; otherwise says how likely the things named are."""
        match question.sort:
            case "presence":
                return _presence(view, question)
            case "all" | "what" if options:
                return _choose(view, question, options)
            case "all":
                noun, share = _likeliest(view)
                return Finding(summary(view), noun, share) if share >= CERTAIN else Finding(summary(view))
            case "what":
                return _what(view, question)
            case _:
                return cannot_tell(_named(view, question) or summary(view))


def summary(view: Floats) -> str:
    """What the picture looks like as a whole, in sentences."""
    noun, share = _likeliest(view)
    if share < PERHAPS:
        return "As a whole the picture looks like nothing that I know."
    looks = "looks like" if share >= CERTAIN else "perhaps shows"
    text = f"As a whole the picture {looks} {a(noun)} ({_percent(share)})."
    named = [
        f"{name} ({_percent(part)})" for name, part in _top(view, 3) if part >= POSSIBLE and name != noun
    ]
    return f"{text} Most like: {', '.join(named)}." if named else text


def _presence(view: Floats, question: Question) -> Finding:
    named = [mention.phrase for mention in mentions(question.asked, tagger.phrases())]
    if not named:
        return cannot_tell(summary(view))
    text = _probabilities(view, named)
    share = _share(view, named[0])
    if tagger.phrases().get(question.asked) and share >= 0.5:
        return Finding(text, "yes", share * (0.7 if question.rest else 1.0))
    return Finding(f"{text} That says nothing about small things and the background, so I cannot tell.")


def _choose(view: Floats, question: Question, options: Sequence[str]) -> Finding:
    shares = {option: _share(view, noun) for option in options if (noun := tagger.noun_of(option))}
    if not shares:
        return cannot_tell(f"I know none of the choices. {summary(view)}")
    ranked = sorted(shares, key=lambda option: -shares[option])
    text = f"Of the choices: {', '.join(f'{option} {_percent(shares[option])}' for option in ranked)}."
    next_best = shares[ranked[1]] if len(ranked) > 1 else 0.0
    if not question.plain or shares[ranked[0]] < POSSIBLE or shares[ranked[0]] < AHEAD * next_best:
        return Finding(f"{text} Which choice is right I cannot tell from that.")
    return Finding(text, ranked[0], shares[ranked[0]])


def _what(view: Floats, question: Question) -> Finding:
    """Answers `What animal is this?`, `what kind of dog`: the likeliest class within the noun."""
    held = [m.phrase for m in mentions(question.said, tagger.phrases()) if len(tagger.kinds()[m.phrase]) > 1]
    if not held or not question.plain:
        return cannot_tell(summary(view))
    within = tagger.kinds()[held[0]]
    if _share(view, held[0]) < CERTAIN:
        return cannot_tell(_probabilities(view, held[:1]))
    narrower = [
        noun for noun in tagger.nouns() if tagger.kinds()[noun] < within and _share(view, noun) >= CERTAIN
    ]
    label, share = max(
        ((tagger.labels()[at], round(float(view[at]), 3)) for at in within), key=lambda pair: pair[1]
    )
    if narrower:
        noun = max(narrower, key=lambda noun: _share(view, noun))
        return Finding(
            f"{_probabilities(view, [noun])} Most like: {label} ({_percent(share)}).",
            noun,
            _share(view, noun),
        )
    if share < CERTAIN:
        return cannot_tell(_probabilities(view, held[:1]))
    return Finding(f"It looks like {a(label)} ({_percent(share)}).", label, share)


def _named(view: Floats, question: Question) -> str:
    named = list(dict.fromkeys(m.phrase for m in mentions(question.said, tagger.phrases())))
    return _probabilities(view, named) if named else ""


def _probabilities(view: Floats, nouns: Sequence[str]) -> str:
    said = listed([f"{a(noun)} with {_percent(_share(view, noun))}" for noun in nouns])
    return f"As a whole the picture shows {said} probability."


def _share(view: Floats, noun: str) -> float:
    return round(min(1.0, float(sum(view[at] for at in tagger.kinds()[noun]))), 3)


def _likeliest(view: Floats) -> tuple[str, float]:
    """The narrowest common noun that is probable, else the likeliest class or noun that is not broad."""
    label, share = _top(view, 1)[0]
    for noun in tagger.nouns():
        if _share(view, noun) >= 0.5 and not (share >= 0.5 and noun in tagger.BROAD):
            return noun, _share(view, noun)
    narrow = [(noun, _share(view, noun)) for noun in tagger.nouns() if noun not in tagger.BROAD]
    return max([(label, share), *narrow], key=lambda pair: pair[1])


def _top(view: Floats, count: int) -> list[tuple[str, float]]:
    return [(tagger.labels()[int(at)], round(float(view[at]), 3)) for at in view.argsort()[::-1][:count]]


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
