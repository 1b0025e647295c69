"""Official scores against the values of the published tools, and the lenient column beside them."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nlsom.bench.sample import Sample
from nlsom.bench.scores import SCORERS, scorer
from nlsom.bench.scores.mmbench import mmbench_choice
from nlsom.bench.scores.mmmu import mmmu_choice
from nlsom.bench.scores.pope import pope_reads, rates
from nlsom.bench.scores.strings import anls, edit_distance, relaxed
from nlsom.bench.scores.vqa import textvqa_accuracy, vqa_accuracy
from nlsom.errors import Unavailable, UsageError
from nlsom.task import VqaTask
from nlsom.task.normalise import normalise

VECTORS = Path(__file__).parent / "vectors"


def load(name):
    return json.loads((VECTORS / f"{name}_vectors.json").read_text(encoding="utf-8"))


VQA, ANLS, RELAXED, POPE = load("vqa_accuracy"), load("anls"), load("relaxed"), load("pope")


def number(case):
    return str(case["id"])


def asked(*answers, choices=(), choice=None, **meta):
    task = VqaTask(question="What is it?", choices=choices)
    return Sample(id="1", task=task, answers=answers, choice=choice, meta=meta)


@pytest.mark.parametrize("case", VQA["cases"], ids=number)
def test_vqa_accuracy_is_the_official_one(case):
    assert vqa_accuracy(case["prediction"], case["answers"]) == pytest.approx(case["accuracy"], abs=1e-12)


@pytest.mark.parametrize(
    "case", [c for c in VQA["cases"] if c["other"]["mmf_textvqa"] is not None], ids=number
)
def test_textvqa_accuracy_is_the_challenges_own(case):
    ours = textvqa_accuracy(case["prediction"], case["answers"])
    assert ours == pytest.approx(case["other"]["mmf_textvqa"], abs=1e-12)


@pytest.mark.parametrize(
    "case",
    VQA["identity_quirk_cases"]["cases"],
    ids=lambda c: f"{c['prediction']}{c['answers'][-1]}{c['answers'][5]}",
)
def test_equal_answers_of_different_people_are_different_answers(case):
    ours = vqa_accuracy(case["prediction"], case["answers"])
    assert ours == pytest.approx(case["accuracy_with_answer_id"], abs=1e-12)


def test_scoring_twice_gives_the_same_score():
    quirk = VQA["double_evaluation_quirk"]
    gold = asked(*quirk["answers"])
    first = scorer("vqa").score(quirk["prediction"], gold)
    assert scorer("vqa").score(quirk["prediction"], gold) == first
    assert 100 * first.official == quirk["first_run"]


@pytest.mark.parametrize("case", ANLS["cases"], ids=number)
def test_anls_is_that_of_the_robust_reading_competition(case):
    assert anls(case["prediction"], case["answers"]) == pytest.approx(case["official_rrc"], abs=1e-12)


@pytest.mark.parametrize("case", RELAXED["cases"], ids=number)
def test_relaxed_accuracy_is_that_of_pix2struct(case):
    assert relaxed(case["prediction"], case["target"]) is case["pix2struct"]


@pytest.mark.parametrize("case", POPE["parse"], ids=lambda case: case["text"][:30])
def test_pope_reads_as_its_own_tool(case):
    assert pope_reads(case["text"]) == case["official_pope"]


@pytest.mark.parametrize("name", [name for name, s in POPE["sets"].items() if "error" not in s["official"]])
def test_pope_rates_are_the_official_ones(name):
    case = POPE["sets"][name]
    gold = [asked(label) for label in case["labels"]]
    figures = scorer("pope").total(case["texts"], gold).figures
    assert list(figures) == ["accuracy", "precision", "recall", "f1", "yes_ratio"]
    for figure, pair in figures.items():
        assert pair.official == pytest.approx(case["official"][figure], abs=1e-12)


def test_pope_rates_over_nothing_are_0_where_the_tool_divides_by_zero():
    case = POPE["sets"]["all_no"]
    assert case["official"] == {"error": "ZeroDivisionError"}
    found = rates([pope_reads(text) for text in case["texts"]], case["labels"])
    assert (found["precision"], found["recall"], found["f1"], found["yes_ratio"]) == (0, 0, 0, 0)


def test_pope_counts_an_abstention_as_neither_yes_nor_no():
    totals = scorer("pope").total([None, "I cannot tell", "perhaps a dog"], [asked("yes")] * 3)
    assert totals.figures["yes_ratio"].lenient == 0
    assert (totals.abstained, totals.unparsable) == (2, 1)


AOKVQA = asked(*["fish"] * 8, "bread", "crabs", choices=("hay", "fish"), choice=1)


@pytest.mark.parametrize(
    ("reply", "official", "lenient"),
    [
        ("fish", 1, 1),
        ("Fish", 0, 1),
        ("fish.", 0, 1),
        ("B", 0, 1),
        ("The answer is (B).", 0, 1),
        ("hay", 0, 0),
        (None, 0, 0),
    ],
)
def test_aokvqa_wants_the_very_string_of_the_right_option(reply, official, lenient):
    score = scorer("aokvqa-choice").score(reply, AOKVQA)
    assert (score.official, score.lenient) == (official, lenient)


@pytest.mark.parametrize(
    ("reply", "official", "lenient"),
    [("fish", 1, 1), ("Fish.", 0, 1), ("bread", 1 / 3, 1 / 3), ("hay", 0, 0), (None, 0, 0), ("?", 0, 0)],
)
def test_aokvqa_direct_answers_count_equal_answers_of_ten(reply, official, lenient):
    score = scorer("aokvqa-direct").score(reply, AOKVQA)
    assert (score.official, score.lenient) == pytest.approx((official, lenient))


def test_aokvqa_leaves_difficult_questions_out_of_direct_answer_only():
    difficult = asked("fish", choices=("hay", "fish"), choice=1, difficult_direct_answer=True)
    assert scorer("aokvqa-direct").score("fish", difficult) is None
    assert scorer("aokvqa-choice").score("fish", difficult).official == 1
    totals = scorer("aokvqa-direct").total(["fish", "fish"], [difficult, AOKVQA])
    assert (totals.counted, totals.figures["aokvqa-direct"].official) == (1, 1)


@pytest.mark.parametrize("reply", ["B", "fish", " fish "])
def test_a_choice_is_right_by_letter_or_text(reply):
    assert scorer("choice").score(reply, AOKVQA).official == 1


def test_a_secret_answer_is_not_counted():
    assert scorer("choice").score("B", asked(choices=("hay", "fish"))) is None


def test_mmbench_wants_every_rotation_right():
    rotations = [
        asked(choices=("hay", "fish"), choice=1, group="q1"),
        asked(choices=("fish", "hay"), choice=0, group="q1"),
        asked(choices=("red", "blue"), choice=0, group="q2"),
        asked(choices=("red", "blue"), choice=1, group="q3"),
    ]
    figures = scorer("mmbench").total(["B", "B", "A", "A"], rotations).figures
    assert figures["circular"].official == pytest.approx(1 / 3)
    assert figures["vanilla"].official == pytest.approx(2 / 3)


def test_mmbench_knows_rotations_by_their_identifiers():
    turned = [
        replace(asked(choices=("fish", "hay"), choice=0), id="1000241"),
        replace(asked(choices=("hay", "fish"), choice=1), id="241"),
        replace(asked(choices=("red", "blue"), choice=0), id="242"),
    ]
    figures = scorer("mmbench").total(["B", "B", "A"], turned).figures
    assert (figures["circular"].official, figures["vanilla"].official) == (1 / 2, 1)


@pytest.mark.parametrize(
    ("reply", "gold", "official", "lenient"),
    [
        ("3.1416", "3.14", 1, 1),
        ("1,000", "1000", 1, 1),
        ("The answer is 7.", "7", 1, 1),
        ("x = 1,000 / 2 = 500", "500", 1, 1),
        ("It is 7.126 in all.", "7.13", 1, 1),
        ("Spain", "spain", 1, 1),
        ("The country is Spain, I think", "Spain", 1, 0),
        ("The letter is b", "b", 1, 0),
        ("8", "7", 0, 0),
    ],
)
def test_mmmu_open_questions_compare_words_and_numbers(reply, gold, official, lenient):
    score = scorer("mmmu").score(reply, asked(gold))
    assert (score.official, score.lenient) == (official, lenient)


def test_mmmu_choices_are_read_by_letter():
    assert scorer("mmmu").score("B", AOKVQA).official == 1


CRAFTED = json.loads((VECTORS / "mc_parse_vectors.json").read_text(encoding="utf-8"))["crafted"]


@pytest.mark.parametrize("case", CRAFTED, ids=number)
def test_mmmu_reads_choices_as_its_own_tool_but_draws_none(case):
    at = mmmu_choice(case["response"], list(case["options"].values()))
    assert ("<RANDOM>" if at is None else list(case["options"])[at]) == case["outputs"]["mmmu_official"]


@pytest.mark.parametrize("case", CRAFTED, ids=number)
def test_mmbench_reads_choices_as_its_own_tool_before_that_asks_gpt(case):
    at = mmbench_choice(case["response"], list(case["options"].values()))
    read = None if at is None else list(case["options"])[at]
    said = case["outputs"]["vlmeval_can_infer"]
    assert read == (None if said == "Z" else said)


@pytest.mark.parametrize(
    ("reply", "right"),
    [
        ("I'm sorry, but without the image provided I cannot say B", 0),
        ("Z", 0),
        ("Z. a cat", 0),
        ("A cat sits there and B is what I would say", 0),
        ("It must be a thing like B, I would say", 1),
        ("**Answer is b**", 1),
        ("The thing in the picture is fish", 0),
        ("It is FISH", 1),
        ("fish", 1),
    ],
)
def test_mmbench_scores_a_reply_by_its_own_reading(reply, right):
    assert scorer("mmbench").score(reply, AOKVQA).official == right


@pytest.mark.parametrize(
    ("reply", "right"),
    [
        ("The answer is B.", 1),
        ("The answer is B. BECAUSE: The answer is clear.", 1),
        ("The answer is B", 0),
        ("The answer is A. The answer is B.", 0),
        ("the answer is B.", 0),
        ("The answer is A.", 0),
        ("B", 1),
        ("B.", 0),
    ],
)
def test_scienceqa_wants_its_one_sentence(reply, right):
    assert scorer("choice").score(reply, AOKVQA).official == right


@pytest.mark.parametrize(
    ("reply", "gold", "official"),
    [
        ("Yes.", ["yes"] * 10, 1),
        ("yes", ["Yes"] * 10, 0),
        ("two", ["2"] * 10, 1),
        ("2", ["two"] * 10, 0),
        ("a cat", ["a cat"] * 10, 0),
        ("The cat!", ["cat", "cat", *["dog"] * 8], 0.6),
    ],
)
def test_vizwiz_normalises_the_reply_and_not_the_gold_answers(reply, gold, official):
    assert scorer("vizwiz").score(reply, asked(*gold)).official == pytest.approx(official)


def test_mmmu_takes_of_an_open_reply_only_what_stands_after_its_key_words():
    assert scorer("mmmu").score("it is red", asked("it is red")).official == 0
    assert scorer("mmmu").score("it is red", asked("red")).official == 1


def test_mmmu_takes_the_text_of_a_wrong_option_for_that_option():
    gold = asked(choices=("the dog (B)", "a cat"), choice=1)
    assert scorer("mmmu").score("the dog (B)", gold).official == 0
    assert scorer("mmmu").score("I would say (A), no, (B)", gold).official == 1


LENIENT = ["Red.", "RED", "**red**", "Answer: red", "The answer is red.", '"red"', "<think>blue?</think> red"]


@pytest.mark.parametrize("name", ["vqa", "textvqa", "vizwiz", "exact", "anls", "aokvqa-direct"])
@pytest.mark.parametrize("reply", LENIENT)
def test_a_person_accepts_dress_that_a_tool_does_not(name, reply):
    score = scorer(name).score(reply, asked(*["red"] * 10))
    assert score.lenient >= (0.5 if name == "anls" else 1)
    assert score.why


@pytest.mark.parametrize("name", ["vqa", "textvqa", "vizwiz", "exact", "anls", "aokvqa-direct"])
@pytest.mark.parametrize("reply", ["blue", "It is not easy to say", "redundant", "I don't know", "", None])
def test_a_person_accepts_no_wrong_answer(name, reply):
    assert scorer(name).score(reply, asked(*["red"] * 10)).lenient == 0


def test_a_sentence_that_says_yes_is_a_yes():
    gold = asked(*["yes"] * 10)
    assert scorer("vqa").score("Yes, there are two dogs.", gold).lenient == 1
    assert scorer("vqa").score("Notice the dogs.", asked(*["no"] * 10)).lenient == 0


def test_a_sentence_that_counts_is_a_number():
    assert scorer("vqa").score("There are three dogs.", asked(*["3"] * 10)).lenient == 1
    assert scorer("vqa").score("There are three dogs and 2 cats.", asked(*["3"] * 10)).lenient == 0


def test_none_is_not_nothing():
    gold = asked(*["none"] * 9, "0")
    assert scorer("vqa").score("none", gold).official == 1
    assert scorer("vqa").score(None, gold).official == 0


def test_a_gold_answer_that_normalises_to_nothing_does_not_make_anything_right():
    gold = asked("the", *["?"] * 9)
    for reply in ("blue", "", None, "."):
        assert scorer("vqa").score(reply, gold).lenient == 0
    assert scorer("vqa").score("The", asked(*["the"] * 10)).lenient == 1
    assert scorer("vqa").score("A", asked(*["the"] * 10)).lenient == 0


def test_vizwiz_takes_a_refusal_for_unanswerable():
    gold = asked(*["unanswerable"] * 10)
    assert scorer("vizwiz").score("I cannot tell.", gold).lenient == 1
    assert scorer("vqa").score("I cannot tell.", gold).lenient == 0
    assert scorer("vizwiz").score("unanswerable", gold).official == 1


@pytest.mark.parametrize(
    ("reply", "target", "official", "lenient"),
    [
        ("1,000", "1000", 0, 1),
        ("$104", "100", 0, 1),
        ("about 12", "12", 0, 1),
        ("5", "5%", 0, 1),
        ("5%", "5%", 1, 1),
        ("The answer is 106.", "100", 0, 0),
        ("Blue.", "blue", 0, 1),
        ("106", "100", 0, 0),
        (None, "100", 0, 0),
    ],
)
def test_a_person_reads_numbers_off_a_chart_as_they_are_written(reply, target, official, lenient):
    score = scorer("relaxed").score(reply, asked(target))
    assert (score.official, score.lenient) == (official, lenient)


def test_totals_count_what_abstained_and_what_could_not_be_read():
    gold = [AOKVQA] * 4
    totals = scorer("aokvqa-choice").total(["fish", None, "I don't know", "fish or hay"], gold)
    assert (totals.counted, totals.abstained, totals.unparsable) == (4, 2, 1)
    assert totals.figures["aokvqa-choice"].official == 1 / 4
    assert [score.read for score in totals.scores] == ["fish", None, None, None]


def test_an_empty_set_has_totals():
    for each in SCORERS.values():
        totals = each.total([], [])
        assert totals.counted == 0
        assert all(pair.official == 0 for pair in totals.figures.values())


@pytest.mark.parametrize("name", ["METEOR", "spice"])
def test_what_cannot_be_had_says_why(name):
    with pytest.raises(Unavailable, match=rf"{name} is unavailable: .*Java"):
        scorer(name)


def test_an_unknown_scorer_is_named_with_what_was_probably_meant():
    with pytest.raises(UsageError, match=r"no scorer is called 'vqaa'.*did you mean 'vqa'"):
        scorer("vqaa")


words = st.sampled_from(("red", "Red.", "two", "2", "a dog", "no", "none", "", "the", "1,000", "5%", "B"))


@given(
    st.sampled_from(sorted(set(SCORERS) - {"captions", "pope"})),
    words,
    st.lists(words, min_size=1, max_size=10),
)
def test_a_person_is_never_stricter_than_the_tool(name, reply, answers):
    score = scorer(name).score(reply, asked(*answers, choices=("a dog", "red", "no"), choice=1))
    if score is not None and score.read is not None and normalise(score.read):
        assert 0 <= score.official <= score.lenient <= 1


@given(st.text(max_size=12), st.text(max_size=12))
def test_edit_distance_is_a_distance(one, other):
    distance = edit_distance(one, other)
    assert distance == edit_distance(other, one)
    assert abs(len(one) - len(other)) <= distance <= max(len(one), len(other))
    assert (distance == 0) == (one == other)
