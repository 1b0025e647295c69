from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from nlsom.errors import ConfigError
from nlsom.member import Member
from nlsom.structure import (
    STRUCTURES,
    Chain,
    Democracy,
    Edges,
    Grid,
    Groups,
    Hierarchy,
    Layers,
    Monarchy,
    Random,
    RandomDag,
    Ring,
    ScaleFree,
    SmallWorld,
    Star,
    Structure,
    StructureSpec,
    edges,
    generations,
    hearing_classes,
)
from nlsom.structure.hearing import table

ROLES = ["organizer", "leader", "expert", "critic"]


def crowd(n: int, *roles: str) -> list[Member]:
    """n members; those without a role given are experts."""
    return [Member(name=f"m{at}", role=roles[at] if at < len(roles) else "expert") for at in range(n)]


def heard_by(structure: Structure, n: int) -> list[set[int]]:
    """Whom each hears, itself left out."""
    return [set(structure.hears(at)) - {at} for at in range(n)]


societies = st.lists(st.sampled_from(ROLES), min_size=1, max_size=14).map(lambda r: crowd(len(r), *r))
probability = st.floats(0, 1)
seed = st.integers(0, 9)
by_rule: st.SearchStrategy[StructureSpec] = st.one_of(
    st.builds(Democracy),
    st.builds(Star),
    st.builds(Ring, neighbours=st.integers(1, 8), both=st.booleans()),
    st.builds(Chain),
    st.builds(Hierarchy, fan_out=st.integers(1, 5), flow=st.sampled_from(["both", "up", "down"])),
    st.builds(Layers),
    st.builds(Groups, by=st.sampled_from(["role", "persona", 1, 2, 3, 20]), delegates=st.integers(0, 4)),
    st.builds(Grid, width=st.none() | st.integers(1, 6)),
)
by_lot: st.SearchStrategy[StructureSpec] = st.one_of(
    st.builds(Random, p=probability, seed=seed),
    st.builds(RandomDag, p=probability, seed=seed),
    st.builds(SmallWorld, k=st.integers(2, 6), p=probability, seed=seed),
    st.builds(ScaleFree, m=st.integers(1, 4), seed=seed),
)
selector = st.sampled_from([*ROLES, "*", "m0"])
by_role: st.SearchStrategy[StructureSpec] = st.one_of(
    st.builds(Monarchy, heads=st.none() | st.just(("m0", "expert"))),
    st.builds(
        Edges,
        edges=st.lists(st.tuples(*[st.sampled_from([*ROLES, "*", "m0"])] * 2), min_size=1, max_size=6).map(
            tuple
        ),
    ),
)


@settings(deadline=None, max_examples=300)
@given(spec=st.one_of(by_rule, by_lot, by_role), members=societies)
def test_every_structure_keeps_the_contract_of_hearing(spec: StructureSpec, members: list[Member]) -> None:
    try:
        structure = spec.build(members)
    except ConfigError:
        return  # too few members for these parameters
    n = len(members)
    everyone = [structure.hears(at) for at in range(n)]
    closed = [set(whom) | {at} for at, whom in enumerate(everyone)]
    for at, whom in enumerate(everyone):
        assert all(a < b for a, b in pairwise(whom)), "ascending, nobody twice"
        assert all(0 <= b < n for b in whom)
        assert isinstance(whom, range) == (not whom or whom[-1] - whom[0] + 1 == len(whom)), "one form"
        shared = any(closed[b] == closed[at] for b in range(n) if b != at)
        assert (at in whom) == shared, "own words stay exactly where another hears the very same"
    again = spec.build(members)
    assert [again.hears(at) for at in range(n)] == everyone


@settings(deadline=None)
@given(rows=st.lists(st.sets(st.integers(0, 9)), min_size=10, max_size=10), order=st.permutations(range(10)))
def test_a_table_does_not_depend_on_which_hearings_are_one_object(
    rows: list[set[int]], order: list[int]
) -> None:
    heard = [tuple(sorted(row)) for row in rows]
    written = table(heard)
    assert heard_by(written, 10) == [row - {at} for at, row in enumerate(rows)]
    moved = table([tuple(sorted(order.index(b) for b in rows[a])) for a in order])
    for place, a in enumerate(order):
        assert set(moved.hears(place)) == {order.index(b) for b in written.hears(a)}


@given(members=societies)
def test_members_who_hear_the_same_share_one_object(members: list[Member]) -> None:
    structure = Groups(by="role", delegates=2).build(members)
    for whom, who in hearing_classes(structure, range(len(members))).items():
        assert all(structure.hears(at) == whom for at in who)
        assert len({id(structure.hears(at)) for at in who}) == 1


def test_heads_of_a_monarchy_hear_everyone_and_the_others_hear_the_heads() -> None:
    structure = Monarchy().build(crowd(5, "organizer", "leader"))
    assert [structure.hears(at) for at in range(5)] == [range(5), range(5), range(2), range(2), range(2)]


