from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from nlsom.errors import UsageError
from nlsom.message import Data
from nlsom.testing.turns import make_message, make_turn
from nlsom_agents.local import catalog
from nlsom_agents.local.embed import Sentences
from nlsom_agents.retrieve import WORDS, Retrieve, passages

NOTES = {
    "sea/boats.md": "# Boats\n\nThe ferry to the island leaves at nine.\nIt takes cars.\n\n"
    "A rowing boat takes three.",
    "town.txt": "The market is held on Tuesdays. Fish is sold there, and bread.",
    "table.csv": "ferry,island",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in NOTES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


@pytest.fixture
def by_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """Vectors of words instead of the model's, so that no model is needed."""

    async def embed(_: Sentences, texts: Sequence[str]) -> np.ndarray:
        vectors = np.zeros((len(texts), 512), np.float32)
        for row, text in enumerate(texts):
            for word in text.lower().replace("?", " ").replace(".", " ").split():
                vectors[row, sum(map(ord, word)) * 31 % 512] += 1
        return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)

    monkeypatch.setattr(Sentences, "embed", embed)


def test_paragraphs_are_passages_with_the_line_they_begin_at(folder: Path) -> None:
    assert [(p.source, p.line, p.text) for p in passages(folder)] == [
        ("sea/boats.md", 1, "# Boats"),
        ("sea/boats.md", 3, "The ferry to the island leaves at nine. It takes cars."),
        ("sea/boats.md", 6, "A rowing boat takes three."),
        ("town.txt", 1, "The market is held on Tuesdays. Fish is sold there, and bread."),
    ]


def test_long_paragraphs_are_cut_and_no_word_is_lost(tmp_path: Path) -> None:
    text = " ".join(f"Sentence number {n} says a little." for n in range(100)) + " and" * 300
    (tmp_path / "long.txt").write_text(text)
    found = passages(tmp_path)
    assert " ".join(p.text for p in found).split() == text.split()
    assert max(len(p.text.split()) for p in found) <= WORDS


def test_a_file_that_is_no_text_is_told(tmp_path: Path) -> None:
    (tmp_path / "bad.txt").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="not UTF-8"):
        passages(tmp_path)


@pytest.mark.usefixtures("by_words")
async def test_it_answers_with_passages_and_their_sources(folder: Path) -> None:
    async with Retrieve(folder=str(folder), top=1) as agent:
        said = await agent.speak(make_turn("When does the ferry to the island go?"))
        asked = await agent.speak(
            make_turn("When?", heard=[make_message("On which days is the market held?")])
        )
        nothing = await agent.speak(make_turn("Zebra zoology?"))
        assert str(folder) not in agent.identity
    assert said is not None
    assert said.text == "sea/boats.md, line 3: The ferry to the island leaves at nine. It takes cars."
    assert isinstance(said.parts[1], Data)
    assert said.parts[1].value[0]["source"] == "sea/boats.md"  # type: ignore[index,call-overload]
    assert asked is not None
    assert asked.text.startswith("town.txt, line 1")
    assert nothing is None


@pytest.mark.usefixtures("by_words")
async def test_other_texts_are_another_identity(folder: Path) -> None:
    async with Retrieve(folder=str(folder)) as agent:
        before = agent.identity
    (folder / "town.txt").write_text("The market is held on Fridays.")
    async with Retrieve(folder=str(folder)) as agent:
        assert agent.identity != before


async def test_a_folder_without_texts_is_told(tmp_path: Path) -> None:
    (tmp_path / "picture.png").write_bytes(b"")
    with pytest.raises(UsageError, match="no texts .*md"):
        async with Retrieve(folder=str(tmp_path)):
            pass


def test_a_folder_that_is_not_there_is_told() -> None:
    with pytest.raises(UsageError, match="no folder"):
        Retrieve(folder="nowhere/at/all")


@pytest.mark.real_model
async def test_it_finds_by_meaning_with_the_real_model(folder: Path) -> None:
    if catalog.missing("minilm-l6-v2"):
        pytest.fail("run: nlsom models pull minilm-l6-v2")
    async with Retrieve(folder=str(folder), top=1, least=0.1) as agent:
        said = await agent.speak(make_turn("At what time does the ship sail?"))
    assert said is not None
    assert "ferry" in said.text
