"""Reading sets: official layouts, lazily, with errors that name file and field."""

import base64
import csv
import json
import tracemalloc
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from nlsom.bench.scores import SCORERS
from nlsom.bench.sets import SETS, load_set
from nlsom.bench.sets.fields import Row
from nlsom.bench.sets.records import records
from nlsom.errors import UsageError
from nlsom.task import CaptionTask

SMALL = Path(__file__).parent / "samples_small"


def write(path, value, *, lines=False):
    text = "\n".join(map(json.dumps, value)) if lines else json.dumps(value)
    path.write_text(text, encoding="utf-8")
    return path


def test_vqav2_joins_questions_with_their_ten_answers():
    found = list(load_set("vqav2", SMALL))
    assert len(found) == 24
    first = found[0]
    assert (first.id, first.task.question) == ("900000000001000", "What type of building is this?")
    assert first.answers[:3] == ("pagoda", "pagoda", "temple")
    assert all(len(sample.answers) == 10 for sample in found)
    assert first.meta["answer_type"] == "other"
    assert first.pictures == (str(SMALL / "images" / "900000000001.jpg"),)


def test_vqav2_finds_answers_in_another_order_and_pictures_under_their_official_name(tmp_path):
    questions = [{"question_id": n, "image_id": 7, "question": f"Q{n}?"} for n in range(3)]
    answers = [{"question_id": n, "answers": [{"answer": f"a{n}"}]} for n in (2, 0, 1)]
    write(tmp_path / "v2_OpenEnded_mscoco_val2014_questions.json", {"info": {}, "questions": questions})
    write(tmp_path / "v2_mscoco_val2014_annotations.json", {"annotations": answers})
    (tmp_path / "val2014").mkdir()
    picture = tmp_path / "val2014" / "COCO_val2014_000000000007.jpg"
    picture.touch()
    found = list(load_set("vqav2", tmp_path))
    assert [sample.answers for sample in found] == [("a0",), ("a1",), ("a2",)]
    assert found[0].pictures == (str(picture),)


def test_aokvqa_comes_with_choices_or_without():
    with_choices, without = load_set("aokvqa", SMALL), load_set("aokvqa-direct", SMALL)
    first = next(iter(with_choices))
    assert first.task.choices == ("peru", "china", "norway", "egypt")
    assert first.choice == 1
    assert first.meta == {"difficult_direct_answer": False}
    assert next(iter(without)).task.choices == ()
    assert next(iter(without)).answers == first.answers


def test_coco_captions_gather_the_captions_of_a_picture():
    found = list(load_set("coco-captions", SMALL))
    assert len(found) == 6
    assert isinstance(found[0].task, CaptionTask)
    assert found[0].references[0] == "A red and green pagoda overlooking a lake."
    assert found[0].pictures[0].endswith("900000000001.jpg")


def test_textvqa_reads_its_official_file(tmp_path):
    entry = {"question_id": 3, "image_id": "0a1b", "question": "what does it say?", "answers": ["stop"] * 10}
    write(tmp_path / "TextVQA_0.5.1_val.json", {"dataset_type": "val", "data": [entry]})
    (found,) = load_set("textvqa", tmp_path)
    assert found.answers == ("stop",) * 10
    assert found.pictures == (str(tmp_path / "images" / "0a1b.jpg"),)


def test_pope_reads_lines_that_are_called_json(tmp_path):
    lines = [
        {"question_id": n, "image": f"{n}.jpg", "text": "Is there a cup?", "label": "no"} for n in (1, 2)
    ]
    write(tmp_path / "coco_pope_random.json", lines, lines=True)
    found = list(load_set("pope", tmp_path))
    assert [sample.id for sample in found] == ["1", "2"]
    assert found[0].answers == ("no",)
    assert found[0].task.form().kind == "yes_no"


