"""Reads metadata from the header of GGUF files.

The format, from the GGUF specification of the ggml project: little-endian; magic, version, two counts, then
key-value pairs.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import BinaryIO

from nlsom.errors import ModelUnavailable

# Value types by number: struct formats of those of fixed size; strings and arrays begin with their length.
_FIXED = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9


def context_length(path: Path) -> int:
    """The context length in tokens of the model in a GGUF file.

    Raises:
        ModelUnavailable: The file is not GGUF, is truncated, or does not state it.
    """
    try:
        with path.open("rb") as file:
            if file.read(4) != b"GGUF":
                raise ModelUnavailable(f"{path} is not a GGUF file")
            _, _, pairs = _unpack(file, "IQQ")
            for _ in range(pairs):
                key = _string(file)
                value = _value(file, *_unpack(file, "I"))
                if key.endswith(".context_length"):
                    return int(value or 0)
    except (struct.error, KeyError, UnicodeDecodeError, MemoryError, OverflowError) as error:
        raise ModelUnavailable(
            f"{path} is damaged: its GGUF header cannot be read; download it again"
        ) from error
    raise ModelUnavailable(f"{path} states no context length, so it is not a language model")


def _unpack(file: BinaryIO, form: str) -> tuple[int, ...]:
    return struct.unpack(f"<{form}", file.read(struct.calcsize(f"<{form}")))


def _string(file: BinaryIO) -> str:
    (length,) = _unpack(file, "Q")
    text = file.read(length)
    if len(text) < length:
        raise struct.error("the file ends inside a string")
    return text.decode()


def _value(file: BinaryIO, kind: int) -> int | None:
    """Reads a value: returns a number; skips anything else and returns None."""
    if kind == _STRING:
        (length,) = _unpack(file, "Q")
        file.seek(length, 1)
        return None
    if kind == _ARRAY:
        of, length = _unpack(file, "IQ")
        if of in _FIXED:
            file.seek(length * struct.calcsize(_FIXED[of]), 1)
        else:
            for _ in range(length):
                _value(file, of)
        return None
    return _unpack(file, _FIXED[kind])[0]
