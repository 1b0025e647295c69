"""Things in a picture, each with its box: NanoDet-g over the 80 classes of COCO."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from PIL import Image as Picture

from nlsom.media import MediaStore
from nlsom.message import Image
from nlsom_agents.sight.runtime import Floats, Pixels, Sight

WEIGHTS = "nanodet-g-fp16.onnx"
SIDE = 416
STRIDES = (8, 16, 32)
BINS = 11
LEAST = 0.25  # under it, what the model calls a thing is as often none
SAME = 0.5  # from this overlap (intersection over union) on, two boxes of one class are one thing
OTHER = 0.8  # the same for two classes: only boxes that are nearly equal are one thing seen as two
MEAN = np.array([103.53, 116.28, 123.675], dtype=np.float32)  # blue, green, red
SPREAD = np.array([57.375, 57.12, 58.395], dtype=np.float32)

NAMES = (
    "person", "bicycle", "car", "motorcycle", "airplane", "bus", "train", "truck", "boat", "traffic light",
    "fire hydrant", "stop sign", "parking meter", "bench", "bird", "cat", "dog", "horse", "sheep", "cow",
    "elephant", "bear", "zebra", "giraffe", "backpack", "umbrella", "handbag", "tie", "suitcase", "frisbee",
    "skis", "snowboard", "sports ball", "kite", "baseball bat", "baseball glove", "skateboard", "surfboard",
    "tennis racket", "bottle", "wine glass", "cup", "fork", "knife", "spoon", "bowl", "banana", "apple",
    "sandwich", "orange", "broccoli", "carrot", "hot dog", "pizza", "donut", "cake", "chair", "couch",
    "potted plant", "bed", "dining table", "toilet", "tv", "laptop", "mouse", "remote", "keyboard",
    "cell phone", "microwave", "oven", "toaster", "sink", "refrigerator", "book", "clock", "vase", "scissors",
    "teddy bear", "hair drier", "toothbrush",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Thing:
    """A thing that was found.

    Attributes:
        name: Its class.
        score: Between 0 and 1.
        left: Of its box; all four are shares of the picture's width or height, from the top left corner.
        top: Of its box.
        right: Of its box.
        bottom: Of its box.
    """

    name: str
    score: float
    left: float
    top: float
    right: float
    bottom: float

    @property
    def area(self) -> float:
        """Share of the picture that the box covers."""
        return (self.right - self.left) * (self.bottom - self.top)


async def things_in(sight: Sight, media: MediaStore, image: Image) -> tuple[Thing, ...]:
    """The things in a stored picture, as `detect` finds them; looked for once."""
    return await sight.look(media, image, "things", lambda picture: detect(sight, picture))


def detect(sight: Sight, picture: Pixels) -> tuple[Thing, ...]:
    """Finds things in a picture, the most certain first.

    Args:
        sight: What runs the model.
        picture: RGB, shape (height, width, 3).
    """
    planes, scale = _planes(picture)
    outputs = sight.infer(WEIGHTS, planes)
    scores = np.concatenate([output[0] for output in outputs[:3]])
    boxes = np.concatenate(
        [_boxes(output[0], stride) for output, stride in zip(outputs[3:], STRIDES, strict=True)]
    )
    classes, best = scores.argmax(axis=1), scores.max(axis=1)
    likely = best >= LEAST
    boxes, classes, best = boxes[likely], classes[likely], best[likely]
    height, width = picture.shape[:2]
    boxes = np.clip(boxes / (scale * np.array([width, height, width, height])), 0.0, 1.0)
    return tuple(
        Thing(
            NAMES[int(classes[at])], round(float(best[at]), 3), *(round(float(edge), 4) for edge in boxes[at])
        )
        for at in keep(boxes, best, classes)
    )


def keep(
    boxes: npt.NDArray[np.floating], scores: npt.NDArray[np.floating], classes: npt.NDArray[np.integer]
) -> list[int]:
    """Non-maximum suppression: one box a thing.

    Args:
        boxes: Left, top, right, bottom; shape (n, 4).
        scores: Shape (n,).
        classes: Shape (n,).

    Returns:
        Indices of the boxes that are kept, by falling score.
    """
    areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    left = np.argsort(-scores, kind="stable")
    kept: list[int] = []
    while len(left):
        first, rest = int(left[0]), left[1:]
        kept.append(first)
        near = np.maximum(boxes[first, :2], boxes[rest, :2])
        far = np.minimum(boxes[first, 2:], boxes[rest, 2:])
        shared = np.clip(far - near, 0, None).prod(axis=1)
        overlap = shared / np.maximum(areas[first] + areas[rest] - shared, 1e-9)
        left = rest[overlap < np.where(classes[rest] == classes[first], SAME, OTHER)]
    return kept


def _planes(picture: Pixels) -> tuple[Floats, float]:
    """The picture in the top left corner of a black square, normalised, as planes; and how it was scaled."""
    height, width = picture.shape[:2]
    scale = SIDE / max(height, width)
    size = max(1, round(width * scale)), max(1, round(height * scale))
    small = Picture.fromarray(picture).resize(size, Picture.Resampling.BILINEAR)
    square = np.zeros((SIDE, SIDE, 3), dtype=np.float32)
    square[: size[1], : size[0]] = np.asarray(small)[..., ::-1]
    return np.ascontiguousarray(((square - MEAN) / SPREAD).transpose(2, 0, 1)[None], dtype=np.float32), scale


def _boxes(regressed: Floats, stride: int) -> npt.NDArray[np.float64]:
    """Boxes in pixels of the square: each edge's distance is the mean of a distribution over bins.

    Generalized Focal Loss, arXiv 2006.04388.
    """
    bins = regressed.reshape(-1, 4, BINS)
    weights = np.exp(bins - bins.max(axis=-1, keepdims=True))
    away = (weights / weights.sum(axis=-1, keepdims=True)) @ np.arange(BINS, dtype=np.float32) * stride
    row, column = np.divmod(np.arange(len(bins)), SIDE // stride)
    x, y = (column + 0.5) * stride, (row + 0.5) * stride
    return np.stack([x - away[:, 0], y - away[:, 1], x + away[:, 2], y + away[:, 3]], axis=1)
