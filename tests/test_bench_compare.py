"""Standings, comparisons, rivals and structures, with members that err as planned."""

from dataclasses import replace

import numpy as np
import pytest
from bench import named, number, questions, right_but, trio

from nlsom import Member, Said, Seat, Text
from nlsom.bench import equal_cost
from nlsom.bench.baseline import baseline, markdown, oracle
from nlsom.bench.compare import adjusted, compare, compare_all
from nlsom.bench.folder import Entrant, RunFolder, entrant
from nlsom.bench.run import Contender, Runner
from nlsom.bench.standing import gather, standings
from nlsom.bench.structures import Cast, Structures, sampled
from nlsom.errors import UsageError
from nlsom.message import Usage
from nlsom.structure import Democracy
from nlsom.task import CaptionTask
from nlsom.testing.agents import Saying, panel


async def run(tmp_path, *societies, count=40, **options):
    folder = RunFolder(tmp_path / options.pop("name", "run"))
    samples = questions(tmp_path / "set", count)
    await Runner(samples, folder, **options).run([Contender.of(society) for society in societies])
    return standings(folder)


async def test_a_comparison_is_paired_sample_by_sample(tmp_path):
    one, other = await run(tmp_path, trio("three"), named(panel([right_but(4)]), "one"))
    found = compare(one, other)
    errors = {n for n in range(40) if n % 4 == 0}
    both = {n for n in range(40) if sum(n % every == 0 for every in (4, 5, 7)) >= 2}
    assert found.samples == 40
    assert found.difference.estimate == pytest.approx((len(errors) - len(both)) / 40)
    assert found.test.only_one == len(errors - both)
    assert found.test.only_other == len(both - errors)
    assert found.tokens == pytest.approx(200)
    assert found.per_thousand == pytest.approx(found.difference.estimate * 5)
    assert found.difference.low <= found.difference.estimate <= found.difference.high


async def test_a_gain_at_no_more_cost_has_no_price(tmp_path):
    one, other = await run(tmp_path, named(panel([right_but(7)]), "a"), named(panel([right_but(2)]), "b"))
    assert compare(one, other).per_thousand is None


async def test_p_values_of_many_comparisons_are_adjusted_together(tmp_path):
    societies = [named(panel([right_but(every)]), f"but {every}") for every in (2, 3, 5)]
    found = compare_all(await run(tmp_path, *societies))
    assert [(one.one, one.other) for one in found] == [
        ("but 3", "but 2"),
        ("but 5", "but 2"),
        ("but 5", "but 3"),
    ]
    assert all(one.adjusted >= one.p for one in found)
    assert [one.adjusted for one in adjusted(found)] == [one.adjusted for one in found]
    against = compare_all(await run(tmp_path, *societies), against="but 3")
    assert [one.other for one in against] == ["but 3", "but 3"]


async def test_runs_over_different_samples_are_refused(tmp_path):
    (one,) = await run(tmp_path, trio(), name="a", limit=10)
    (other,) = await run(tmp_path, trio(), name="b", limit=12)
    with pytest.raises(UsageError, match="trio has 10 samples and trio 12"):
        compare(one, other)


async def test_runs_over_other_pictures_are_refused_although_identifiers_agree(tmp_path):
    (one,) = await run(tmp_path, trio(), name="a", limit=10)
    folder = RunFolder(tmp_path / "b")
    await Runner(questions(tmp_path / "other", 10, pictures=2), folder).run([Contender.of(trio())])
    (other,) = standings(folder)
    with pytest.raises(UsageError, match="not the same"):
        compare(one, other)


async def test_a_comparison_with_nothing_is_refused(tmp_path):
    found = await run(tmp_path, trio())
    with pytest.raises(UsageError, match="two societies"):
        compare_all(found)
    with pytest.raises(UsageError, match="there are trio, trio"):
        compare_all([*found, *found], against="nobody")


async def test_seeds_are_averaged_a_sample(tmp_path):
    def say(turn):
        return "yes" if turn.seed % 2 else "no"

    (one,) = await run(tmp_path, panel([Saying(say, identity="by seed")]), seeds=4, count=12)
    assert one.scores().shape == (12,)
    assert np.isin(one.scores() * 4, range(5)).all()
    assert one.interval().estimate == pytest.approx(next(iter(one.figures.values())).lenient)


async def test_societies_of_one_name_in_two_runs_bear_the_name_of_their_run(tmp_path):
    await run(tmp_path, trio(), name="a")
    await run(tmp_path, trio(), name="b")
    assert [one.name for one in gather([tmp_path / "a", tmp_path / "b"])] == ["trio (a)", "trio (b)"]


async def test_what_is_no_run_is_refused(tmp_path):
    with pytest.raises(UsageError, match="holds no run"):
        standings(RunFolder(tmp_path))


class Mind:
    """A member that spends tokens and errs as planned; with a temperature, it errs on other questions."""

    def __init__(self, *, model, temperature=0.0):
        self.model, self.temperature = model, temperature
        self.identity = f"mind {model} {temperature}"

    async def speak(self, turn):
        usage = Usage(calls=1, prompt_tokens=90, completion_tokens=10)
        if turn.form.kind == "text":
            return Said(parts=(Text(text="I see nothing new."),), usage=usage)
        at = number(turn) + (turn.seed % 3 if self.temperature else 0)
        right = "no" if number(turn) % 3 == 0 else "yes"
        wrong = "yes" if right == "no" else "no"
        return Said.words(wrong if at % self.model == 0 else right, usage=usage)


