"""`colour`: an expert that names the colours of things, of the background, and of the whole picture."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from pydantic import JsonValue

from nlsom.media import MediaStore
from nlsom.message import Image
from nlsom_agents.sight import detector
from nlsom_agents.sight.detector import Thing
from nlsom_agents.sight.expert import Expert
from nlsom_agents.sight.finding import Finding, cannot_tell
from nlsom_agents.sight.palette import Box, Shares, colours_named, name_pixels, shares
from nlsom_agents.sight.places import on_side, place
from nlsom_agents.sight.question import Question
from nlsom_agents.sight.runtime import digest_of
from nlsom_agents.sight.things import PHRASES, kind_of
from nlsom_agents.sight.words import listed, mentions, tokens

CENTRE: Box = (0.3, 0.3, 0.7, 0.7)
INSIDE: Box = (0.15, 0.15, 0.85, 0.85)  # the rest of the picture is its border
FOUND = 0.3  # least detection score of a thing
HAS = 0.35  # least share of a colour that a thing has
HAS_NOT = 0.1  # a smaller share means that it does not have the colour

# Parts of the picture by name.
_PARTS: dict[str, Box] = {
    "sky": (0, 0, 1, 0.2),
    "ceiling": (0, 0, 1, 0.15),
    **dict.fromkeys(("ground", "floor", "road", "street", "grass", "court", "field"), (0, 0.75, 1, 1)),
    **dict.fromkeys(("picture", "image", "photo", "photograph", "scene"), (0, 0, 1, 1)),
}
# Where clothes are, as fractions of a person's box: of a whole figure, and of head and shoulders.
_UPPER = "shirt jacket suit coat dress sweater top uniform jersey vest blouse"
_LOWER = "pants trousers jeans shorts skirt"
_HEAD = "hair hat cap helmet"
_STANDING: dict[str, Box] = {
    _UPPER: (0.3, 0.25, 0.7, 0.5),
    _LOWER: (0.3, 0.55, 0.7, 0.8),
    _HEAD: (0.35, 0, 0.65, 0.12),
}
_BUST: dict[str, Box] = {_UPPER: (0.2, 0.55, 0.8, 0.9), _HEAD: (0.35, 0, 0.65, 0.15)}


@dataclass(frozen=True, slots=True)
class Palette:
    """The colours of a picture, and the things in it.

    Attributes:
        named: Each pixel's colour, from `nlsom_agents.sight.palette.name_pixels`.
        things: What the detector found.
        aspect: Width of the picture divided by its height.
    """

    named: npt.NDArray[np.intp]
    things: tuple[Thing, ...]
    aspect: float


class Colour(Expert[Palette]):
    """Names the colours of a picture, of its centre and border, and of things in it.

    For a thing that the detector finds, it looks at the middle of its box. For other things it looks at the
    middle of the picture if that has one main colour which the border lacks; else it cannot tell. Its
    confidence is the colour's share of that part, times the certainty that it is the right part.
    """

    @property
    def identity(self) -> str:
        """Name, version and the weights' digest."""
        return f"colour/2 nanodet-g {digest_of(detector.WEIGHTS)}"

    async def view(self, media: MediaStore, image: Image) -> Palette:
        """The colours of the picture and the things in it."""
        things = await detector.things_in(self.sight, media, image)
        named = await self.sight.look(media, image, "colours", name_pixels)
        return Palette(named, things, image.width / image.height)

    def introduce(self, view: Palette) -> Finding:
        """The main colours of the whole, the centre and the border, and of the largest things."""
        return Finding(summary(view))

    def data(self, view: Palette) -> dict[str, JsonValue]:
        """Shares of the colours in the whole picture and its centre."""
        whole: dict[str, JsonValue] = dict(shares(view.named))
        middle: dict[str, JsonValue] = dict(shares(view.named, CENTRE))
        return {"whole": whole, "centre": middle}

    def answer(self, view: Palette, question: Question, options: Sequence[str]) -> Finding:
        """Answers what colour something is, and whether it has a colour; other questions it cannot tell."""
        asked = colours_named(question.text)
        wants_name = question.sort == "colour"
        yes_or_no = re.match(r"\W*(?:is|are|does|do)\b", question.text, re.I)
        if not wants_name and not (asked and yes_or_no and question.sort in ("presence", "other", "where")):
            return Finding("I see nothing but colours, so I cannot tell.")
        region = _region(view, question)
        if region is None:
            return cannot_tell(summary(view), what="what part of the picture is meant")
        where, found, sure = region
        text = f"{where[0].upper()}{where[1:]} is {_listed(found)}."
        if yes_or_no and asked:
            return _has(text, found, asked, sure)
        if options:
            return _choose(text, found, options, sure)
        if found and (main := _main(found)):
            share = sum(found[name] for name in main)
            return Finding(text, " and ".join(main), round(min(1.0, share) * sure, 3))
        return Finding(f"{text} Which colour is meant I cannot tell.")


def summary(view: Palette) -> str:
    """The colours of a picture, in sentences."""
    whole, middle = shares(view.named), shares(view.named, CENTRE)
    border = shares(view.named, INSIDE, outside=True)
    text = f"Main colours: {_listed(whole)}. The centre is {_listed(middle)}, the border {_listed(border)}."
    seen = [thing for thing in view.things if thing.score >= 0.45]
    largest = sorted(seen, key=lambda thing: -thing.area)[:3]
    things = [
        f"the {thing.name} {place(thing)} is {_listed(shares(view.named, _middle(thing)))}"
        for thing in largest
    ]
    return f"{text} By things: {'; '.join(things)}." if things else text


