"""Declarations of the sets with open questions."""

from __future__ import annotations

from nlsom.bench.sets.common import COCO, COCO_FOLDERS, FLICKR, JSONL, PARQUET, SEE_SOURCE, VQA_META
from nlsom.bench.sets.convert import Question, by_key
from nlsom.bench.sets.spec import Files, Hub, Spec

SETS = (
    Spec(
        name="vqav2",
        about="Open questions about COCO photographs, ten answers each.",
        scorer="vqa",
        licence="questions CC BY 4.0" + FLICKR,
        source="https://visualqa.org/download.html",
        layouts=(
            Files("*OpenEnded*questions.json", "questions", join="*annotations.json", join_key="annotations"),
            PARQUET,
            JSONL,
        ),
        convert=Question(picture=COCO, answers="answers[].answer", meta=VQA_META),
        folders=COCO_FOLDERS,
        tried=True,
        hub=Hub("lmms-lab/VQAv2", "data/validation-*"),
    ),
    Spec(
        name="okvqa",
        about="Open questions about COCO photographs that need outside knowledge, ten answers each.",
        scorer="vqa",
        licence="CC BY 4.0" + FLICKR,
        source="https://okvqa.allenai.org/download.html",
        layouts=(
            Files(
                "OpenEnded*questions.json",
                "questions",
                join="mscoco*annotations.json",
                join_key="annotations",
            ),
            PARQUET,
        ),
        convert=Question(picture=COCO, answers="answers[].answer", meta=VQA_META),
        folders=COCO_FOLDERS,
        hub=Hub("lmms-lab/OK-VQA", "data/val2014-*"),
    ),
    Spec(
        name="aokvqa-direct",
        about="A-OKVQA, direct answer: the same questions without their options.",
        scorer="aokvqa-direct",
        licence="Apache-2.0" + FLICKR,
        source="https://allenai.org/project/a-okvqa",
        layouts=(Files("*aokvqa*.json"), PARQUET, JSONL),
        convert=Question(picture=COCO, answers="direct_answers[]", meta=("difficult_direct_answer",)),
        folders=COCO_FOLDERS,
        tried=True,
        hub=Hub("HuggingFaceM4/A-OKVQA", "data/validation-*"),
    ),
    Spec(
        name="textvqa",
        about="Questions whose answer is written in the picture, ten answers each.",
        scorer="textvqa",
        licence="CC BY 4.0" + FLICKR,
        source="https://textvqa.org/dataset",
        layouts=(Files("TextVQA*.json", "data"), PARQUET, JSONL),
        convert=Question(picture="@image|{image_id}.jpg", answers="answers[]", meta=("image_id",)),
        folders=("images", ".", "train_images", "test_images"),
        tried=True,
        hub=Hub("lmms-lab/textvqa", "data/validation-*"),
    ),
    Spec(
        name="stvqa",
        about="Questions whose answer is written in the picture.",
        scorer="anls",
        licence=SEE_SOURCE,
        source="https://rrc.cvc.uab.es/?ch=11",
        layouts=(Files("*.json", "data"), PARQUET),
        convert=Question(picture="@file_path|@image", answers="answers[]", meta=("dataset",)),
        folders=(".", "images"),
    ),
    Spec(
        name="docvqa",
        about="Questions about document pages.",
        scorer="anls",
        licence=SEE_SOURCE,
        source="https://rrc.cvc.uab.es/?ch=17",
        layouts=(Files("*.json", "data"), PARQUET),
        convert=Question(id="questionId", answers="answers[]", meta=("docId", "question_types")),
        folders=(".", "documents", "images"),
        hub=Hub("lmms-lab/DocVQA", "DocVQA/validation-*"),
    ),
    Spec(
        name="infovqa",
        about="Questions about infographics.",
        scorer="anls",
        licence=SEE_SOURCE,
        source="https://rrc.cvc.uab.es/?ch=17",
        layouts=(Files("*.json", "data"), PARQUET),
        convert=Question(
            id="questionId", picture="@image_local_name|@image", answers="answers[]", meta=("answer_type",)
        ),
        folders=("images", "."),
        hub=Hub("lmms-lab/DocVQA", "InfographicVQA/validation-*"),
    ),
    Spec(
        name="chartqa",
        about="Questions about charts.",
        scorer="relaxed",
        licence="GPL-3.0",
        source="https://github.com/vis-nlp/ChartQA",
        layouts=(Files("*.json"), PARQUET),
        convert=Question(
            id="number",
            ask="query|question",
            picture="@imgname|@image",
            answers="label|answer",
            meta=("type",),
        ),
        folders=("png", "images", "."),
        hub=Hub("lmms-lab/ChartQA", "data/test-*"),
    ),
    Spec(
        name="gqa",
        about="Questions generated from scene graphs, one answer each.",
        scorer="exact",
        licence="CC BY 4.0",
        source="https://cs.stanford.edu/people/dorarad/gqa/download.html",
        layouts=(Files("*questions.json", read=by_key), JSONL, PARQUET),
        convert=Question(
            id="key|id|questionId|question_id",
            picture="@image|{imageId}.jpg",
            answers="answer",
            meta=("types",),
        ),
    ),
    Spec(
        name="vizwiz",
        about="Questions by blind people; some cannot be answered.",
        scorer="vizwiz",
        licence="CC BY 4.0",
        source="https://vizwiz.org/tasks-and-datasets/vqa/",
        layouts=(Files("*.json"), PARQUET),
        convert=Question(
            id="image|question_id", answers="answers[].answer", meta=("answer_type", "answerable")
        ),
        folders=(".", "val", "train", "test", "images"),
        hub=Hub("lmms-lab/VizWiz-VQA", "data/val-*"),
    ),
)
