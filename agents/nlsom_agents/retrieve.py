"""An agent that finds passages in a folder of texts."""

from __future__ import annotations

import asyncio
import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Self

from pydantic import Field, PositiveInt

from nlsom.errors import UsageError
from nlsom.message import Said
from nlsom.nesting import beside
from nlsom.tool import asked
from nlsom.turn import Turn
from nlsom_agents.local.embed import MODEL, Sentences

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

WORDS = 120
"""Longest passage; the model of sentence vectors reads about twice as many tokens."""
ENDINGS = (".txt", ".md", ".rst")


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of a text: its file, below the folder; its first line, from 1; its words."""

    source: str
    line: int
    text: str


class Retrieve:
    """A member that answers with those passages of a folder that are most like what is asked; with sources.

    What is asked is the question, and what was said last of all that its seat hears.

    Args:
        folder: Of texts (.txt, .md, .rst), beside the society's file; read when the society is opened.
        top: How many passages it says.
        least: Passages less like the question than this cosine are left out.
    """

    def __init__(
        self,
        *,
        folder: str,
        top: PositiveInt = 3,
        least: Annotated[float, Field(ge=-1, le=1)] = 0.2,
    ) -> None:
        self.model = Sentences()
        self._folder, self._top, self._least = beside(Path(folder)), top, least
        if not self._folder.is_dir():
            raise UsageError(f"there is no folder {str(self._folder)!r} of texts to look in")
        self._passages: list[Passage] = []
        self._vectors: NDArray[np.float32] | None = None

    @property
    def identity(self) -> str:
        """The model, the parameters and a digest of all passages; never the folder."""
        told = hashlib.sha256("\x1f".join(f"{p.source}:{p.line}:{p.text}" for p in self._passages).encode())
        return f"retrieve/1 {MODEL} {told.hexdigest()} {self._top} {self._least}"

    async def __aenter__(self) -> Self:
        self._passages = await asyncio.to_thread(passages, self._folder)
        if not self._passages:
            raise UsageError(f"there are no texts ({', '.join(ENDINGS)}) in {str(self._folder)!r}")
        self._vectors = await self.model.embed([passage.text for passage in self._passages])
        return self

    async def __aexit__(self, *_: object) -> None:
        self._vectors = None

    async def speak(self, turn: Turn) -> Said | None:
        """The passages, the likest first, each after its source; nothing where none is like it."""
        if self._vectors is None:
            return None
        heard = asked(turn)
        question = turn.task.question if heard == turn.task.question else f"{turn.task.question}\n{heard}"
        likeness = self._vectors @ (await self.model.embed([question]))[0]
        best = [int(at) for at in (-likeness).argsort(kind="stable")[: self._top]]
        found = [(self._passages[at], float(likeness[at])) for at in best if likeness[at] >= self._least]
        if not found:
            return None
        words = "\n".join(f"{passage.source}, line {passage.line}: {passage.text}" for passage, _ in found)
        return Said.words(
            words,
            data=[
                {"source": passage.source, "line": passage.line, "likeness": round(alike, 4)}
                for passage, alike in found
            ],
        )


def passages(folder: Path) -> list[Passage]:
    """All passages below a folder: paragraphs, long ones cut between sentences.

    Raises:
        UsageError: A file is not UTF-8 text.
    """
    found: list[Passage] = []
    for file in sorted(path for path in folder.rglob("*") if path.suffix.lower() in ENDINGS):
        try:
            text = file.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise UsageError(f"{file}: not UTF-8 text (byte {error.start})") from None
        source = file.relative_to(folder).as_posix()
        for paragraph in re.finditer(r"\S(?:.*\S)?(?:\n[^\S\n]*\S.*)*", text):
            line = text.count("\n", 0, paragraph.start()) + 1
            found += [Passage(source, line, piece) for piece in _pieces(" ".join(paragraph[0].split()))]
    return found


def _pieces(paragraph: str) -> list[str]:
    """Of at most `WORDS` words, cut between sentences where that can be."""
    pieces: list[str] = []
    for sentence in re.split(r"(?<=[.!?])\s+", paragraph):
        words = sentence.split()
        for part in (" ".join(words[at : at + WORDS]) for at in range(0, len(words), WORDS)):
            if pieces and len(pieces[-1].split()) + len(part.split()) <= WORDS:
                pieces[-1] += " " + part
            else:
                pieces.append(part)
    return pieces
