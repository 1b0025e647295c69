"""Sample pictures shipped with nlsom, for first steps, examples and tests."""

from __future__ import annotations

from pathlib import Path

from nlsom.errors import UsageError

FOLDER = Path(__file__).parent
"""Contains `images/`, and questions, annotations and captions for the photographs in the official formats."""

_FILES = {
    "pagoda": "900000000001.jpg",
    "flower": "900000000002.jpg",
    "coffee": "900000000003.jpg",
    "cat": "900000000004.jpg",
    "astronaut": "900000000005.jpg",
    "rocket": "900000000006.jpg",
    "page": "page.png",
}
NAMES = tuple(_FILES)
"""Names of the sample pictures: six photographs and a printed page."""


def sample(name: str) -> Path:
    """The path of a sample picture.

    Args:
        name: One of `NAMES`, such as "cat".

    Raises:
        UsageError: There is no sample of that name.
    """
    try:
        return FOLDER / "images" / _FILES[name]
    except KeyError as error:
        raise UsageError(f"no sample picture is named {name!r}; there are {', '.join(NAMES)}") from error
