import json
import random
import tomllib
from collections import Counter
from fractions import Fraction
from importlib import import_module
from itertools import permutations
from pathlib import Path

import pytest
import votelib.component.rankscore as rankscore
import votelib.convert as convert
import votelib.evaluate.cardinal as cardinal
import votelib.evaluate.condorcet as condorcet
import votelib.evaluate.core as core
import votelib.evaluate.sequential as sequential
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

import nlsom.rules as rules
from nlsom.message import Approval, Choice, Ranking, Scores
from nlsom.rules.universes import universes
from nlsom.verdict import Rule, SettlingRule, Vote

few = settings(max_examples=40, deadline=None)
HERE = Path(__file__).parent
PAIRWISE = {
    "copeland": rules.Copeland(),
    "minimax by winning": rules.Minimax(),
    "minimax by margin": rules.Minimax(by="margin"),
    "schulze by winning": rules.Schulze(),
    "schulze by margin": rules.Schulze(by="margin"),
    "ranked_pairs by winning": rules.RankedPairs(),
    "ranked_pairs by margin": rules.RankedPairs(by="margin"),
}
RANKED = PAIRWISE | {
    "plurality": rules.Plurality(),
    "borda": rules.Borda(),
    "instant_runoff": rules.InstantRunoff(),
    "bucklin": rules.Bucklin(),
}
ALL = RANKED | {
    "approval": rules.Approval(at_least=5),
    "range": rules.Range(),
    "confidence": rules.Confidence(),
    "competence": rules.Competence(),
    "consensus": rules.Consensus(),
    "decree": rules.Decree(),
    "unanimity": rules.Unanimity(fallback=rules.Plurality()),
}


def ranking(*names, voter="v"):
    return Vote(voter, Ranking(ranking=names))


def ranked(profile):
    return [ranking(*names, voter=f"v{at}") for at, names in enumerate(profile)]


def field(options):
    return [chr(ord("a") + at) for at in range(options)]  # votelib's Borda takes longer names apart


@st.composite
def profiles(draw, *, full=False, least=1, most=8):
    options = draw(st.integers(2, 4))
    names = field(options)
    ballot = st.permutations(names)
    if not full:
        ballot = st.tuples(ballot, st.integers(1, options)).map(lambda drawn: drawn[0][: drawn[1]])
    return names, ranked(draw(st.lists(ballot, min_size=least, max_size=most)))


@st.composite
def mixed(draw):
    names = field(draw(st.integers(2, 4)))
    some = st.lists(st.sampled_from(names), unique=True, min_size=1)
    unit = st.one_of(st.none(), st.sampled_from([0.1, 0.2, 0.3, 0.7, 1.0]))
    ballots = st.one_of(
        st.none(),
        st.sampled_from(names).map(lambda name: Choice(choice=name)),
        some.map(lambda chosen: Approval(approved=tuple(chosen))),
        some.map(lambda chosen: Ranking(ranking=tuple(chosen))),
        some.map(lambda chosen: Scores(scores={name: at / 10 for at, name in enumerate(chosen)})),
    )
    drawn = draw(st.lists(st.tuples(ballots, unit, unit), max_size=8))
    return names, [Vote(f"v{at}", ballot, c, p) for at, (ballot, c, p) in enumerate(drawn)]


# Against other libraries


@pytest.mark.parametrize("name", RANKED)
def test_winners_and_ties_are_those_of_pref_voting(name):
    said = json.loads((HERE / "vectors" / "rules.json").read_text())
    compared = 0
    for case in said["cases"]:
        names = field(case["options"])
        votes = ranked([[names[at] for at in ballot] for ballot in case["ballots"]])
        for told, winners in case["winners"].items():
            if name == told or name.startswith(f"{told} by ") or told == f"{name} by margin":
                count = RANKED[name](votes, names)
                assert list(count.winners) == [names[at] for at in winners], case
                compared += 1
    assert compared >= 120


def only(winners):
    """The one winner that votelib names; None for a tie."""
    return None if not winners or isinstance(winners[0], core.Tie) else winners[0]


def agrees(count, theirs):
    return count.winners == (theirs,) if theirs is not None else len(count.winners) > 1