def test_easy_vqa_comes_from_its_package():
    found = load_set("easy-vqa")
    first = next(iter(found))
    assert first.task.question == "what is the red shape?"
    assert first.task.choices[first.choice] == first.answers[0] == "triangle"
    assert Path(first.pictures[0]).is_file()
    assert sum(1 for _ in found) == 9673


def test_a_folder_of_your_own_is_read_from_csv(tmp_path):
    path = tmp_path / "mine.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["picture", "question", "answer", "choices"])
        rows.writerow(["a.jpg", "Is it red?", "no|none", ""])
        rows.writerow(["a.jpg", "What is it?", "B", "cat|dog"])
        rows.writerow(["a.jpg", "What is it?", "dog", '["cat", "dog"]'])
    for at in (tmp_path, path):
        found = list(load_set("folder", at))
        assert [sample.answers for sample in found] == [("no", "none"), ("B",), ("dog",)]
        assert [sample.choice for sample in found] == [None, 1, 1]
        assert found[1].task.choices == ("cat", "dog")
        assert found[0].pictures == (str(tmp_path / "a.jpg"),)
        assert [sample.id for sample in found] == ["1", "2", "3"]


def test_a_folder_of_your_own_is_read_from_json_lines(tmp_path):
    lines = [{"id": "x", "image": "https://example.org/a.jpg", "question": "Why?", "answers": ["no", "none"]}]
    write(tmp_path / "mine.jsonl", lines, lines=True)
    (found,) = load_set("folder", tmp_path)
    assert (found.id, found.answers) == ("x", ("no", "none"))
    assert found.pictures == ("https://example.org/a.jpg",)


def test_parquet_of_a_hub_holds_pictures_as_bytes(tmp_path):
    rows = [
        {"id": "q1", "question": "What is <image 1>?", "options": "['cat', 'dog']", "answer": "B",
         "question_type": "multiple-choice", "image_1": {"bytes": b"one", "path": "1.png"},
         "image_2": {"bytes": b"two", "path": "2.png"}, "image_3": None},
        {"id": "q2", "question": "How many?", "options": "[]", "answer": "3", "question_type": "open",
         "image_1": {"bytes": b"one", "path": "1.png"}, "image_2": None, "image_3": None},
    ]  # fmt: skip
    (tmp_path / "data").mkdir()
    parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "data" / "validation-0.parquet")
    first, second = load_set("mmmu", tmp_path)
    assert first.pictures == (b"one", b"two")
    assert (first.task.choices, first.choice) == (("cat", "dog"), 1)
    assert (second.task.choices, second.choice, second.answers) == ((), None, ("3",))


def test_mmbench_holds_pictures_in_base64(tmp_path):
    held = base64.b64encode(b"picture" * 200).decode()
    text = f"index\tquestion\thint\tA\tB\tC\tD\tanswer\timage\n7\tWhat?\t\tcat\tdog\t\t\tB\t{held}\n"
    (tmp_path / "mmbench_dev_en.tsv").write_text(text, encoding="utf-8")
    (found,) = load_set("mmbench", tmp_path)
    assert found.pictures == (b"picture" * 200,)
    assert (found.task.choices, found.choice) == (("cat", "dog"), 1)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"question": "Q?", "image_id": 1, "answers": ["a"]}, "no field 'question_id'"),
        (
            {"question_id": 1, "question": "Q?", "answers": ["a"]},
            "no field 'image_id', needed for the picture's file name",
        ),
        ({"question_id": 1, "question": "Q?", "image_id": "x"}, "no field 'answers'"),
        ({"question_id": 1, "question": "Q?", "image_id": "x", "answers": 5}, "'answers' is int, not a list"),
        ([1, 2], "no field"),
        ("text", "record 1 is str, not an object"),
    ],
)
def test_a_wrong_layout_is_named_with_file_and_field(tmp_path, entry, message):
    write(tmp_path / "TextVQA_bad.json", {"data": [entry]})
    with pytest.raises(UsageError) as fault:
        list(load_set("textvqa", tmp_path))
    assert "TextVQA_bad.json" in str(fault.value)
    assert message in str(fault.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"other": []}', "has no field 'data' (its fields: other)"),
        ('{"data": {}}', "field 'data' is not an array"),
        ('{"data": [{"a": 1},', "not JSON"),
        ('{"data": [{"a": 1} {"a": 2}]}', "not JSON: expected ','"),
        ("", "not JSON"),
    ],
)
def test_a_broken_file_is_named(tmp_path, text, message):
    path = tmp_path / "x.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError) as fault:
        list(records(path, "data"))
    assert str(path) in str(fault.value)
    assert message in str(fault.value)


