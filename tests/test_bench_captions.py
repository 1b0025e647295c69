"""Caption scores and tokens, against COCO's caption tool."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nlsom.bench.sample import Sample
from nlsom.bench.scores import Similarity, scorer
from nlsom.bench.scores.bleu import bleu, rouge_l
from nlsom.bench.scores.caption import caption_of
from nlsom.bench.scores.cider import cider
from nlsom.bench.scores.tokens import tokenize
from nlsom.errors import UsageError
from nlsom.task import CaptionTask

VECTORS = Path(__file__).parent / "vectors" / "caption_vectors_selfwritten.json"
TOKENS = json.loads(VECTORS.with_name("token_vectors.json").read_text(encoding="utf-8"))["cases"]
SET = json.loads(VECTORS.read_text(encoding="utf-8"))["sets"]["quirks"]
IMAGES = SET["images"]
HYPOTHESES = [image["tok_hypothesis"].split() for image in IMAGES]
REFERENCES = [[reference.split() for reference in image["tok_references"]] for image in IMAGES]


def sample(*references):
    return Sample(id="1", task=CaptionTask(), references=references)


def samples():
    return [sample(*image["references"]) for image in IMAGES]


@pytest.mark.parametrize("image", IMAGES, ids=lambda image: str(image["image_id"]))
def test_tokens_are_the_official_ones(image):
    for text, tokens in [
        (image["hypothesis"], image["tok_hypothesis"]),
        *zip(image["references"], image["tok_references"], strict=True),
    ]:
        assert " ".join(tokenize(text)) == tokens


def test_cider_d_is_exact_on_equal_tokens():
    scores = cider(HYPOTHESES, REFERENCES).cider_d
    np.testing.assert_allclose(scores, [image["CIDEr"] for image in IMAGES], rtol=0, atol=1e-9)
    assert scores.mean() == pytest.approx(SET["corpus"]["CIDEr"], abs=1e-9)


def test_bleu_is_exact_on_equal_tokens():
    scores = bleu(HYPOTHESES, REFERENCES)
    for order in range(4):
        name = f"Bleu_{order + 1}"
        assert scores.corpus[order] == pytest.approx(SET["corpus"][name], abs=1e-9)
        ours = [caption[order] for caption in scores.captions]
        np.testing.assert_allclose(ours, [image[name] for image in IMAGES], rtol=0, atol=1e-9)


def test_rouge_l_is_exact_on_equal_tokens():
    ours = [rouge_l(said, gold) for said, gold in zip(HYPOTHESES, REFERENCES, strict=True)]
    np.testing.assert_allclose(ours, [image["ROUGE_L"] for image in IMAGES], rtol=0, atol=1e-9)


def test_a_set_is_scored_as_the_tool_scores_it():
    totals = scorer("captions").total([image["hypothesis"] for image in IMAGES], samples())
    corpus = SET["corpus"]
    for name, theirs in [
        ("CIDEr", "CIDEr"),
        ("ROUGE-L", "ROUGE_L"),
        *((f"BLEU-{n}", f"Bleu_{n}") for n in (1, 2, 3, 4)),
    ]:
        assert totals.figures[name].official == pytest.approx(corpus[theirs], abs=1e-9)
    assert next(iter(totals.figures)) == "CIDEr"
    assert totals.counted == len(IMAGES)


def slow_cider(hypotheses, references, *, clipped):
    """The definition, transcribed literally."""

    def grams(tokens):
        return [tuple(tokens[i : i + n]) for n in (1, 2, 3, 4) for i in range(len(tokens) - n + 1)]

    frequency = {}
    for group in references:
        for gram in {gram for tokens in group for gram in grams(tokens)}:
            frequency[gram] = frequency.get(gram, 0) + 1

    def vector(tokens, n):
        said = [gram for gram in grams(tokens) if len(gram) == n]
        return {
            gram: said.count(gram) * (np.log(len(references)) - np.log(max(1, frequency.get(gram, 0))))
            for gram in said
        }

    scores = []
    for said, group in zip(hypotheses, references, strict=True):
        total = 0.0
        for gold in group:
            for n in (1, 2, 3, 4):
                a, b = vector(said, n), vector(gold, n)
                dot = sum((min(a[g], b[g]) if clipped else a[g]) * b[g] for g in a.keys() & b.keys())
                norm = np.sqrt(sum(x * x for x in a.values())) * np.sqrt(sum(x * x for x in b.values()))
                delta = max(len(said) - 1, 0) - max(len(gold) - 1, 0)
                total += (dot / norm if norm else 0) * (np.exp(-(delta**2) / 72) if clipped else 1)
        scores.append(10 * total / 4 / len(group))
    return scores


tokens = st.lists(st.sampled_from(("a", "cat", "dog", "on", "mat", "the")), max_size=7)


@given(st.lists(st.tuples(tokens, st.lists(tokens, min_size=1, max_size=3)), max_size=5))
def test_both_ciders_follow_their_definition(pictures):
    hypotheses, references = [said for said, _ in pictures], [gold for _, gold in pictures]
    scores = cider(hypotheses, references)
    np.testing.assert_allclose(scores.cider_d, slow_cider(hypotheses, references, clipped=True), atol=1e-9)
    np.testing.assert_allclose(scores.cider, slow_cider(hypotheses, references, clipped=False), atol=1e-9)


@given(tokens, tokens)
def test_the_longest_common_subsequence_is_found(one, other):
    table = [[0] * (len(other) + 1) for _ in range(len(one) + 1)]
    for i, a in enumerate(one):
        for j, b in enumerate(other):
            table[i + 1][j + 1] = table[i][j] + 1 if a == b else max(table[i][j + 1], table[i + 1][j])
    common = table[-1][-1]
    if not one or not other or not common:
        assert rouge_l(one, [other]) == (1.0 if not one and not other else 0.0)
    else:
        p, r = common / len(one), common / len(other)
        assert rouge_l(one, [other]) == pytest.approx((1 + 1.44) * p * r / (r + 1.44 * p))


def test_cider_refuses_what_does_not_fit_together():
    with pytest.raises(ValueError, match="1 hypotheses for 2 pictures"):
        cider([["a"]], [[["a"]], [["a"]]])
    with pytest.raises(ValueError, match="at least one reference"):
        cider([["a"]], [[]])


@pytest.mark.parametrize(
    ("reply", "caption"),
    [
        ("**Caption:** A cat.", "A cat."),
        ('"A cat."', "A cat."),
        ("A cat\non a mat", "A cat on a mat"),
        (None, ""),
    ],
)
def test_the_caption_is_taken_out_of_its_dress(reply, caption):
    assert caption_of(reply) == caption


def test_the_lenient_column_forgives_a_label_before_the_caption():
    replies = ["Caption: a cat on a mat", "a dog", None]
    totals = scorer("captions").total(replies, [sample("a cat on a mat"), sample("a dog"), sample("a cow")])
    assert totals.scores[0].lenient > totals.scores[0].official
    assert totals.scores[1].lenient == totals.scores[1].official
    assert totals.scores[2].official == 0
    assert (totals.abstained, totals.unparsable) == (1, 0)
    assert scorer("captions").score("a dog", sample("a dog")) is None


def test_a_sample_without_references_is_refused():
    with pytest.raises(UsageError, match="no reference captions"):
        scorer("captions").total(["a"], [sample()])


def letters(texts):
    """A simple embedding that can tell texts apart: the number of times each letter occurs."""
    return np.array([[text.casefold().count(letter) for letter in "abcdefghijklmnopqrst"] for text in texts])


def test_tara_compares_embeddings_of_sentences():
    tara = Similarity(letters)
    totals = tara.total(["a cat", "Caption: a cat", None], [sample("a dog", "a cat")] * 3)
    assert totals.scores[0].official == pytest.approx(1)
    assert totals.scores[1].official < 1
    assert totals.scores[1].lenient == pytest.approx(1)
    assert totals.scores[2].official == 0


@pytest.mark.parametrize(("caption", "tokens"), TOKENS, ids=lambda text: text[:30])
def test_tokens_of_odd_captions_are_the_official_ones(caption, tokens):
    assert " ".join(tokenize(caption)) == tokens


def test_a_number_with_a_fraction_is_one_token_for_rouge_and_two_for_the_rest():
    replies = ["a 1/2 foot board", "a dog on a mat", "a 2 1/2 inch nail"]
    gold = [sample("a 1 1/2 foot board"), sample("a dog"), sample("a 1/2 inch nail", "a 2 1/2 inch nail")]
    figures = scorer("captions").total(replies, gold).figures
    # COCO's caption tool
    assert figures["CIDEr"].official == pytest.approx(4.691384463324622)
    assert figures["BLEU-1"].official == pytest.approx(0.7857142856581634)
    assert figures["ROUGE-L"].official == pytest.approx(0.7897631133671742)


@given(st.text(alphabet="aBcé .,'’‘-&/\"19()[]<>$#@:;=?!_*\\st\n", max_size=20))
def test_tokens_are_lower_case_and_hold_no_blank_and_no_stray_comma(caption):
    for token in tokenize(caption):
        assert token
        assert token == token.lower()
        assert not set(token) & set(' \n()[]"') or token[0] in "<>:;=" or "@" in token
        assert token not in ("''", "'", "``", "`", ".", "?", "!", ",", ":", "-", "--", "...", ";")


@given(st.text(max_size=30), st.text(max_size=30))
def test_a_line_feed_parts_captions_like_a_blank(one, other):
    assert tokenize(f"{one}\n{other}") == tokenize(f"{one} {other}")


@pytest.mark.parametrize("part", ["a-", "a.!", "a.b,", "'", "<!a", "1 ", "a@", "a/", "?!", "http://"])
def test_a_reply_that_goes_in_circles_is_tokenized_in_fair_time(part):
    tokenize(part * 2_000)