def test_winners_are_those_of_votelib_on_thousands_of_profiles():
    draw = random.Random(4)
    compared: Counter[str] = Counter()
    for _ in range(3000):
        names = field(draw.randint(2, 5))
        profile = [draw.sample(names, len(names)) for _ in range(draw.randint(1, 25))]
        votes, grouped = ranked(profile), Counter(map(tuple, profile))
        counts = {name: rule(votes, names) for name, rule in RANKED.items()}
        # Without the zeros votelib overlooks whoever is never beaten.
        pairs = dict.fromkeys(permutations(names, 2), 0) | convert.RankedToCondorcetVotes().convert(grouped)
        firsts = convert.RankedToFirstPreference().convert(grouped)
        points = convert.RankedToPositionalVotes(rankscore.Borda(0)).convert(grouped)
        for name, found in {
            "plurality": core.Plurality().evaluate(firsts, 1),
            "borda": core.Plurality().evaluate(points, 1),
            "copeland": condorcet.Copeland(second_order=False).evaluate(pairs, 1),
            "minimax by winning": condorcet.MinimaxCondorcet().evaluate(pairs, 1),
            "minimax by margin": condorcet.MinimaxCondorcet("margins").evaluate(pairs, 1),
            "bucklin": sequential.PreferenceAddition().evaluate(grouped, 1),
        }.items():
            if name == "copeland" and not condorcet.pairwise_wins(pairs):
                continue  # votelib names nobody where every pair is tied
            assert agrees(counts[name], only(found)), (name, profile)
            compared[name] += 1
        try:
            found = sequential.TransferableVoteSelector().evaluate(grouped, 1)
        except NotImplementedError:
            pass  # votelib does not eliminate where there is a tie
        else:
            assert agrees(counts["instant_runoff"], only(found)), profile
            compared["instant_runoff"] += 1
        paths = condorcet.Schulze.widest_paths(pairs)
        unbeaten = {
            a for a in names if all(paths.get((b, a), 0) <= paths.get((a, b), 0) for b in names if b != a)
        }
        assert set(counts["schulze by winning"].winners) == unbeaten
        wins = [pairs[pair] for pair in condorcet.pairwise_wins(pairs)]
        if len(set(wins)) == len(wins) == len(names) * (len(names) - 1) // 2:
            assert counts["ranked_pairs by winning"].winners == (
                condorcet.RankedPairs().evaluate(pairs, 1)[0],
            )
            compared["ranked_pairs"] += 1
    assert min(compared.values()) > 500, compared


def test_approvals_and_scores_are_counted_as_votelib_counts_them():
    draw = random.Random(5)
    for _ in range(1000):
        names = field(draw.randint(2, 5))
        given = [{name: draw.randint(0, 10) for name in names} for _ in range(draw.randint(1, 12))]
        votes = [Vote(f"v{at}", Scores(scores=dict(scores))) for at, scores in enumerate(given)]
        theirs = Counter(frozenset(scores.items()) for scores in given)
        assert agrees(
            rules.Range()(votes, names), only(cardinal.ScoreVoting(function="sum").evaluate(theirs, 1))
        )
        approved = [frozenset(name for name, score in scores.items() if score >= 5) for scores in given]
        simple = {name: sum(name in each for each in approved) for name in names}
        assert agrees(rules.Approval(at_least=5)(votes, names), only(core.Plurality().evaluate(simple, 1)))


# Properties


@pytest.mark.parametrize("rule", PAIRWISE.values(), ids=PAIRWISE)
@few
@given(drawn=profiles())
def test_a_condorcet_winner_wins_alone(rule, drawn):
    names, votes = drawn
    pairs = rules.Copeland()(votes, names).pairwise
    best = [a for a in names if all(pairs[a][b] > pairs[b][a] for b in names if b != a)]
    if best:
        assert list(rule(votes, names).winners) == best


@pytest.mark.parametrize("name", [*PAIRWISE, "plurality", "instant_runoff", "bucklin"])
@few
@given(drawn=profiles())
def test_first_on_most_ballots_wins_alone(name, drawn):
    names, votes = drawn
    first, times = Counter(vote.ballot.ranking[0] for vote in votes).most_common(1)[0]
    if 2 * times > len(votes):
        assert RANKED[name](votes, names).winners == (first,)


