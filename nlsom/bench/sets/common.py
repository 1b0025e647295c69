"""Constants shared by the declarations of sets."""

from __future__ import annotations

from nlsom.bench.sets.spec import Files

COCO = "@image|{image_id:012d}.jpg|COCO_val2014_{image_id:012d}.jpg|COCO_train2014_{image_id:012d}.jpg"
"""Where to find COCO's pictures: a column, or their file names (as in `Question.picture`)."""

COCO_FOLDERS = ("images", ".", "val2014", "val2017", "train2014", "train2017", "test2015", "test2017")
PARQUET = Files("**/*.parquet")
JSONL = Files("*.jsonl")
VQA_META = ("question_type", "answer_type", "image_id")
FLICKR = ", photographs under their Flickr licences"
SEE_SOURCE = "see the source"