def cast(*models):
    return Cast(tuple(Seat(Member(f"mind{n}", "expert"), Mind(model=n)) for n in models))


async def test_a_society_meets_its_rivals_of_equal_cost(tmp_path):
    society = named(panel([Mind(model=4), Mind(model=5), Mind(model=7)]), "society")
    folder = RunFolder(tmp_path / "run")
    runner = Runner(questions(tmp_path / "set", 40), folder)
    found = await baseline(runner, Contender.of(society))
    assert found.society.tokens == pytest.approx(300)
    assert found.single.tokens == pytest.approx(100)
    assert found.consistency.name == "self-consistency@3"
    assert found.consistency.tokens == pytest.approx(300)
    assert [one.name for one in found.alone] == ["alone:m2", "alone:m1", "alone:m0"]
    assert found.oracle.estimate == pytest.approx(1 - sum(n % 140 == 0 for n in range(40)) / 40)
    assert found.oracle.estimate == oracle(found.alone).estimate >= found.alone[0].interval().estimate
    assert [one.other for one in found.comparisons] == ["single", "self-consistency@3", "alone:m2"]
    assert "oracle" in markdown(found)


async def test_a_society_without_a_model_has_no_rivals(tmp_path):
    runner = Runner(questions(tmp_path / "set", 4), RunFolder(tmp_path / "run"))
    with pytest.raises(UsageError, match="no member with a model"):
        await baseline(runner, Contender.of(trio()))


async def test_every_structure_stands_beside_a_vote_that_spends_no_more(tmp_path):
    runner = Runner(questions(tmp_path / "set", 12), RunFolder(tmp_path / "run"))
    table = await equal_cost.run_all(runner, Structures(cast(4, 5, 7)))
    names = [row.standing.name for row in table]
    assert names[:8] == [
        "single",
        "monarchy",
        "monarchy+know",
        "monarchy+know+change",
        "monarchy+know+change+vote",
        "debate",
        "sparse-debate",
        "random-graph",
    ]
    assert names[8].startswith("self-consistency@")
    for row in table[:8]:
        assert row.rival.tokens <= row.standing.tokens + 1e-9
        assert row.rival.tokens > row.standing.tokens - 100
    assert "| monarchy+know |" in equal_cost.markdown(table)


async def test_some_structures_stand_beside_their_votes_alone(tmp_path):
    runner = Runner(questions(tmp_path / "set", 4), RunFolder(tmp_path / "run"))
    table = await equal_cost.run_all(runner, Structures(cast(4, 5, 7), only=["debate"]), most=3)
    assert [row.standing.name for row in table] == ["debate", "self-consistency@3"]
    with pytest.raises(UsageError, match="no structure is called 'debates'; did you mean 'debate'"):
        await equal_cost.run_all(runner, Structures(cast(4, 5, 7), only=["debates"]))


async def test_smaller_votes_take_their_replies_from_the_trace(tmp_path):
    samples, folder = questions(tmp_path / "set", 8), RunFolder(tmp_path / "run")
    made = Structures(cast(4, 5))
    await Runner(samples, folder).run([Contender.of(made.vote(7)), Contender.of(made.vote(5))])
    seven, five = standings(folder)
    assert sum(line.asked for line in seven.lines) == 8 * 7
    assert sum(line.asked for line in five.lines) == 0
    assert five.calls == 5


def test_rights_add_phases_and_hearing():
    made = Structures(cast(4, 5, 7))
    plain, full = made.monarchy(), made.monarchy(know=True, change=True, vote=True)
    labels = [step.name for step in plain.program.flat]
    assert labels == ["caption", "question", "reply", "summary", "ballot"]
    assert [step.name for step in full.program.flat] == [*labels[:3], "revision", *labels[3:]]
    expert = plain.program.names.index("mind4")
    assert len(plain.program.flat[2].structure.hears(expert)) == 2  # the heads only
    assert len(full.program.flat[2].structure.hears(expert)) == 5
    assert plain.program.decision.name == "decree"
    assert len(full.program.decision.of) == 3


def test_free_text_of_any_length_is_no_answer_to_the_task():
    assert entrant(Structures(cast(4, 5)).monarchy(), Entrant(name="one")).answering == ("ballot",)
    assert entrant(Structures(cast(4, 5)).debate("debate", Democracy()), Entrant(name="two")).answering == (
        "answer",
    )


def test_organizer_and_leader_of_a_society_become_the_head():
    head = Mind(model=2)
    seats = [
        Seat(Member("organizer", "organizer"), head),
        Seat(Member("leader", "leader"), head),
        Seat(Member("eye", "expert"), Saying("yes")),
    ]
    society = replace(panel([Saying("yes")]), seats=seats)
    found = Cast.of(society)
    assert found.head is head
    assert [seat.member.name for seat in found.minds] == ["mind"]
    assert [seat.member.name for seat in found.senses] == ["eye"]


def test_captions_are_voted_on_by_consensus():
    made = Structures(cast(4, 5), task=CaptionTask)
    assert made.vote(2).program.decision.name == "consensus"


def test_an_agent_without_temperature_cannot_be_sampled():
    with pytest.raises(UsageError, match="temperature"):
        sampled(Saying("yes"))
