"""Caption scores and tokens, against COCO's caption tool."""

import json
import re
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
    """The definition, written down word by word."""

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
    """An embedding good enough to tell texts apart: how often each letter occurs."""
    return np.array([[text.casefold().count(letter) for letter in "abcdefghijklmnopqrst"] for text in texts])


def test_tara_compares_embeddings_of_sentences():
    tara = Similarity(letters)
    totals = tara.total(["a cat", "Caption: a cat", None], [sample("a dog", "a cat")] * 3)
    assert totals.scores[0].official == pytest.approx(1)
    assert totals.scores[1].official < 1
    assert totals.scores[1].lenient == pytest.approx(1)
    assert totals.scores[2].official == 0


@pytest.mark.parametrize(
    ("caption", "tokens"),
    [
        ("A 5-year-old in a 2-story house", "a 5-year-old in a 2-story house"),
        ("It is 12:30pm.", "it is 12:30 pm"),
        ("a 3.5-inch disk, 5ft away", "a 3.5-inch disk 5ft away"),
        ("A cat.A dog", "a cat a dog"),
        ("AT&T and men&women", "at&t and men & women"),
        ("the corner of 5th Ave.", "the corner of 5th ave."),
        ("a store on the ave", "a store on the ave"),
        ("'90s rock 'n' roll", "'90s rock 'n' roll"),
        ("y'all can't've", "y' all ca n't 've"),
        ("£5 for ½ a cake", "# 5 for 1/2 a cake"),
        ("see www.x.com.", "see www.x.com"),
        ("wait ... what?!", "wait what"),
        ("cannot, gonna", "can not gon na"),
    ],
)
def test_tokens_beyond_the_vectors_follow_the_tokenizers_rules(caption, tokens):
    assert " ".join(tokenize(caption)) == tokens


@given(st.text(alphabet="aBcé .,'-&/\"19()st", max_size=20))
def test_tokens_are_lower_case_words_of_the_caption(caption):
    joined = "".join(caption.lower().split())
    for token in tokenize(caption):
        assert token == token.lower()
        assert not set(re.sub(r"(?<=\d),(?=\d)", "", token)) & set(' ",')  # 1,000 is one token
        assert token in joined or token in ("-lrb-", "-rrb-")
