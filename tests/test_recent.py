from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nlsom.recent import Recent


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 12))))
def test_the_cache_never_holds_more_than_its_limit_and_never_lies(uses: list[tuple[int, int]]) -> None:
    cache, held = Recent[str, bytes](20, len), dict[str, bytes]()
    for number, size in uses:
        key = f"{number}"
        value = held.setdefault(key, bytes([number]) * size)
        assert cache.get(key) in (None, value)
        cache.put(key, value)
        assert cache.get(key) == value, "what was used last is there"
        assert sum(len(found) for key in held if (found := cache.get(key)) is not None) <= 20


def test_what_was_not_used_for_longest_makes_room() -> None:
    cache = Recent[str, int](2)
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.get("a") == 1
    cache.put("c", 3)
    assert cache.get("b") is None
    assert (cache.get("a"), cache.get("c")) == (1, 3)


def test_a_value_that_is_put_again_counts_once() -> None:
    cache = Recent[str, bytes](10, len)
    for value in (b"12345678", b"1234", b""):
        cache.put("a", value)
    cache.put("b", b"1234567890")
    assert cache.get("a") == b""
    assert cache.get("b") == b"1234567890"


def test_a_value_larger_than_the_limit_is_not_held_and_pushes_nothing_out() -> None:
    cache = Recent[str, bytes](4, len)
    cache.put("a", b"1")
    cache.put("b", b"12345")
    assert cache.get("b") is None
    assert cache.get("a") == b"1"