def test_a_broken_line_and_a_broken_row_are_named(tmp_path):
    lines, rows = tmp_path / "x.jsonl", tmp_path / "x.csv"
    lines.write_text('{"a": 1}\n{oops\n', encoding="utf-8")
    rows.write_text("a,b\n1,2\n1\n", encoding="utf-8")
    with pytest.raises(UsageError, match=r"x\.jsonl:2: not JSON"):
        list(records(lines))
    with pytest.raises(UsageError, match=r"x\.csv:3: not as many fields as the header"):
        list(records(rows))
    with pytest.raises(UsageError, match="cannot read"):
        list(records(tmp_path / "x.xml"))


def test_a_choice_that_is_none_of_the_options_is_named(tmp_path):
    entry = {"question_id": "q", "image_id": 1, "question": "?", "choices": ["a"], "correct_choice_idx": 4}
    write(tmp_path / "aokvqa.json", [entry | {"direct_answers": []}])
    with pytest.raises(UsageError, match="'correct_choice_idx' is 4, but there are 1 options"):
        list(load_set("aokvqa", tmp_path))


def test_an_answer_that_is_missing_from_the_second_file_is_named(tmp_path):
    write(tmp_path / "OpenEnded_questions.json", {"questions": [{"question_id": 5, "question": "?"}]})
    write(tmp_path / "annotations.json", {"annotations": []})
    with pytest.raises(UsageError, match="no record with question_id 5"):
        list(load_set("vqav2", tmp_path))


def test_a_missing_path_says_where_the_set_is_had(tmp_path):
    with pytest.raises(UsageError, match=r"cannot be fetched by name.*cvc\.uab\.es"):
        load_set("stvqa")
    with pytest.raises(UsageError, match="no such file or folder"):
        load_set("vqav2", tmp_path / "nowhere")
    with pytest.raises(UsageError, match=r"no file matches .*visualqa\.org"):
        list(load_set("vqav2", tmp_path))
    with pytest.raises(UsageError, match="did you mean 'vqav2'"):
        load_set("vqa2")


def test_samples_are_drawn_by_seed_and_keep_their_order():
    found = load_set("vqav2", SMALL)
    everything = [sample.id for sample in found]
    assert [sample.id for sample in found.samples(3)] == everything[:3]
    drawn = [sample.id for sample in found.samples(5, seed=1)]
    assert drawn == [sample.id for sample in found.samples(5, seed=1)]
    assert drawn == [name for name in everything if name in drawn]
    assert drawn != [sample.id for sample in found.samples(5, seed=2)]
    assert [sample.id for sample in found.samples(99, seed=1)] == everything


def test_no_stays_no_and_numbers_stay_as_they_are_written():
    row = Row({"answers": ["no", "007", "12:30"], "table": "no|007"}, "here")
    assert row.texts("answers[]") == ("no", "007", "12:30")
    assert row.texts("table[]") == ("no", "007")


