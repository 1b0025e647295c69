"""Sample pictures ship with nlsom, and pass its gate as they are."""

from __future__ import annotations

import hashlib
import json

import pytest

from nlsom.errors import UsageError
from nlsom.media import MediaStore
from nlsom_societies import samples


@pytest.mark.parametrize("name", samples.NAMES)
async def test_every_sample_passes_the_gate_byte_for_byte(name: str) -> None:
    store = MediaStore()
    path = samples.sample(name)
    image = await store.add(path)
    assert await store.read(image) == path.read_bytes()


def test_an_unknown_sample_is_an_error_that_lists_the_samples() -> None:
    with pytest.raises(UsageError, match="'dog'; there are pagoda, flower, coffee, cat"):
        samples.sample("dog")


def test_the_shipped_files_speak_of_the_shipped_photographs() -> None:
    captions = json.loads((samples.FOLDER / "captions_sample.json").read_text())
    for image in captions["images"]:
        data = (samples.FOLDER / "images" / image["file_name"]).read_bytes()
        assert hashlib.sha256(data).hexdigest() == image["sha256"]
        assert image["attribution"]
        assert image["license"] in {licence["id"] for licence in captions["licenses"]}
    known = {image["id"] for image in captions["images"]}
    questions = json.loads((samples.FOLDER / "v2_OpenEnded_mscoco_sample2026_questions.json").read_text())
    annotations = json.loads((samples.FOLDER / "v2_mscoco_sample2026_annotations.json").read_text())
    choices = json.loads((samples.FOLDER / "aokvqa_v1p0_sample.json").read_text())
    for rows in (captions["annotations"], questions["questions"], annotations["annotations"], choices):
        assert {row["image_id"] for row in rows} <= known
