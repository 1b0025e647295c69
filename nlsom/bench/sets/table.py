"""The sets that are known, one declaration each."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from nlsom.bench.sets.convert import caption, coco_captions, question
from nlsom.bench.sets.spec import Files, Spec

_COCO = "@image|{image_id:012d}.jpg|COCO_val2014_{image_id:012d}.jpg|COCO_train2014_{image_id:012d}.jpg"
_COCO_FOLDERS = ("images", ".", "val2014", "val2017", "train2014", "train2017", "test2015", "test2017")
_PARQUET = Files("**/*.parquet")
_JSONL = Files("*.jsonl")
_VQA_META = ("question_type", "answer_type", "image_id")

# easy-VQA's own list of answers, in its order.
_EASY = tuple("circle green red gray yes teal black rectangle yellow triangle brown blue no".split())  # noqa: SIM905

_TRIED = (
    Spec(
        name="vqav2",
        about="Open questions about COCO photographs, ten answers each.",
        scorer="vqa",
        licence="questions CC BY 4.0, photographs under their Flickr licences",
        source="https://visualqa.org/download.html",
        layouts=(
            Files("*OpenEnded*questions.json", "questions", join="*annotations.json", join_key="annotations"),
            _PARQUET,
            _JSONL,
        ),
        convert=question(picture=_COCO, answers="answers[].answer", meta=_VQA_META),
        folders=_COCO_FOLDERS,
        tried=True,
    ),
    Spec(
        name="aokvqa",
        about="A-OKVQA, multiple choice: questions about COCO photographs that need knowledge.",
        scorer="aokvqa-choice",
        licence="Apache-2.0, photographs under their Flickr licences",
        source="https://allenai.org/project/a-okvqa",
        layouts=(Files("*aokvqa*.json"), _PARQUET, _JSONL),
        convert=question(
            picture=_COCO,
            choices="choices",
            right="correct_choice_idx",
            answers="direct_answers[]",
            meta=("difficult_direct_answer",),
        ),
        folders=_COCO_FOLDERS,
        tried=True,
    ),
    Spec(
        name="aokvqa-direct",
        about="A-OKVQA, direct answer: the same questions without their choices.",
        scorer="aokvqa-direct",
        licence="Apache-2.0, photographs under their Flickr licences",
        source="https://allenai.org/project/a-okvqa",
        layouts=(Files("*aokvqa*.json"), _PARQUET, _JSONL),
        convert=question(picture=_COCO, answers="direct_answers[]", meta=("difficult_direct_answer",)),
        folders=_COCO_FOLDERS,
        tried=True,
    ),
    Spec(
        name="textvqa",
        about="Questions whose answer is written in the picture, ten answers each.",
        scorer="textvqa",
        licence="CC BY 4.0, photographs under their Flickr licences",
        source="https://textvqa.org/dataset",
        layouts=(Files("TextVQA*.json", "data"), _PARQUET, _JSONL),
        convert=question(picture="@image|{image_id}.jpg", answers="answers[]", meta=("image_id",)),
        folders=("images", ".", "train_images", "test_images"),
        tried=True,
    ),
    Spec(
        name="pope",
        about="Is there such a thing in the picture? Yes or no.",
        scorer="pope",
        licence="MIT, photographs under their Flickr licences",
        source="https://github.com/RUCAIBox/POPE",
        layouts=(Files("*pope*.json"), _PARQUET, _JSONL),
        convert=question(
            ask="text|question", answers="label|answer", among=("yes", "no"), meta=("category",)
        ),
        folders=_COCO_FOLDERS,
        tried=True,
    ),
    Spec(
        name="coco-captions",
        about="Captions of COCO photographs, five references each.",
        scorer="captions",
        licence="captions CC BY 4.0, photographs under their Flickr licences",
        source="https://cocodataset.org/#download",
        layouts=(Files("captions*.json", read=coco_captions),),
        convert=caption(id="id", references="captions[]", picture="{file_name}"),
        folders=_COCO_FOLDERS,
        tried=True,
    ),
    Spec(
        name="easy-vqa",
        about="Shapes and colours in pictures of 64 x 64; 13 answers. Comes as a Python package.",
        scorer="answer",
        licence="MIT",
        source="the Python package easy-vqa (pip install easy-vqa)",
        layouts=(Files("data/test/questions.json"), Files("questions.json")),
        convert=question(
            id="number", ask="item0", picture="{item2}.png", among=_EASY, right="item1", answers="item1"
        ),
        folders=("data/test/images", "images"),
        tried=True,
        package="easy_vqa",
    ),
    Spec(
        name="folder",
        about="Your own CSV, TSV or JSON lines: picture, question, and answers or choices.",
        scorer="answer",
        licence="yours",
        source="a file with the columns picture, question, answer (several: a|b), and choices if any",
        layouts=(Files("*.csv"), Files("*.tsv"), Files("*.jsonl"), Files("*.json"), Files("**/*.parquet")),
        convert=question(
            id="id|number",
            picture="@picture|@image",
            choices="choices",
            right="answer",
            answers="answers[]|answer[]",
        ),
        folders=(".", "images"),
        tried=True,
    ),
)

# Their layouts are taken from documentation; none was read from the real file yet.
_DOCUMENTED = (
    Spec(
        name="okvqa",
        about="Open questions about COCO photographs that need outside knowledge, ten answers each.",
        scorer="vqa",
        licence="CC BY 4.0, photographs under their Flickr licences",
        source="https://okvqa.allenai.org/download.html",
        layouts=(
            Files(
                "OpenEnded*questions.json",
                "questions",
                join="mscoco*annotations.json",
                join_key="annotations",
            ),
            _PARQUET,
        ),
        convert=question(picture=_COCO, answers="answers[].answer|answers[]", meta=_VQA_META),
        folders=_COCO_FOLDERS,
    ),
    Spec(
        name="docvqa",
        about="Questions about pages of documents.",
        scorer="anls",
        licence="see the source",
        source="https://rrc.cvc.uab.es/?ch=17",
        layouts=(Files("*.json", "data"), _PARQUET),
        convert=question(id="questionId", answers="answers[]", meta=("docId", "question_types")),
        folders=(".", "documents", "images"),
    ),
    Spec(
        name="infovqa",
        about="Questions about infographics.",
        scorer="anls",
        licence="see the source",
        source="https://rrc.cvc.uab.es/?ch=17",
        layouts=(Files("*.json", "data"), _PARQUET),
        convert=question(
            id="questionId", picture="@image_local_name|@image", answers="answers[]", meta=("answer_type",)
        ),
        folders=("images", "."),
    ),
    Spec(
        name="stvqa",
        about="Questions whose answer is written in the picture.",
        scorer="anls",
        licence="see the source",
        source="https://rrc.cvc.uab.es/?ch=11",
        layouts=(Files("*.json", "data"), _PARQUET),
        convert=question(picture="@file_path|@image", answers="answers[]", meta=("dataset",)),
        folders=(".", "images"),
    ),
    Spec(
        name="chartqa",
        about="Questions about charts.",
        scorer="relaxed",
        licence="GPL-3.0",
        source="https://github.com/vis-nlp/ChartQA",
        layouts=(Files("*.json"), _PARQUET),
        convert=question(
            id="number",
            ask="query|question",
            picture="@imgname|@image",
            answers="label|answer",
            meta=("type",),
        ),
        folders=("png", "images", "."),
    ),
    Spec(
        name="gqa",
        about="Questions made from scene graphs, one answer each (one record a line, as on the hub).",
        scorer="exact",
        licence="CC BY 4.0",
        source="https://cs.stanford.edu/people/dorarad/gqa/download.html",
        layouts=(_JSONL, _PARQUET),
        convert=question(
            id="id|questionId|question_id", picture="@image|{imageId}.jpg", answers="answer", meta=("types",)
        ),
    ),
    Spec(
        name="vizwiz",
        about="Questions by people who cannot see; some have no answer.",
        scorer="vizwiz",
        licence="CC BY 4.0",
        source="https://vizwiz.org/tasks-and-datasets/vqa/",
        layouts=(Files("*.json"), _PARQUET),
        convert=question(
            id="image|question_id", answers="answers[].answer", meta=("answer_type", "answerable")
        ),
        folders=(".", "val", "train", "test", "images"),
    ),
    Spec(
        name="scienceqa",
        about="School questions with pictures, multiple choice (as on the hub).",
        scorer="choice",
        licence="CC BY-NC-SA 4.0",
        source="https://scienceqa.github.io",
        layouts=(_PARQUET, _JSONL),
        convert=question(
            id="id|number",
            choices="choices",
            right="answer",
            context="hint",
            meta=("subject", "topic", "grade"),
        ),
    ),
    Spec(
        name="mmbench",
        about="Multiple choice, each question once a rotation of its options.",
        scorer="mmbench",
        licence="Apache-2.0",
        source="https://github.com/open-compass/MMBench",
        layouts=(Files("*.tsv"), _PARQUET),
        convert=question(
            id="index",
            choices="A B C D",
            right="answer",
            context="hint",
            meta=("group", "category", "l2-category"),
        ),
    ),
    Spec(
        name="mmmu",
        about="College questions, some with several pictures; multiple choice and open.",
        scorer="mmmu",
        licence="Apache-2.0",
        source="https://mmmu-benchmark.github.io",
        layouts=(_PARQUET, _JSONL),
        convert=question(
            id="id",
            picture="@image_*",
            choices="options",
            right="answer",
            answers="answer",
            meta=("question_type",),
        ),
    ),
    Spec(
        name="nocaps",
        about="Captions of things that COCO has not, ten references each.",
        scorer="captions",
        licence="CC BY 2.0",
        source="https://nocaps.org/download",
        layouts=(Files("nocaps*.json", read=coco_captions),),
        convert=caption(id="id", references="captions[]", picture="{file_name}", meta=("domain",)),
    ),
    Spec(
        name="flickr30k",
        about="Captions of Flickr photographs, five references each.",
        scorer="captions",
        licence="see the source",
        source="https://shannon.cs.illinois.edu/DenotationGraph/",
        layouts=(Files("dataset_flickr30k.json", "images"), _PARQUET),
        convert=caption(
            id="imgid|img_id", references="sentences[].raw|caption[]", picture="@filename|@image"
        ),
        folders=("flickr30k-images", "images", "."),
    ),
    Spec(
        name="textcaps",
        about="Captions that read the text in a picture (as on the hub).",
        scorer="captions",
        licence="CC BY 4.0",
        source="https://textvqa.org/textcaps/dataset",
        layouts=(_PARQUET, _JSONL),
        convert=caption(
            id="image_id", references="caption_str[]|reference_strs[]", picture="@image|{image_id}.jpg"
        ),
        folders=("train_images", "images", "."),
    ),
)

SETS: Mapping[str, Spec] = MappingProxyType({spec.name: spec for spec in (*_TRIED, *_DOCUMENTED)})
"""All declarations by name."""
