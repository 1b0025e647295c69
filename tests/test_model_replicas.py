from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nlsom.model.limits import Limits
from nlsom.model.replicas import Replica, choose

KEYS = [n.to_bytes(2) for n in range(300)]


def replicas(count: int, cap: int = 2) -> list[Replica]:
    return [Replica(f"http://host-{n}:8000/v1", Limits(cap)) for n in range(count)]


def homes(among: list[Replica]) -> dict[bytes, str]:
    return {key: choose(among, key, now=0, rest=5).url for key in KEYS}


@given(st.permutations(range(5)))
def test_a_key_has_one_home_in_whatever_order_servers_are_given(order):
    among = replicas(5)
    assert homes([among[n] for n in order]) == homes(among)


def test_keys_are_spread_over_all_servers():
    counts = list(homes(replicas(3)).values())
    assert all(counts.count(one.url) > 60 for one in replicas(3))


def test_a_server_that_goes_moves_only_its_own_keys():
    among = replicas(4)
    before, after = homes(among), homes(among[1:])
    assert all(after[key] == home for key, home in before.items() if home != among[0].url)


async def test_a_full_home_is_passed_over_and_the_shortest_queue_is_joined_when_all_are_full():
    among = replicas(3, cap=1)
    key = KEYS[0]
    order = []
    for _ in among:
        home = choose(among, key, now=0, rest=5)
        order.append(home)
        await home.limits.acquire()
    assert len(set(order)) == 3
    assert choose(among, key, now=0, rest=5) is order[0]
    order[0].limits.held += 1
    assert choose(among, key, now=0, rest=5) is order[1]


def test_a_server_that_is_down_rests_and_is_then_probed_by_one_request():
    among = replicas(2)
    home = choose(among, KEYS[0], now=0, rest=5)
    other = next(one for one in among if one is not home)
    home.fell(now=10, rest=3)
    assert choose(among, KEYS[0], now=12, rest=5) is other
    assert choose(among, KEYS[0], now=13, rest=5) is home
    assert choose(among, KEYS[0], now=13, rest=5) is other
    home.rose()
    assert choose(among, KEYS[0], now=13, rest=5) is home


def test_where_a_request_failed_it_goes_again_only_if_nothing_else_is_up():
    among = replicas(2)
    home = choose(among, KEYS[0], now=0, rest=5)
    other = next(one for one in among if one is not home)
    assert choose(among, KEYS[0], now=0, rest=5, avoid=[home]) is other
    other.fell(now=0, rest=9)
    assert choose(among, KEYS[0], now=1, rest=5, avoid=[home]) is home
    home.fell(now=0, rest=9)
    assert choose(among, KEYS[0], now=1, rest=5, avoid=[home]) in among


@pytest.mark.parametrize(("url", "root"), [("http://h:1/v1", "http://h:1"), ("http://h/x", "http://h/x")])
def test_the_root_of_a_server_is_its_address_without_the_api(url, root):
    assert Replica(url, Limits(1)).root == root