def test_borda_can_pass_over_a_majority():
    votes = ranked([("a", "b", "c")] * 3 + [("b", "c", "a")] * 2)
    assert rules.Borda()(votes, "abc").winners == ("b",)


@pytest.mark.parametrize("rule", ALL.values(), ids=ALL)
@few
@given(drawn=mixed(), shuffle=st.randoms(use_true_random=False))
def test_the_order_of_votes_and_who_cast_them_do_not_matter(rule, drawn, shuffle):
    names, votes = drawn
    count = rule(votes, names)
    mixed_up = list(votes)
    shuffle.shuffle(mixed_up)
    assert rule(mixed_up, names) == count
    renamed = [Vote(f"other {vote.voter}", vote.ballot, vote.confidence, vote.competence) for vote in votes]
    again = rule(renamed, names)
    assert (again.winners, again.tally) == (count.winners, count.tally)


def renamed_ballot(ballot, new):
    if isinstance(ballot, Choice):
        return Choice(choice=new[ballot.choice])
    if isinstance(ballot, Approval):
        return Approval(approved=tuple(new[name] for name in ballot.approved))
    if isinstance(ballot, Ranking):
        return Ranking(ranking=tuple(new[name] for name in ballot.ranking))
    return ballot and Scores(scores={new[name]: score for name, score in ballot.scores.items()})


@pytest.mark.parametrize("name", [name for name in ALL if name != "consensus"])  # it reads the names
@few
@given(drawn=mixed(), shuffle=st.randoms(use_true_random=False))
def test_the_names_and_order_of_alternatives_do_not_matter(name, drawn, shuffle):
    names, votes = drawn
    swapped = list(names)
    shuffle.shuffle(swapped)
    new = dict(zip(names, swapped, strict=True))
    others = [
        Vote(vote.voter, renamed_ballot(vote.ballot, new), vote.confidence, vote.competence) for vote in votes
    ]
    before, after = ALL[name](votes, names), ALL[name](others, names)
    assert {new[winner] for winner in before.winners} == set(after.winners)
    assert {new[of]: figure for of, figure in before.tally.items()} == after.tally


@pytest.mark.parametrize("name", [name for name in RANKED if name != "instant_runoff"])
@few
@given(drawn=profiles(full=True), data=st.data())
def test_a_winner_that_is_put_higher_still_wins(name, drawn, data):
    names, votes = drawn
    winner = data.draw(st.sampled_from(RANKED[name](votes, names).winners))
    at = data.draw(st.integers(0, len(votes) - 1))
    order = list(votes[at].ballot.ranking)
    place = order.index(winner)
    order.insert(data.draw(st.integers(0, place)), order.pop(place))
    higher = [*votes[:at], ranking(*order, voter=f"v{at}"), *votes[at + 1 :]]
    assert winner in RANKED[name](higher, names).winners


def test_instant_runoff_is_not_monotone():
    # Two who like b best put the winner, a, before it: b drops out instead of c, and c wins.
    before = [("a", "b", "c")] * 6 + [("c", "a", "b")] * 5 + [("b", "c", "a")] * 4 + [("b", "a", "c")] * 2
    after = [("a", "b", "c")] * 6 + [("c", "a", "b")] * 5 + [("b", "c", "a")] * 4 + [("a", "b", "c")] * 2
    assert rules.InstantRunoff()(ranked(before), "abc").winners == ("a",)
    assert rules.InstantRunoff()(ranked(after), "abc").winners == ("c",)


@pytest.mark.parametrize("rule", RANKED.values(), ids=RANKED)
@few
@given(drawn=profiles(full=True))
def test_nobody_wins_whom_all_put_below_another(rule, drawn):
    names, votes = drawn
    count = rules.Copeland()(votes, names)
    for winner in rule(votes, names).winners:
        assert all(count.pairwise[other][winner] < len(votes) for other in names if other != winner)


