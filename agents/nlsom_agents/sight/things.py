"""Words for the detector's classes: synonyms, narrower words and groups."""

from __future__ import annotations

from dataclasses import dataclass

from nlsom_agents.sight.detector import NAMES
from nlsom_agents.sight.words import known, mentions

# Synonyms of classes.
_SAME = {
    "person": "human, human being, somebody, someone, anybody, anyone, individual",
    "bicycle": "bike, push bike, cycle",
    "car": "automobile, auto",
    "motorcycle": "motorbike, motor cycle",
    "airplane": "aeroplane, plane, aircraft, airliner",
    "bus": "coach, autobus",
    "truck": "lorry",
    "boat": "ship, vessel, watercraft",
    "traffic light": "stoplight, traffic signal, stop light",
    "fire hydrant": "hydrant",
    "stop sign": "stop traffic sign",
    "cow": "cattle, bovine",
    "backpack": "rucksack, knapsack",
    "handbag": "purse, hand bag",
    "tie": "necktie",
    "suitcase": "luggage, baggage, travel case",
    "frisbee": "flying disc",
    "skis": "ski, pair of skis",
    "sports ball": "ball",
    "baseball glove": "baseball mitt, mitt",
    "tennis racket": "racket, racquet, tennis racquet",
    "wine glass": "wineglass, stemware",
    "cup": "mug, teacup, coffee cup, drinking cup",
    "hot dog": "hotdog",
    "pizza": "pizza pie",
    "donut": "doughnut",
    "couch": "sofa, settee, loveseat",
    "potted plant": "pot plant, houseplant, house plant, plant in a pot",
    "dining table": "table, desk",
    "toilet": "lavatory",
    "tv": "television, monitor, tv set, television set, computer monitor, computer screen, tv screen",
    "laptop": "laptop computer, notebook computer",
    "mouse": "computer mouse",
    "remote": "remote control",
    "keyboard": "computer keyboard",
    "cell phone": "cellphone, mobile phone, smartphone, phone, mobile, iphone",
    "microwave": "microwave oven",
    "oven": "stove",
    "sink": "washbasin, basin",
    "refrigerator": "fridge",
    "clock": "wall clock",
    "teddy bear": "teddy",
    "hair drier": "hair dryer, hairdryer, blow dryer",
}

# Narrower words: detected as the class, but not distinguished from other things of it.
_NARROWER = {
    "person": "man, woman, boy, girl, child, kid, baby, toddler, lady, guy, gentleman, male, female, adult, "
    "teenager, pedestrian, player, rider, skateboarder, skater, surfer, skier, cyclist, driver, passenger, "
    "spectator, astronaut, chef, pitcher, batter, catcher, tourist, worker, friend",
    "bird": "seagull, gull, duck, goose, pigeon, parrot, parakeet, vulture, owl, eagle, chicken, hen, "
    "swan, crow",
    "cat": "kitten, kitty, tabby, tomcat",
    "dog": "puppy, poodle, hound, terrier",
    "horse": "pony, foal, mare, stallion",
    "cow": "bull, calf, ox",
    "sheep": "lamb, ram",
    "bear": "grizzly, polar bear, black bear, brown bear",
    "car": "taxi, cab, suv, sedan, minivan, jeep, hatchback",
    "truck": "pickup, pickup truck, fire truck, dump truck",
    "boat": "sailboat, ferry, yacht, canoe, kayak, speedboat",
    "airplane": "jet, seaplane, biplane",
    "bus": "school bus, minibus",
    "motorcycle": "scooter, moped",
    "bottle": "wine bottle, beer bottle, water bottle",
    "sports ball": "tennis ball, soccer ball, football, basketball, baseball, volleyball",
    "chair": "armchair, office chair, stool",
    "clock": "alarm clock",
}

_GROUPS = {
    "animal": "bird, cat, dog, horse, sheep, cow, elephant, bear, zebra, giraffe",
    "pet": "cat, dog",
    "vehicle": "bicycle, car, motorcycle, airplane, bus, train, truck, boat",
    "fruit": "banana, apple, orange",
    "vegetable": "broccoli, carrot",
    "food": "banana, apple, sandwich, orange, broccoli, carrot, hot dog, pizza, donut, cake",
    "furniture": "chair, couch, bed, dining table, bench",
    "utensil": "fork, knife, spoon",
    "cutlery": "fork, knife, spoon",
    "bag": "backpack, handbag, suitcase",
    "appliance": "microwave, oven, toaster, refrigerator",
    "electronic device": "tv, laptop, cell phone, keyboard, mouse, remote",
    "electronics": "tv, laptop, cell phone, keyboard, mouse, remote",
    "computer": "laptop, tv",
}

# Small, thin or often hidden in photographs: that none is detected says little.
_EASILY_MISSED = """
bench, backpack, handbag, tie, frisbee, skis, snowboard, sports ball, kite, baseball bat, baseball glove,
tennis racket, bottle, wine glass, cup, fork, knife, spoon, apple, orange, carrot, chair, potted plant,
dining table, mouse, remote, cell phone, book, vase, scissors, hair drier, toothbrush, fire hydrant,
parking meter, boat, truck, toaster, hot dog, sandwich, banana, tv, clock, bowl
"""
EASILY_MISSED = frozenset(_EASILY_MISSED.replace("\n", " ").strip().split(", "))


@dataclass(frozen=True, slots=True)
class Kind:
    """The meaning of a word.

    Attributes:
        classes: The detector's classes of such things.
        exact: Whether all things of these classes are meant by the word.
    """

    classes: frozenset[str]
    exact: bool = True


def _table() -> dict[str, Kind]:
    table = {name: Kind(frozenset({name})) for name in NAMES}
    for name, words in _SAME.items():
        table |= {word: Kind(frozenset({name})) for word in words.split(", ")}
    for name, words in _NARROWER.items():
        table |= {word: Kind(frozenset({name}), exact=False) for word in words.split(", ")}
    return table | {group: Kind(frozenset(names.split(", "))) for group, names in _GROUPS.items()}


KINDS = _table()
GROUPS = frozenset(_GROUPS)
PHRASES = known(KINDS)


def kind_of(phrase: tuple[str, ...]) -> tuple[str, Kind, bool] | None:
    """The known word at the end of a noun phrase, its kind, and whether other words qualify it.

    None if the phrase does not end in a known word.
    """
    named = mentions(phrase, PHRASES)
    if not named or named[-1].end < len(phrase):
        return None
    word = named[-1].phrase
    return word, KINDS[word], named[-1].start > 0
