"""Image classification: EfficientNet-Lite0 with ImageNet's 1,000 classes."""

from __future__ import annotations

import json
from functools import cache

import numpy as np
from PIL import Image as Picture

from nlsom_agents.sight.finding import bare
from nlsom_agents.sight.runtime import FOLDER, Floats, Pixels, Sight
from nlsom_agents.sight.words import known

WEIGHTS = "efficientnet-lite0-fp16.onnx"
LABELS = "imagenet_labels.json"
SIDE = 224

# Common nouns and their classes: ranges of indices in ImageNet's order, and labels.
_KINDS: dict[str, tuple[range | str, ...]] = {
    "fish": (range(7), range(389, 398)),
    "shark": (range(2, 5),),
    "bird": (range(7, 25), range(80, 101), range(127, 147)),
    "chicken": ("cock", "hen"),
    "owl": ("great grey owl",),
    "eagle": ("bald eagle",),
    "parrot": ("African grey", "macaw", "sulphur-crested cockatoo", "lorikeet"),
    "duck": ("drake", "red-breasted merganser"),
    "swan": ("black swan",),
    "stork": ("white stork", "black stork"),
    "heron": ("little blue heron", "American egret", "bittern"),
    "penguin": ("king penguin",),
    "reptile": (range(33, 69),),
    "turtle": (range(33, 38),),
    "lizard": (range(38, 49),),
    "crocodile": ("African crocodile", "American alligator"),
    "snake": (range(52, 69),),
    "frog": (range(30, 33),),
    "spider": (range(72, 78),),
    "crab": (range(118, 122), "hermit crab"),
    "lobster": ("American lobster", "spiny lobster", "crayfish"),
    "whale": ("grey whale", "killer whale"),
    "dog": (range(151, 269),),
    "poodle": (range(265, 268),),
    "wolf": (range(269, 273),),
    "fox": (range(277, 281),),
    "cat": (range(281, 286),),
    "big cat": (range(286, 294),),
    "bear": (range(294, 298),),
    "polar bear": ("ice bear",),
    "insect": (range(300, 327),),
    "beetle": (range(300, 308),),
    "butterfly": (range(321, 327),),
    "rabbit": (range(330, 333),),
    "horse": ("sorrel", "horse cart"),
    "pig": ("hog", "wild boar", "warthog"),
    "cow": ("ox", "water buffalo", "bison", "oxcart"),
    "buffalo": ("water buffalo", "bison"),
    "sheep": ("ram", "bighorn"),
    "goat": ("ibex",),
    "antelope": ("hartebeest", "impala", "gazelle"),
    "camel": ("Arabian camel",),
    "monkey": (range(370, 383),),
    "ape": (range(365, 370),),
    "elephant": ("tusker", "Indian elephant", "African elephant"),
    "panda": ("lesser panda", "giant panda"),
    "animal": (range(398),),
    "flower": ("daisy", "yellow lady's slipper", "rapeseed"),
    "mushroom": (range(991, 998), "mushroom"),
    "coffee": ("espresso", "coffee mug", "coffeepot", "espresso maker"),
    "drink": ("espresso", "eggnog", "red wine", "beer glass"),
    "wine": ("red wine", "wine bottle"),
    "beer": ("beer glass", "beer bottle"),
    "cup": ("cup", "coffee mug", "espresso", "measuring cup"),
    "mug": ("coffee mug",),
    "bottle": ("beer bottle", "pop bottle", "water bottle", "wine bottle", "pill bottle", "whiskey jug"),
    "bread": ("French loaf", "bagel", "pretzel", "dough"),
    "sandwich": ("cheeseburger", "hotdog"),
    "burger": ("cheeseburger",),
    "soup": ("consomme", "hot pot", "soup bowl"),
    "pasta": ("carbonara",),
    "dessert": ("trifle", "ice cream", "ice lolly", "chocolate sauce"),
    "vegetable": (range(936, 947),),
    "fruit": (range(948, 958),),
    "apple": ("Granny Smith",),
    "squash": ("spaghetti squash", "acorn squash", "butternut squash"),
    "food": (range(924, 970),),
    "car": ("cab", "convertible", "jeep", "limousine", "minivan", "Model T", "racer", "sports car",
            "beach wagon"),
    "taxi": ("cab",),
    "truck": ("fire engine", "garbage truck", "moving van", "pickup", "tow truck", "trailer truck"),
    "bus": ("minibus", "school bus", "trolleybus"),
    "train": ("bullet train", "electric locomotive", "freight car", "passenger car", "steam locomotive"),
    "tram": ("streetcar",),
    "airplane": ("airliner", "warplane", "wing"),
    "bicycle": ("bicycle-built-for-two", "mountain bike"),
    "motorcycle": ("moped", "motor scooter"),
    "boat": ("canoe", "catamaran", "fireboat", "gondola", "lifeboat", "schooner", "speedboat", "trimaran",
             "yawl"),
    "ship": ("aircraft carrier", "container ship", "liner", "pirate", "wreck", "schooner"),
    "rocket": ("missile", "projectile", "space shuttle"),
    "building": (
        "barn", "bell cote", "boathouse", "castle", "church", "cinema", "cliff dwelling", "dome",
        "greenhouse", "library", "mobile home", "monastery", "mosque", "palace", "planetarium", "prison",
        "restaurant", "stupa", "tile roof", "yurt",
    ),
    "temple": ("stupa", "monastery", "palace"),
    "bridge": ("steel arch bridge", "suspension bridge", "viaduct"),
    "clock": ("analog clock", "digital clock", "wall clock"),
    "watch": ("digital watch", "stopwatch"),
    "computer": ("desktop computer", "laptop", "notebook", "hand-held computer"),
    "keyboard": ("computer keyboard", "typewriter keyboard", "space bar"),
    "screen": ("screen", "monitor", "television"),
    "phone": ("cellular telephone", "dial telephone", "pay-phone"),
    "chair": ("barber chair", "folding chair", "rocking chair", "throne"),
    "couch": ("studio couch",),
    "bed": ("four-poster", "studio couch", "cradle", "crib"),
    "table": ("dining table", "desk", "pool table"),
    "lamp": ("table lamp", "lampshade", "spotlight"),
    "guitar": ("acoustic guitar", "electric guitar"),
    "piano": ("grand piano", "upright"),
    "ball": (
        "baseball", "basketball", "croquet ball", "golf ball", "ping-pong ball", "rugby ball", "soccer ball",
        "tennis ball", "volleyball",
    ),
    "helmet": ("crash helmet", "football helmet", "pickelhaube"),
    "hat": ("bearskin", "bonnet", "cowboy hat", "sombrero", "mortarboard"),
    "mountain": ("alp", "volcano"),
    "beach": ("lakeside", "sandbar", "seashore"),
    "lake": ("lakeside",),
}  # fmt: skip
_ALSO = {
    "kitten": "cat", "puppy": "dog", "plane": "airplane", "aeroplane": "airplane", "aircraft": "airplane",
    "bike": "bicycle", "motorbike": "motorcycle", "sofa": "couch", "automobile": "car", "pony": "horse",
    "pagoda": "temple", "lorry": "truck", "television": "screen", "telephone": "phone", "teacup": "cup",
}  # fmt: skip