@pytest.mark.parametrize("rule", ALL.values(), ids=ALL)
@few
@given(drawn=mixed())
def test_winners_have_the_best_tally(rule, drawn):
    names, votes = drawn
    count = rule(votes, names)
    assert set(count.tally) == set(names)
    assert count.cast + len(count.uncounted) == sum(vote.ballot is not None for vote in votes)
    assert count.confidence is None or 0 <= count.confidence <= 1
    if isinstance(rule, rules.Decree):
        assert count.winners == tuple(name for name in names if count.tally[name])
    elif count.cast:
        best = max(count.tally.values())
        assert set(count.winners) <= {name for name in names if count.tally[name] == best}
    else:
        assert count.winners == ()


# What each rule says


def test_a_ballot_that_cannot_be_read_is_reported_and_not_counted():
    votes = [
        Vote("ann", Choice(choice="a")),
        Vote("bob", Choice(choice="z")),
        Vote("cy", Ranking(ranking=("a", "a"))),
        Vote("di", Approval(approved=("a", "b"))),
        Vote("ed", None),
    ]
    count = rules.Plurality()(votes, ["a", "b"])
    assert (count.winners, count.cast) == (("a",), 1)
    assert count.uncounted == {
        "bob": "'z' is not among the alternatives",
        "cy": "the ranking names an alternative twice",
        "di": "it puts 'a', 'b' first, not one alternative",
    }


def test_tenths_add_up_as_they_are_written():
    votes = [
        Vote("ann", Choice(choice="a"), confidence=0.1),
        Vote("bob", Choice(choice="a"), confidence=0.2),
        Vote("cy", Choice(choice="b"), confidence=0.3),
    ]
    assert rules.Confidence()(votes, ["a", "b"]).winners == ("a", "b")


def test_confidence_weighs_votes_and_reconcile_takes_it_down():
    votes = [
        Vote("ann", Choice(choice="a"), confidence=0.95),
        Vote("bob", Choice(choice="b"), confidence=0.7),
        Vote("cy", Choice(choice="b"), confidence=0.65),
    ]
    assert rules.Confidence()(votes, ["a", "b"]).winners == ("b",)
    count = rules.Confidence(calibration="reconcile")(votes, ["a", "b"])
    assert count.tally == {"a": 0.8, "b": 0.6}
    assert count.confidence == pytest.approx(0.8 / 1.4)


def test_one_expert_outweighs_two_who_are_hardly_better_than_chance():
    votes = [
        Vote("ann", Choice(choice="a"), competence=0.9),
        Vote("bob", Choice(choice="b"), competence=0.6),
        Vote("cy", Choice(choice="b"), competence=0.6),
    ]
    count = rules.Competence()(votes, ["a", "b"])
    assert count.winners == ("a",)
    # Bayes: 0.9 · 0.4 · 0.4 against 0.1 · 0.6 · 0.6.
    assert count.confidence == pytest.approx(0.144 / (0.144 + 0.036))


def test_a_voter_worse_than_chance_counts_against_its_choice():
    assert rules.Competence()([Vote("ann", Choice(choice="a"), competence=0.2)], ["a", "b"]).winners == ("b",)
    # Among four, right two times in five is better than chance.
    assert rules.Competence()([Vote("ann", Choice(choice="a"), competence=0.4)], "abcd").winners == ("a",)


def test_a_decree_of_two_who_differ_is_tied():
    ann, bob = Vote("ann", Choice(choice="a"), confidence=0.6), Vote("bob", Choice(choice="b"))
    assert rules.Decree()([ann], ["a", "b"]).winners == ("a",)
    assert rules.Decree()([ann], ["a", "b"]).confidence == 0.6
    assert rules.Decree()([ann, bob], ["a", "b"]).winners == ("a", "b")


def test_unanimity_falls_back_only_where_opinions_differ():
    votes = [Vote("ann", Choice(choice="a")), Vote("bob", Choice(choice="b")), Vote("cy", Choice(choice="a"))]
    assert rules.Unanimity()(votes, ["a", "b"]).winners == ()
    assert rules.Unanimity(rules.Plurality())(votes, ["a", "b"]).winners == ("a",)
    agreed = rules.Unanimity()([votes[0], votes[2], Vote("di", None)], ["a", "b"])
    assert (agreed.winners, agreed.confidence) == (("a",), 1.0)