def test_a_lone_head_finds_its_own_words_in_the_tail() -> None:
    structure = Monarchy(heads=("m2",)).build(crowd(4))
    assert structure.hears(2) == (0, 1, 3)
    assert structure.hears(0) == range(2, 3)


def test_a_monarchy_without_heads_is_refused() -> None:
    with pytest.raises(ConfigError, match="heads: nobody reigns"):
        Monarchy().build(crowd(3))


def test_who_is_alone_hears_nobody_in_a_democracy() -> None:
    assert list(Democracy().build(crowd(1)).hears(0)) == []


def test_a_ring_closes() -> None:
    ring = Ring().build(crowd(5))
    assert [ring.hears(at) for at in range(5)] == [(1, 4), (0, 2), (1, 3), (2, 4), (0, 3)]
    relay = Ring(both=False).build(crowd(3))
    assert [list(relay.hears(at)) for at in range(3)] == [[2], [0], [1]]


def test_a_hierarchy_is_filled_level_by_level() -> None:
    members = crowd(7)
    assert heard_by(Hierarchy().build(members), 7)[1] == {0, 3, 4}
    assert heard_by(Hierarchy(flow="up").build(members), 7)[1] == {3, 4}
    assert heard_by(Hierarchy(flow="down").build(members), 7)[1] == {0}
    assert heard_by(Hierarchy(fan_out=6).build(members), 7) == [{1, 2, 3, 4, 5, 6}, *[{0}] * 6]


@pytest.mark.parametrize("spec", [Layers(sizes=(2, 2, 1)), Layers(of=("m0", "critic", "leader")), Layers()])
def test_a_layer_hears_the_layer_before(spec: Layers) -> None:
    roles = ["expert", "expert", "critic", "critic", "leader"]
    if spec.of:
        roles = ["expert", "critic", "critic", "critic", "leader"]
    structure = spec.build(crowd(5, *roles))
    layers = generations(structure, 5)
    assert layers is not None
    assert len(layers) == 3
    assert [list(structure.hears(layer[0])) for layer in layers] == [[], list(layers[0]), list(layers[1])]


def test_layers_that_leave_a_member_out_or_take_one_twice_are_refused() -> None:
    with pytest.raises(ConfigError) as error:
        Layers(of=("expert", "m0")).build(crowd(3, "expert", "critic"))
    assert [str(fault) for fault in error.value.faults] == [
        "of.1: 'm0' is in two layers",
        "of: in no layer: m1",
    ]
    with pytest.raises(ConfigError, match="sizes: 4 seats in layers, but 3 members"):
        Layers(sizes=(2, 2)).build(crowd(3))


def test_delegates_hear_each_other_across_groups() -> None:
    structure = Groups(by=3).build(crowd(7))
    assert heard_by(structure, 7) == [{1, 2, 3, 6}, {0, 2}, {0, 1}, {4, 5, 0, 6}, {3, 5}, {3, 4}, {0, 3}]


def test_a_grid_has_no_neighbours_beyond_its_edges() -> None:
    assert heard_by(Grid(width=3).build(crowd(7)), 7) == [
        {1, 3},
        {0, 2, 4},
        {1, 5},
        {0, 4, 6},
        {1, 3, 5},
        {2, 4},
        {3},
    ]


def test_generators_draw_the_graphs_that_they_are_named_after() -> None:
    world = SmallWorld(k=4, p=0.2, seed=3).build(crowd(40))
    graph = nx.watts_strogatz_graph(40, 4, 0.2, seed=3)
    assert heard_by(world, 40) == [set(graph.adj[at]) for at in range(40)]
    hubs = sorted(map(len, heard_by(ScaleFree(m=2).build(crowd(200)), 200)))
    assert hubs[-1] > 5 * hubs[100]
    assert sum(hubs) == 2 * 2 * 198


def test_as_many_edges_are_drawn_as_their_probability_says() -> None:
    n, p = 400, 0.1
    drawn = sum(1 for _ in edges(RandomDag(p=p, seed=1).build(crowd(n)), n))
    pairs = n * (n - 1) / 2
    assert abs(drawn - p * pairs) < 4 * (pairs * p * (1 - p)) ** 0.5
    assert Random(p=1).build(crowd(9)).hears(4) == range(9)
    assert list(edges(Random(p=0).build(crowd(9)), 9)) == []


@settings(deadline=None)
@given(p=probability, seed=seed, gone=st.integers(0, 9), order=st.permutations(range(10)))
def test_a_member_that_leaves_changes_nothing_between_the_others(
    p: float, seed: int, gone: int, order: list[int]
) -> None:
    def pairs(members: Sequence[Member]) -> set[tuple[str, str]]:
        structure = Random(p=p, seed=seed).build(members)
        return {(members[a].name, members[b].name) for a, b in edges(structure, len(members))}

    members = crowd(10)
    left = [member for member in members if member.name != f"m{gone}"]
    assert pairs(left) == {pair for pair in pairs(members) if f"m{gone}" not in pair}
    assert pairs([members[at] for at in order]) == pairs(members)


