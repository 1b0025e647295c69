"""Reads YAML without guessing, with a location for every value."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from nlsom.errors import ConfigError, UsageError
from nlsom.source import plain, read, read_file


@pytest.mark.parametrize(
    "text", ["no", "on", "007", "12:30", "3.10", "1e3", "0x1F", "null", "~", "2026-01-01", "y"]
)
def test_a_scalar_is_its_source_text(text):
    assert read(f"a: {text}\nb: [{text}]\n{text}: c", "f").tree == {"a": text, "b": [text], text: "c"}


def test_what_is_left_empty_is_nothing_and_quotes_make_an_empty_text():
    assert read("a:\nb: ''", "f").tree == {"a": None, "b": ""}


def test_every_value_and_key_knows_where_it_stands():
    source = read("a: 1\nb:\n  - x\n  - c: 2\n", "f.yaml")
    assert str(source.fault(("b", 1, "c"), "odd")) == "f.yaml:4:8: odd"
    assert str(source.fault(("b", 1, "c"), "odd", key=True)) == "f.yaml:4:5: odd"
    assert str(source.fault(("b", 1, "gone"), "odd")) == "f.yaml:4:5: odd"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: 1\na: 2", "f:2:1: the key 'a' stands here twice"),
        ("a: {b: 1, b: 2}", "f:1:11: the key 'b' stands here twice"),
        ("a:\n\tb: 1", "f:2:1: .*spaces, not tabs"),
        ("a: !!python/object:os.system x", "f:1:4: tags like .* are not allowed"),
        ("a: !mine x", "f:1:4: tags like !mine are not allowed"),
        ("[a]: b", "f:1:1: a key has to be plain text"),
        ("", "f:1:1: a society file is a mapping"),
        ("# nothing", "f:1:1: a society file is a mapping"),
        ("- a", "f:1:1: a society file is a mapping"),
        ("a: [1", "f:.*expected"),
        ("a: b: c", "f:1:5: mapping values are not allowed"),
        ("a: &x [*x]", "f:1:4: too large or too deep"),
        ("a: &x {b: 1}\nc: {<<: *x}", "f:2:5: merge keys .* are not read"),
        ("a: *gone", "f:1:4: .*undefined alias"),
        ("a: 1\n---\nb: 2", "f:2:1: "),
        ("b: 1\na: \x00", r"f:2:4: the character U\+0000 is not allowed"),
        ("a: " + "[" * 200 + "]" * 200, "too large or too deep"),
        ("[" * 100_000, "f: not YAML|too deep"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(text, told):
    with pytest.raises(ConfigError, match=told):
        read(text, "f")


def test_half_a_surrogate_pair_is_no_part_of_any_text():
    assert read('"a\\ud800": "b\\ud800"', "f").tree == {"a\ufffd": "b\ufffd"}
    assert plain({"a\ud800": ["b\ud800"]}).tree == {"a\ufffd": ["b\ufffd"]}


def test_aliases_that_unfold_without_end_are_refused():
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    with pytest.raises(ConfigError, match="too large"):
        read("\n".join(lines), "f")


def test_all_faults_are_told_at_once():
    with pytest.raises(ConfigError) as caught:
        read("a: 1\na: 2\nb: !x y\nb: 3", "f")
    assert [fault.where for fault in caught.value.faults] == ["f:2:1", "f:3:4", "f:4:1"]


@pytest.mark.parametrize(
    ("data", "tree"),
    [
        ("a: Åsa".encode(), {"a": "Åsa"}),
        (b"\xef\xbb\xbfa: b", {"a": "b"}),
        (b"a: b\r\nc: d\r\n", {"a": "b", "c": "d"}),
        ("日本: '\U0001f600'".encode(), {"日本": "\U0001f600"}),
        (b'{"a": "\\ud83d\\ude00"}', {"a": "\U0001f600"}),
        (b'{"a": "\\ud83d!"}', {"a": "\ufffd!"}),
    ],
)
def test_files_are_utf8_with_any_line_ends(tmp_path, data, tree):
    path = tmp_path / "f.yaml"
    path.write_bytes(data)
    assert read_file(path).tree == tree


def test_a_file_without_end_is_refused():
    with pytest.raises(UsageError, match="no society file"):
        read_file(Path("/dev/zero"))


def test_a_mapping_that_holds_itself_is_told():
    loop = {}
    loop["a"] = loop
    with pytest.raises(ConfigError, match="holds itself"):
        plain(loop)


def test_a_file_that_is_no_text_or_not_there_is_told(tmp_path):
    (tmp_path / "f").write_bytes(b"a: \xff")
    with pytest.raises(UsageError, match=r"not UTF-8 text \(byte 3\)"):
        read_file(tmp_path / "f")
    with pytest.raises(UsageError, match="No such file"):
        read_file(tmp_path / "gone")
    with pytest.raises(UsageError, match="directory"):
        read_file(tmp_path)


texts = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=12)
trees = st.dictionaries(
    texts,
    st.recursive(
        texts, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3)
    ),
)


@given(trees)
@settings(max_examples=60)
def test_what_yaml_writes_is_read_back(tree):
    text = yaml.safe_dump(tree, allow_unicode=True, default_style='"')
    assert read(text, "f").tree == tree


@given(st.text(max_size=60))
@settings(max_examples=150)
def test_any_text_is_read_or_refused_with_a_fault(text):
    try:
        tree = read(text, "f").tree
    except ConfigError as error:
        tree = dict.fromkeys(map(str, error.faults))
    assert tree or not text.strip("{} \n")


def test_overrides_reach_into_mappings_and_lists():
    source = plain({"a": {"b": "1"}, "l": [{"x": "1"}, "y"], "s": "democracy"})
    source.set("a.b", "2", told="--set a.b=2")
    source.set("new.way.down", "3", told="t")
    source.set("l.0.x", "4", told="t")
    source.set("l.1", "5", told="t")
    source.set("s.layers", "6", told="t")
    assert source.tree == {
        "a": {"b": "2"}, "new": {"way": {"down": "3"}}, "l": [{"x": "4"}, "5"], "s": {"layers": "6"},
    }  # fmt: skip
    assert source.fault(("a", "b"), "odd").where == "--set a.b=2"


@pytest.mark.parametrize(
    "path", ["l.7", "l.x", "l.0.x.y.z.w.0", "l.7.x", "l.-1", "l.²", f"l.{'9' * 5000}", f"l.{'9' * 5000}.x"]
)
def test_an_override_that_leads_nowhere_is_told(path):
    source = plain({"l": [["x"]]})
    with pytest.raises(UsageError, match="--set"):
        source.set(path, "1", told=f"--set {path}=1")