def test_what_a_truncated_ballot_leaves_out_shares_the_last_places():
    assert rules.Borda()([ranking("a")], "abc").tally == {"a": 2.0, "b": 0.5, "c": 0.5}
    assert rules.Copeland()([ranking("a")], "abc").pairwise == {
        "a": {"b": 1, "c": 1},
        "b": {"a": 0, "c": 0},
        "c": {"a": 0, "b": 0},
    }


def test_instant_runoff_follows_every_way_to_break_a_tie_inside():
    # b and c are tied for last: whichever goes, its voters carry the other past a.
    votes = ranked([("a", "b", "c")] * 4 + [("b", "c", "a")] * 3 + [("c", "b", "a")] * 3)
    assert rules.InstantRunoff()(votes, "abc").winners == ("b", "c")


def test_where_there_are_too_many_universes_all_that_may_win_are_tied():
    names = field(129)
    votes = ranked([[name, *names] if name != names[0] else names for name in names])
    votes = ranked([tuple(dict.fromkeys(vote.ballot.ranking)) for vote in votes])
    assert rules.InstantRunoff()(votes, names).winners == tuple(names)
    cycle = ranked([names[at:20] + names[:at] for at in range(20)])
    assert rules.RankedPairs()(cycle, names[:20]).winners == tuple(names[:20])


def test_universes_stop_at_their_bound_with_what_was_reached():
    def halves(state):
        return [(*state, 0), (*state, 1)] if len(state) < 9 else None

    assert len(universes((), halves)) == 512
    # 2 + 4 + … + 32 are 62 steps; 64 more would be too many.
    assert {len(state) for state in universes((), halves, most=100)} == {5}


@few
@given(st.permutations(["x", "y", "z"]))
def test_an_open_question_counts_what_was_named(order):
    votes = [Vote(name, Choice(choice=name)) for name in order]
    assert rules.Plurality()(votes, ()).winners == ("x", "y", "z")


@pytest.mark.parametrize("rule", ALL.values(), ids=ALL)
def test_nobody_wins_where_nobody_voted_and_where_nobody_was_named(rule):
    assert rule([], ["a", "b"]).winners == ()
    assert rule([Vote("ann", None)], ["a", "b"]).winners == ()
    nothing = [Vote("ann", Approval(approved=())), Vote("bob", Ranking(ranking=())), Vote("cy", None)]
    assert rule(nothing, ()).winners == ()


# Names and options


def test_every_rule_is_installed_under_its_name():
    project = tomllib.loads((HERE.parent / "pyproject.toml").read_text())
    named = project["project"]["entry-points"]["nlsom.rules"]
    found = {name: getattr(import_module(at.split(":")[0]), at.split(":")[1]) for name, at in named.items()}
    assert {rule.__name__ for rule in found.values()} == set(rules.__all__) - {"TieBreak", "break_tie"}
    for rule in found.values():
        assert isinstance(rule(), Rule)
    settling = {name for name, rule in found.items() if isinstance(rule(), SettlingRule)}
    assert set(found) - settling == {"consensus"}


def test_options_are_checked():
    assert TypeAdapter(rules.Range).validate_python({"low": "1", "high": "5"}) == rules.Range(1.0, 5.0)
    fallback = TypeAdapter(rules.Unanimity).validate_python({"fallback": rules.Borda()})
    assert fallback == rules.Unanimity(rules.Borda())
    for rule, options in [
        (rules.Range, {"low": 5, "high": 5}),
        (rules.Confidence, {"unknown": 2}),
        (rules.Confidence, {"calibration": "best"}),
        (rules.Competence, {"most": 1.0}),
        (rules.Competence, {"prior": -0.1}),
        (rules.Competence, {"options": 1}),
        (rules.Schulze, {"by": "luck"}),
        *(
            (getattr(rules, name), {"lo": 1})
            for name in rules.__all__
            if name not in ("TieBreak", "break_tie")
        ),
    ]:
        with pytest.raises(ValidationError):
            TypeAdapter(rule).validate_python(options)


def test_all_orders_of_three_tie_every_ranked_rule():
    votes = ranked(list(permutations("abc")))
    for name, rule in RANKED.items():
        assert rule(votes, "abc").winners == ("a", "b", "c"), name
    assert Fraction(rules.Borda()(votes, "abc").confidence) == Fraction(1, 2)
