"""Declarations of the captioning sets."""

from __future__ import annotations

from nlsom.bench.sets.common import COCO_FOLDERS, FLICKR, JSONL, PARQUET, SEE_SOURCE
from nlsom.bench.sets.convert import Caption, coco_captions
from nlsom.bench.sets.spec import Files, Hub, Spec
from nlsom.task import CaptionTask

SETS = (
    Spec(
        name="coco-captions",
        about="Captions of COCO photographs, five references each.",
        scorer="captions",
        licence="captions CC BY 4.0" + FLICKR,
        source="https://cocodataset.org/#download",
        layouts=(Files("captions*.json", read=coco_captions), PARQUET),
        convert=Caption(id="id", references="captions[]|answer[]", picture="@image|{file_name}"),
        task=CaptionTask,
        folders=COCO_FOLDERS,
        tried=True,
        hub=Hub("lmms-lab/COCO-Caption2017", "data/val-*"),
    ),
    Spec(
        name="nocaps",
        about="Captions of objects that are not in COCO, ten references each.",
        scorer="captions",
        licence="CC BY 2.0",
        source="https://nocaps.org/download",
        layouts=(Files("nocaps*.json", read=coco_captions), PARQUET),
        convert=Caption(
            id="id|image_id",
            references="captions[]|annotations_captions[]",
            picture="@image|{file_name}",
            meta=("domain",),
        ),
        task=CaptionTask,
        hub=Hub("lmms-lab/NoCaps", "data/validation-*"),
    ),
    Spec(
        name="flickr30k",
        about="Captions of Flickr photographs, five references each.",
        scorer="captions",
        licence=SEE_SOURCE,
        source="https://shannon.cs.illinois.edu/DenotationGraph/",
        layouts=(Files("dataset_flickr30k.json", "images"), PARQUET),
        convert=Caption(
            id="imgid|img_id", references="sentences[].raw|caption[]", picture="@image|@filename"
        ),
        task=CaptionTask,
        folders=("flickr30k-images", "images", "."),
        hub=Hub("lmms-lab/flickr30k", "data/test-*"),
    ),
    Spec(
        name="textcaps",
        about="Captions that include the text in a picture (in the hub's format).",
        scorer="captions",
        licence="CC BY 4.0",
        source="https://textvqa.org/textcaps/dataset",
        layouts=(PARQUET, JSONL),
        convert=Caption(
            id="image_id", references="caption_str[]|reference_strs[]", picture="@image|{image_id}.jpg"
        ),
        task=CaptionTask,
        folders=("train_images", "images", "."),
        hub=Hub("lmms-lab/TextCaps", "data/val-*"),
    ),
    Spec(
        name="tara",
        about="News photographs; a caption should say what is happening, where and when.",
        scorer="tara",
        licence=SEE_SOURCE,
        source="https://github.com/zeyofu/TARA",
        layouts=(Files("gold_test.jsonl"), Files("input/gold_test.jsonl"), JSONL),
        convert=Caption(
            id="_id|number",
            references="caption|abstract",
            picture="@local_image|@image|@image_url",
            meta=("headline", "gold_location_suggest", "gold_time_suggest"),
        ),
        task=CaptionTask,
    ),
)
