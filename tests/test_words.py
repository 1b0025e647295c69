from hypothesis import given
from hypothesis import strategies as st

from nlsom_agents.sight.detector import NAMES
from nlsom_agents.sight.things import EASILY_MISSED, KINDS, PHRASES
from nlsom_agents.sight.words import a, count_of, known, listed, mentions, plural, singular, tokens


def test_irregular_and_regular_plurals_are_formed_and_read() -> None:
    pairs = [
        ("person", "people"), ("woman", "women"), ("child", "children"), ("knife", "knives"),
        ("mouse", "mice"),
        ("bus", "buses"), ("bench", "benches"), ("glass", "glasses"), ("house", "houses"),
        ("horse", "horses"),
        ("puppy", "puppies"), ("tie", "ties"), ("toothbrush", "toothbrushes"), ("vase", "vases"),
        ("box", "boxes"),
        ("sheep", "sheep"), ("scissors", "scissors"), ("key", "keys"),
    ]  # fmt: skip
    for one, many in pairs:
        assert plural(one) == many
        assert singular(many) == one if one != "glass" else singular(many) == "glass"
        assert singular(one) == one


def test_every_class_is_found_in_its_own_plural() -> None:
    for name in NAMES:
        found = mentions(tokens(f"How many {plural(name)} are there?"), PHRASES)
        assert [KINDS[mention.phrase].classes for mention in found] == [frozenset({name})], name


def test_all_that_is_said_to_be_easily_missed_is_a_class() -> None:
    assert set(NAMES) >= EASILY_MISSED


@given(st.text())
def test_singular_and_tokens_take_any_text(text: str) -> None:
    for token in tokens(text):
        assert singular(singular(token)) == singular(token)


@given(st.lists(st.sampled_from(sorted(KINDS)), max_size=4), st.text(alphabet="xyz ", max_size=8))
def test_each_phrase_among_unknown_words_is_found(phrases: list[str], noise: str) -> None:
    said = tokens(f" qq {noise} qq ".join(["", *phrases, ""]))
    found = mentions(said, PHRASES)
    assert [KINDS[mention.phrase] for mention in found] == [KINDS[phrase] for phrase in phrases]
    assert all(tuple(said[m.start : m.end]) == tokens(m.phrase) for m in found)


def test_the_longest_phrase_is_taken() -> None:
    phrases = known(["dog", "hot dog", "hot"])
    assert [m.phrase for m in mentions(tokens("a hot dog and a dog"), phrases)] == ["hot dog", "dog"]


def test_counts_articles_and_lists_read_like_english() -> None:
    assert [count_of(n, "person") for n in (0, 1, 2, 15)] == [
        "no people",
        "one person",
        "two people",
        "15 people",
    ]
    assert (a("apple"), a("cat"), a("coffee")) == ("an apple", "a cat", "coffee")
    assert (listed([]), listed(["a"]), listed(["a", "b", "c"])) == ("", "a", "a, b and c")