def _region(view: Palette, question: Question) -> tuple[str, Shares, float] | None:
    """The part that a question means: its name, its colours, and the certainty that it is the right one."""
    said = [token for token in question.said if token not in colours_named(question.text)]
    if "background" in said or "wall" in said:
        return "the border of the picture", shares(view.named, INSIDE, outside=True), 0.7
    for word in (word for word in said if word in _PARTS):
        return f"the part where one expects the {word}", shares(view.named, _PARTS[word]), 0.7
    worn = _worn(view, said)
    if worn is not None:
        return worn
    subject = _subject(question)
    found, clear = _things(view, question, subject)
    if found:
        outermost = on_side(found, said)
        thing = outermost or max(found, key=lambda thing: thing.area * thing.score)
        where = f"the {thing.name} {place(thing)}"
        part = where, shares(view.named, _middle(thing)), 0.5 + thing.score / 2
        return part if clear or outermost else None
    if question.sort != "colour" or mentions(question.said, PHRASES):
        return None
    middle, border = shares(view.named, CENTRE), shares(view.named, INSIDE, outside=True)
    main = next(iter(middle))
    if middle[main] >= 0.5 and border.get(main, 0.0) < 0.15:
        return f"what stands out in the middle, if that is the {' '.join(subject) or 'thing'},", middle, 0.5
    return None


def _things(view: Palette, question: Question, subject: tuple[str, ...]) -> tuple[list[Thing], bool]:
    """The things that a question's subject may mean, and whether it is clear which.

    It is unclear if there are several, and the question has details that the detector cannot check.
    """
    wanted = kind_of(subject)
    if wanted is None:
        return [], False
    _, kind, qualified = wanted
    found = [thing for thing in view.things if thing.name in kind.classes and thing.score >= FOUND]
    more = any(token not in subject and not colours_named(token) for token in question.rest)
    return found, len(found) == 1 or (kind.exact and not qualified and not more)


def _worn(view: Palette, said: Sequence[str]) -> tuple[str, Shares, float] | None:
    """The part of the largest person where the clothing that the question names would be."""
    people = [thing for thing in view.things if thing.name == "person" and thing.score >= FOUND]
    if not people:
        return None
    person = on_side(people, said) or max(people, key=lambda thing: thing.area)
    tall = (person.bottom - person.top) > 1.6 * view.aspect * (person.right - person.left)
    for words, part in (_STANDING if tall else _BUST).items():
        if named := [word for word in words.split() if word in said]:
            where = f"the part where one expects the {named[0]} of the person {place(person)}"
            return where, shares(view.named, _within(person, part)), 0.6
    return None


def _subject(question: Question) -> tuple[str, ...]:
    """The noun phrase whose colour is asked for: `what colour is the big cat on …` gives big, cat."""
    text = question.text.casefold()
    found = re.search(
        r"\bcolou?rs?\s+(?:is|are|was|were)\s+(?:the|his|her|its|their|this|that|these|those|a|an)?\s*(.*)"
        r"|\bcolou?rs?\s+of\s+(?:the|this|that|these|those|a|an)?\s*(.*)"
        r"|\bcolou?red?\s+(\w+).*|^(?:is|are)\s+(?:there\s+)?(?:the|this|that|these|those|a|an|any|some)?\s*(.*)",
        text,
    )
    phrase = next((group for group in found.groups() if group), "") if found else ""
    phrase = re.split(
        r"\b(?:in|on|at|of|near|next|behind|under|with|wearing|that|who|is|are)\b|[,.;?!]", phrase
    )[0]
    return tuple(word for word in tokens(phrase) if word == "orange" or not colours_named(word))


def _has(text: str, found: Shares, asked: Sequence[str], sure: float) -> Finding:
    share = sum(found.get(name, 0.0) for name in asked)
    if share >= HAS:
        return Finding(text, "yes", round((0.5 + share / 2) * sure, 3))
    if share < HAS_NOT:
        return Finding(text, "no", round((1 - share) * sure, 3))
    return Finding(f"{text} Whether that makes it {listed(list(asked))} I cannot tell.")


def _choose(text: str, found: Shares, options: Sequence[str], sure: float) -> Finding:
    """The option whose colours have the largest share; all colours of an option must be present."""
    fits: dict[str, float] = {}
    for option in options:
        names = colours_named(option)
        if names and all(found.get(name, 0.0) >= HAS_NOT for name in names):
            fits[option] = sum(found[name] for name in names)
    if not fits:
        return Finding(f"{text} That is none of the choices, so I cannot tell.")
    ranked = sorted(fits, key=lambda option: -fits[option])
    if fits[ranked[0]] < 0.25 or (len(ranked) > 1 and fits[ranked[0]] < 1.5 * fits[ranked[1]]):
        return Finding(f"{text} Which choice is right I cannot tell from that.")
    return Finding(text, ranked[0], round(min(1.0, fits[ranked[0]]) * sure, 3))


def _main(found: Shares) -> list[str]:
    """The one or two main colours of a part; empty if it has many."""
    (first, most), *others = found.items()
    if most < 0.3:
        return []
    return [first, others[0][0]] if others and others[0][1] >= max(0.25, 0.6 * most) else [first]


def _listed(found: Shares) -> str:
    colours = [f"{name} ({100 * share:.0f} %)" for name, share in found.items() if share >= 0.1]
    return listed(colours[:4]) or "of many colours"


def _middle(thing: Thing) -> Box:
    return _within(thing, (0.25, 0.25, 0.75, 0.75))


def _within(thing: Thing, part: Box) -> Box:
    width, height = thing.right - thing.left, thing.bottom - thing.top
    return (
        thing.left + part[0] * width,
        thing.top + part[1] * height,
        thing.left + part[2] * width,
        thing.top + part[3] * height,
    )