def test_own_edges_take_members_roles_and_everyone() -> None:
    members = [Member(name="小明", role="expert"), *crowd(3, "expert", "judge", "crier")[0:3]]
    spec = Edges.model_validate([["expert", "expert"], ["expert", "judge"], ["crier", "*"]])
    assert heard_by(spec.build(members), 4) == [{1, 3}, {0, 3}, {0, 1, 3}, set()]
    assert heard_by(Edges(edges=(("小明", "m2"),)).build(members), 4) == [set(), set(), set(), {0}]


def test_the_json_schema_lets_the_list_of_edges_stand_alone() -> None:
    alone, whole = Edges.model_json_schema()["anyOf"]
    assert alone["type"] == "array"
    assert whole["required"] == ["edges"]


def test_unknown_members_in_own_edges_are_all_named_with_what_was_meant() -> None:
    with pytest.raises(ConfigError) as error:
        Edges(edges=(("exprt", "m1"), ("m0", "nobody"))).build(crowd(2))
    assert [str(fault) for fault in error.value.faults] == [
        "edges.0.0: no member or role is called 'exprt'; did you mean 'expert'?",
        "edges.1.1: no member or role is called 'nobody'; there are expert, m0, m1",
    ]


def test_a_name_that_is_also_the_role_of_others_is_refused() -> None:
    members = [Member(name="judge", role="expert"), Member(name="b", role="judge")]
    with pytest.raises(ConfigError, match="both a member and the role"):
        Star(centre="judge").build(members)


def test_a_centre_is_one_member() -> None:
    with pytest.raises(ConfigError, match="'expert' are 3 members"):
        Star(centre="expert").build(crowd(3))


@pytest.mark.parametrize("spec", [SmallWorld(k=4), ScaleFree(m=4)])
def test_a_lot_for_too_few_members_is_refused(spec: StructureSpec) -> None:
    with pytest.raises(ConfigError, match="need more than 4 members"):
        spec.build(crowd(4))


def test_parameters_come_as_text_and_unknown_ones_are_refused() -> None:
    assert STRUCTURES["small_world"].model_validate({"k": "6", "p": "0.5"}) == SmallWorld(k=6, p=0.5)
    assert STRUCTURES["groups"].model_validate({"by": "3"}) == Groups(by=3)
    refused: list[tuple[str, object]] = [
        ("ring", {"neighbors": 1}),
        ("random", {"p": 2}),
        ("random", {}),
        ("edges", []),
    ]
    for name, wrong in refused:
        with pytest.raises(ValidationError):
            STRUCTURES[name].model_validate(wrong)


@settings(deadline=None)
@given(p=probability, seed=seed, n=st.integers(1, 12))
def test_generations_put_everyone_after_whom_it_hears(p: float, seed: int, n: int) -> None:
    structure = RandomDag(p=p, seed=seed).build(crowd(n))
    found = generations(structure, n)
    assert found is not None
    when = {at: step for step, group in enumerate(found) for at in group}
    assert len(when) == sum(map(len, found)) == n
    for at in range(n):
        before = [when[b] for b in structure.hears(at)]
        assert when[at] == max(before, default=-1) + 1


@settings(deadline=None)
@given(spec=st.one_of(by_rule, by_lot), members=societies)
def test_there_are_generations_exactly_where_nobody_hears_in_a_circle(
    spec: StructureSpec, members: list[Member]
) -> None:
    n = len(members)
    try:
        structure = spec.build(members)
    except ConfigError:
        return
    graph = nx.DiGraph(list(edges(structure, n)))
    assert (generations(structure, n) is not None) == nx.is_directed_acyclic_graph(graph)


def test_hearing_classes_are_few_in_social_structures_and_many_in_a_ring() -> None:
    members = crowd(60, "organizer")
    counts = {
        name: len(hearing_classes(STRUCTURES[name]().build(members), range(60)))
        for name in ("democracy", "star", "monarchy", "layers", "chain", "ring")
    }
    assert counts == {"democracy": 1, "star": 2, "monarchy": 2, "layers": 2, "chain": 60, "ring": 60}


def test_ten_thousand_members_hear_each_other_without_a_table() -> None:
    members = crowd(10_000)
    for spec in (Democracy(), Ring(), Chain(), Edges(edges=(("*", "*"),)), Groups(by=5_000)):
        structure = spec.build(members)
        assert len({id(structure.hears(at)) for at in (1, 2)}) <= 2
    halves = [Member(name=f"m{at}", role="artist" if at % 2 else "critic") for at in range(10_000)]
    across = Edges(edges=(("artist", "critic"), ("critic", "artist"))).build(halves)
    assert len({id(across.hears(at)) for at in range(10_000)}) == 2
    everyone = Edges(edges=(("*", "*"),)).build(members)
    assert hearing_classes(everyone, range(10_000)) == {range(10_000): list(range(10_000))}
    assert len(hearing_classes(Groups(by=5_000).build(members), range(10_000))) == 4