# Nouns that say little, and whose many classes collect probability from every doubtful picture.
BROAD = frozenset(
    {
        "animal",
        "food",
        "vegetable",
        "fruit",
        "drink",
        "building",
        "insect",
        "reptile",
        "dessert",
        "ball",
        "fish",
    }
)


@cache
def labels() -> tuple[str, ...]:
    """ImageNet's labels in the model's order, each by its most common name."""
    return tuple(json.loads((FOLDER / LABELS).read_text(encoding="utf-8")))


@cache
def kinds() -> dict[str, frozenset[int]]:
    """Labels and common nouns, with the indices of their classes."""
    every = labels()
    table: dict[str, set[int]] = {}
    for at, label in enumerate(every):
        table.setdefault(label.casefold(), set()).add(at)
    for noun, held in _KINDS.items():
        places = (
            place for part in held for place in ([every.index(part)] if isinstance(part, str) else part)
        )
        table.setdefault(noun, set()).update(places)
    for word, noun in _ALSO.items():
        table.setdefault(word, set()).update(table[noun])
    return {noun: frozenset(places) for noun, places in table.items()}


@cache
def phrases() -> dict[tuple[str, ...], str]:
    """The names in `kinds` by their tokens, for `mentions`."""
    return known(kinds())


@cache
def nouns() -> tuple[str, ...]:
    """The common nouns, those with the fewest classes first."""
    table = kinds()
    return tuple(sorted(_KINDS, key=lambda noun: len(table[noun])))


def tag(sight: Sight, picture: Pixels) -> Floats:
    """Classifies a picture: probabilities, shape (1000,), summing to 1.

    Averages over two crops: the middle square, which keeps the shape of things, and the whole picture
    squeezed into a square, which includes the edges.
    """
    height, width = picture.shape[:2]
    short = min(height, width)
    image = Picture.fromarray(picture)
    left, top = (width - short) // 2, (height - short) // 2
    middle = (left, top, left + short, top + short)
    shares = [
        _softmax(sight.infer(WEIGHTS, _planes(image, box))[0][0]) for box in (middle, (0, 0, width, height))
    ]
    return np.asarray((shares[0] + shares[1]) / 2, dtype=np.float32)


def _planes(image: Picture.Image, box: tuple[int, int, int, int]) -> Floats:
    small = image.resize((SIDE, SIDE), Picture.Resampling.BICUBIC, box=box)
    return np.ascontiguousarray(
        ((np.asarray(small, dtype=np.float32) - 127) / 128).transpose(2, 0, 1)[None], dtype=np.float32
    )


def _softmax(logits: Floats) -> Floats:
    weights = np.exp(logits - logits.max())
    return np.asarray(weights / weights.sum(), dtype=np.float32)


def noun_of(option: str) -> str | None:
    """The label or common noun that an option is, apart from articles; None if it is neither."""
    return phrases().get(bare(option))