def test_a_large_file_is_read_in_flat_memory(tmp_path):
    path = tmp_path / "large.json"
    with path.open("w", encoding="utf-8") as file:
        file.write('{"info": {"a": [1, 2]}, "data": [')
        file.write(",".join(json.dumps({"n": n, "text": "x" * 150}) for n in range(40_000)))
        file.write("]}")
    tracemalloc.start()
    try:
        assert sum(record["n"] for record in records(path, "data")) == 40_000 * 39_999 // 2
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert path.stat().st_size > 6_000_000
    assert peak < 1_500_000


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.lists(st.dictionaries(st.text(max_size=4), values, max_size=3), max_size=4),
    st.dictionaries(st.text(max_size=3), values, max_size=2),
    st.sampled_from([None, 1]),
)
def test_streamed_json_is_the_json_that_was_written(tmp_path_factory, items, beside, indent):
    path = tmp_path_factory.mktemp("json") / "x.json"
    path.write_text(json.dumps({**beside, "data": items}, indent=indent), encoding="utf-8")
    found = list(records(path, "data"))
    assert found == items


def test_every_set_names_a_scorer_that_there_is():
    assert {spec.scorer for spec in SETS.values()} == set(SCORERS) | {"tara"}
    assert all(spec.about and spec.licence and spec.source for spec in SETS.values())


def test_official_files_that_hold_records_by_identifier_are_read(tmp_path):
    asked = {"question": "Is it red?", "imageId": "n5", "answer": "no", "types": {"structural": "verify"}}
    write(tmp_path / "testdev_balanced_questions.json", {"201": asked, "202": asked | {"answer": "yes"}})
    first, second = load_set("gqa", tmp_path)
    assert (first.id, first.answers, second.id) == ("201", ("no",), "202")
    assert first.pictures == (str(tmp_path / "images" / "n5.jpg"),)
    school = {"question": "Which?", "choices": ["a", "b"], "answer": 1, "hint": "", "split": "test"}
    write(tmp_path / "problems.json", {"1": school | {"image": None}, "2": school | {"image": "image.png"}})
    (only,) = load_set("scienceqa", tmp_path / "problems.json")
    assert (only.id, only.choice) == ("2", 1)
    assert only.pictures[0].endswith("test/2/image.png")


def test_tara_takes_the_caption_of_the_paper_else_the_abstract(tmp_path):
    lines = [{"_id": "a", "image_url": "https://example.org/1.jpg", "caption": "Snow.", "abstract": "No."}]
    lines += [{"_id": "b", "image_url": "https://example.org/2.jpg", "abstract": "A parade."}]
    write(tmp_path / "gold_test.jsonl", lines, lines=True)
    first, second = load_set("tara", tmp_path)
    assert (first.references, second.references) == (("Snow.",), ("A parade.",))
    assert first.pictures == ("https://example.org/1.jpg",)


def test_records_are_numbered_through_all_files(tmp_path):
    for name in ("test_human.json", "test_augmented.json"):
        write(tmp_path / name, [{"imgname": "1.png", "query": f"{name}?", "label": "3"}] * 2)
    assert [sample.id for sample in load_set("chartqa", tmp_path)] == ["1", "2", "3", "4"]


def test_an_identifier_that_is_there_twice_is_named(tmp_path):
    line = {"id": "x", "image": "1.png", "question": "?", "answer": "no"}
    write(tmp_path / "mine.jsonl", [line, line], lines=True)
    with pytest.raises(
        UsageError, match=r"mine\.jsonl, record 2: an earlier record has the same identifier, 'x'"
    ):
        list(load_set("folder", tmp_path))


def test_copies_of_a_set_may_hold_answers_as_plain_texts():
    assert Row({"answers": ["no", "yes"]}, "here").texts("answers[].answer") == ("no", "yes")


def test_a_line_of_ones_own_set_without_a_picture_is_told_with_what_is_there(tmp_path):
    (tmp_path / "q.csv").write_text("image,question,answer\n,What is two and two?,4\n")
    with pytest.raises(UsageError, match=r"no picture: .*'image' is missing or empty .*question, answer"):
        list(load_set("folder", tmp_path / "q.csv"))
