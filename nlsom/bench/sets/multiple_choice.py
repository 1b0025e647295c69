"""Declarations of the multiple-choice sets, and of your own files."""

from __future__ import annotations

from nlsom.bench.sets.common import COCO, COCO_FOLDERS, FLICKR, JSONL, PARQUET
from nlsom.bench.sets.convert import Question, with_pictures
from nlsom.bench.sets.spec import Files, Hub, Spec

# easy-VQA's own list of answers, in its order.
_EASY = tuple("circle green red gray yes teal black rectangle yellow triangle brown blue no".split())  # noqa: SIM905

SETS = (
    Spec(
        name="aokvqa",
        about="A-OKVQA, multiple choice: questions about COCO photographs that need outside knowledge.",
        scorer="aokvqa-choice",
        licence="Apache-2.0" + FLICKR,
        source="https://allenai.org/project/a-okvqa",
        layouts=(Files("*aokvqa*.json"), PARQUET, JSONL),
        convert=Question(
            picture=COCO,
            choices="choices",
            right="correct_choice_idx",
            answers="direct_answers[]",
            meta=("difficult_direct_answer",),
        ),
        folders=COCO_FOLDERS,
        tried=True,
        hub=Hub("HuggingFaceM4/A-OKVQA", "data/validation-*"),
    ),
    Spec(
        name="pope",
        about="Whether an object is in the picture: yes or no.",
        scorer="pope",
        licence="MIT" + FLICKR,
        source="https://github.com/RUCAIBox/POPE",
        layouts=(Files("*pope*.json"), PARQUET, JSONL),
        convert=Question(
            ask="text|question", answers="label|answer", among=("yes", "no"), meta=("category",)
        ),
        folders=COCO_FOLDERS,
        tried=True,
        hub=Hub("lmms-lab/POPE", "data/test-*"),
    ),
    Spec(
        name="easy-vqa",
        about="Shapes and colours in pictures of 64 x 64 pixels; 13 answers. Comes as a Python package.",
        scorer="answer",
        licence="MIT",
        source="the Python package easy-vqa (pip install easy-vqa)",
        layouts=(Files("data/test/questions.json"), Files("questions.json")),
        convert=Question(
            id="number", ask="item0", picture="{item2}.png", among=_EASY, right="item1", answers="item1"
        ),
        folders=("data/test/images", "images"),
        tried=True,
        package="easy_vqa",
    ),
    Spec(
        name="scienceqa",
        about="School questions with pictures, multiple choice.",
        scorer="choice",
        licence="CC BY-NC-SA 4.0",
        source="https://scienceqa.github.io",
        layouts=(Files("problems.json", read=with_pictures), PARQUET, JSONL),
        convert=Question(
            id="key|id|number",
            choices="choices",
            right="answer",
            context="hint",
            meta=("subject", "topic", "grade"),
        ),
        hub=Hub("lmms-lab/ScienceQA", "ScienceQA-IMG/test-*"),
    ),
    Spec(
        name="mmbench",
        about="Multiple choice; each question is asked once per rotation of its options.",
        scorer="mmbench",
        licence="Apache-2.0",
        source="https://github.com/open-compass/MMBench",
        layouts=(Files("*.tsv"), PARQUET),
        convert=Question(
            id="index",
            choices="A B C D",
            right="answer",
            context="hint",
            blank="nan",
            meta=("group", "category", "l2-category", "L2-category"),
        ),
        hub=Hub("lmms-lab/MMBench", "en/dev-*"),
    ),
    Spec(
        name="mmmu",
        about="College questions, some with several pictures; multiple choice and open.",
        scorer="mmmu",
        licence="Apache-2.0",
        source="https://mmmu-benchmark.github.io",
        layouts=(PARQUET, JSONL),
        convert=Question(
            id="id",
            picture="@image_*",
            choices="options",
            right="answer",
            answers="answer[]",
            meta=("question_type",),
        ),
        hub=Hub("MMMU/MMMU", "*/validation-*"),
    ),
    Spec(
        name="folder",
        about="Your own CSV, TSV or JSON lines: image, question, answer, and choices if any.",
        scorer="answer",
        licence="yours",
        source="a file with the columns image, question, answer (several: a|b), and choices if any",
        layouts=(Files("*.csv"), Files("*.tsv"), Files("*.jsonl"), Files("*.json"), Files("**/*.parquet")),
        convert=Question(
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
