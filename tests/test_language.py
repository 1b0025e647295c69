"""The language of society files: structures per phase, votes over proposals, tallies, ends of rounds."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nlsom.config import load
from nlsom.errors import ConfigError
from nlsom.form import ApprovalForm, ChoiceForm, Form, RankingForm, ScoresForm
from nlsom.message import Approval, Ranking, Scores
from nlsom.model.contract import Prompt
from nlsom.program import Step
from nlsom.society import Society
from nlsom.spec import schema
from nlsom.testing.scripted import Scripted

Say = Callable[[Prompt, Form], str | None]


def society(phases: list[dict[str, Any]], *, say: Say | None = None, **more: Any) -> Society:
    """Three members, one scripted model; prompts are kept."""
    made = load(
        {
            "name": "test",
            "task": "general",
            "models": {"llm": {"scripted": "0", "keep": "true"}},
            "members": {
                "a": {"agent": "chat", "model": "llm", "role": "one"},
                "b": {"agent": "chat", "model": "llm", "role": "one"},
                "c": {"agent": "chat", "model": "llm", "role": "two"},
            },
            "mindstorm": [
                {"prompt": {"text": f"Phase {at}."}, **phase} if "ask" in phase else phase
                for at, phase in enumerate(phases)
            ],
            **more,
        }
    )
    model_of(made)._say = say  # pyright: ignore[reportPrivateUsage]
    return made


def model_of(made: Society) -> Scripted:
    model = made.seats[0].agent.model  # type: ignore[attr-defined]
    assert isinstance(model, Scripted)
    return model


def who(prompt: Prompt) -> str:
    return prompt.tail.split("You are ", 1)[1].split(",", 1)[0]


async def heads(made: Society, phase: str) -> dict[str, str]:
    """The heads of the prompts of a phase, by member."""
    async with made:
        await made.ask("Do it.")
    return {who(prompt): prompt.head for prompt in model_of(made).prompts if phase in prompt.tail}


def first_word(prompt: Prompt, form: Form) -> str | None:
    return f"word of {who(prompt)}" if form.kind == "text" else None


async def test_a_phase_may_have_another_structure() -> None:
    made = society(
        [{"ask": "everyone", "as": "x"}, {"ask": "everyone", "as": "y", "structure": "chain"}], say=first_word
    )
    found = await heads(made, "Phase 1.")
    assert ["word of a" in found[m] for m in "abc"] == [False, True, False]
    assert ["word of b" in found[m] for m in "abc"] == [False, False, True]


async def test_a_structure_may_hold_among_some_and_all_hear_the_others() -> None:
    made = society(
        [{"ask": "everyone", "as": "x"}, {"ask": "everyone", "as": "y"}],
        say=first_word,
        structure={"chain": None, "among": "one"},
    )
    found = await heads(made, "Phase 1.")
    assert {m: [other for other in "abc" if f"word of {other}" in found[m]] for m in "abc"} == {
        "a": ["c"],
        "b": ["a", "b", "c"],  # with its own words, since c hears the very same
        "c": ["a", "b", "c"],
    }


@pytest.mark.parametrize(
    ("structure", "told"),
    [
        ("rign", "did you mean 'ring'"),
        ({"ring": {"neighbours": "0"}}, "neighbours"),
        ({"ring": None, "chain": None}, "one structure"),
        ({"ring": None, "among": "nobody"}, "no member or role is called 'nobody'"),
    ],
)
def test_a_faulty_structure_of_a_phase_is_told(structure: object, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        society([{"ask": "a", "structure": structure}])


def vote(form: str, **more: Any) -> list[dict[str, Any]]:
    return [
        {"ask": "one", "as": "idea"},
        {"ask": "everyone", "as": "ballot", "form": form, "over": "idea", **more},
    ]


def saying(ballot: str) -> Say:
    return lambda prompt, form: first_word(prompt, form) if form.kind == "text" else ballot


@pytest.mark.parametrize(
    ("form", "ballot", "rule"),
    [
        ("choice", "b", "plurality"),
        ("approval", "b", "approval"),
        ("ranking", "b > a", "schulze"),
        ("scores", "a=1, b=9", "range"),
    ],
)
async def test_votes_name_who_proposed_and_the_proposal_wins(form: str, ballot: str, rule: str) -> None:
    made = society(vote(form), say=saying(ballot), verdict={"rule": rule})
    async with made:
        verdict = await made.ask("Do it.")
    assert verdict.answer == "word of b"
    assert set(verdict.tally) == {"a", "b"}


async def test_where_nobody_proposed_there_is_no_vote_and_the_verdict_says_so() -> None:
    made = load(
        {
            "name": "silent",
            "task": "general",
            "members": {"a": {"agent": "script", "says": {"other": "x"}}},
            "mindstorm": [
                {"ask": "a", "prompt": {"text": "p"}, "as": "idea", "quorum": "0"},
                {"ask": "a", "prompt": {"text": "p"}, "as": "ballot", "form": "choice", "over": "idea"},
            ],
        }
    )
    async with made:
        verdict = await made.ask("Do it.")
    assert verdict.answer is None
    assert "nobody said a 'idea'" in (verdict.cut_short or "")


async def test_a_proposer_who_did_not_get_to_vote_counts_for_its_own() -> None:
    made = society(vote("choice"), say=first_word, limits={"calls": "2"}, verdict={"tie_break": "first"})
    async with made:
        verdict = await made.ask("Do it.")
    assert verdict.cut_short == "calls"
    assert verdict.tally == {"a": 1.0, "b": 1.0}
    assert verdict.answer == "word of a"


def test_over_needs_a_form_that_chooses_and_a_label_that_is_said() -> None:
    with pytest.raises(ConfigError, match="`over` needs a form that chooses"):
        society([{"ask": "a", "as": "x", "over": "x"}])
    with pytest.raises(ConfigError, match="no phase is labelled 'idae'"):
        society([{"ask": "a", "as": "idea"}, {"ask": "a", "as": "b", "form": "choice", "over": "idae"}])


async def test_a_tally_says_how_often_each_was_chosen_and_keeps_words() -> None:
    phases = [*vote("choice"), {"ask": "c", "as": "end", "hears": {"content": "tally"}}]
    made = society(phases, say=saying("b"), verdict={"rule": "decree", "of": "c", "over": "end"})
    found = await heads(made, "Phase 2.")
    assert "All who gave a ballot, counted:\n> b (3)" in found["c"]
    assert "> word of a" in found["c"]
    assert "(ballot, round" not in found["c"]


async def test_rounds_end_when_somebody_says_so() -> None:
    said: list[str] = []

    def say(prompt: Prompt, form: Form) -> str | None:
        del form
        said.append(who(prompt))
        return "I think so.\n**Done!**" if len(said) == 3 else "not done"

    rounds = {
        "repeat": "9",
        "until": {"says": "done", "of": "a"},
        "phases": [{"ask": "a", "prompt": {"text": "?"}}],
    }
    made = society([rounds], say=say)
    async with made:
        await made.ask("Do it.")
    assert len(said) == 3


@pytest.mark.parametrize(
    ("until", "told"),
    [
        ({"says": "done"}, "need `of`"),
        ({"says": "done", "of": "nobody"}, "no member or role is called 'nobody'"),
        ({}, "give agreement, unchanged, confident or says"),
    ],
)
def test_a_faulty_end_of_rounds_is_told(until: dict[str, str], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        society([{"repeat": "2", "until": until, "phases": [{"ask": "a", "prompt": {"text": "?"}}]}])


def steps(made: Society) -> list[str]:
    return [
        inner.name
        for step in made.program.steps
        for inner in ([step] if isinstance(step, Step) else step.steps)
    ]


MONARCHY = {"structure": "monarchy"}


@pytest.mark.parametrize(
    ("right", "names", "hear_each_other", "rule"),
    [
        ("know", ["caption", "question", "answer", "question", "answer"], True, "decree"),
        ("change", ["answer-revised"], False, "decree"),
        ("vote", ["ballot-expert"], False, "plurality"),
    ],
)
def test_each_right_is_a_switch_of_its_own(
    right: str, names: list[str], hear_each_other: bool, rule: str
) -> None:
    made = load("vqa-monarchy", overrides=[f"rights.{right}=true"])
    plain = load("vqa-monarchy")
    experts = [at for at, member in enumerate(made.members) if member.role == "expert"]
    structure = made.structure.build(made.members)
    assert (experts[1] in structure.hears(experts[0])) is hear_each_other
    assert made.program.decision.name == rule
    if right == "know":
        assert steps(made) == steps(plain)
    else:
        assert [name for name in steps(made) if name not in steps(plain)] == names


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"rights": {"of": "three", "know": "true"}}, "no member or role is called 'three'"),
        ({"rights": {"of": "one", "change": "true"}}, "needs a phase of a `repeat` that asks 'one'"),
        ({"rights": {"of": "one", "vote": "true"}}, "needs somebody who decided without it"),
        ({"rights": {"of": "one", "vot": "true"}}, "did you mean 'vote'"),
    ],
)
def test_rights_that_cannot_be_had_are_told(more: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        society([{"ask": "everyone"}], **more)


NAMED = ("ann", "bob.1", "bob.12")


def test_options_are_called_by_name_where_they_are_proposals() -> None:
    choice = ChoiceForm(options=NAMED, named=True)
    assert choice.labels == NAMED
    assert "A." not in choice.instruct()
    assert choice.read("bob.1").answer == "bob.1"
    assert choice.read("I vote for bob.12.").answer == "bob.12"
    many = ChoiceForm(options=tuple(f"artist.{n}" for n in range(78)), named=True)
    assert len(many.instruct()) < 150
    assert RankingForm(options=NAMED, named=True).read("bob.12 > ann").ballot == Ranking(
        ranking=("bob.12", "ann")
    )
    scores = ScoresForm(options=NAMED, named=True).read("ann=1, bob.1=2, bob.12: 9")
    assert scores.ballot == Scores(scores={"ann": 1, "bob.1": 2, "bob.12": 9})


def test_an_approval_names_all_that_are_accepted_and_is_never_guessed() -> None:
    form = ApprovalForm(options=("cat", "dog", "horse"))
    assert form.read("C, A").ballot == Approval(approved=("cat", "horse"))
    assert form.read("B").answer == "dog"
    assert form.read("none").ballot == Approval(approved=())
    assert form.read("all of them are fine").ballot is None
    assert form.read("").ballot is None


def test_the_schema_knows_the_whole_language() -> None:
    told = str(schema())
    for word in ("rights", "structure", "over", "tally", "approval", "says", "reputation"):
        assert word in told


def test_a_ranking_of_few_options_is_held_to_orders_without_repeats() -> None:
    constraint = RankingForm(options=("x", "y", "z")).constraint()
    assert constraint is not None
    assert constraint.regex is not None
    assert re.fullmatch(constraint.regex, "B > A > C")
    assert not re.fullmatch(constraint.regex, "B > B > C")
    many = RankingForm(options=tuple("uvwxyz")).constraint()
    assert many is not None
    assert many.regex is not None
    assert re.fullmatch(many.regex, "F > E > D > C > B > A")


names = st.text(st.characters(categories=["L", "N"], include_characters=" .-+()[]$"), min_size=1, max_size=8)
proposers = st.lists(names.map(lambda name: f"m{name.strip()}"), min_size=2, max_size=5, unique=True).map(
    tuple
)


@given(proposers, st.randoms(use_true_random=False))
def test_a_ballot_that_keeps_to_its_form_is_read_as_it_was_meant(
    options: tuple[str, ...], chance: Random
) -> None:
    one = chance.choice(options)
    assert ChoiceForm(options=options, named=True).read(one).answer == one
    order = tuple(chance.sample(options, len(options)))
    ranking = RankingForm(options=options, named=True)
    assert ranking.read(" > ".join(order)).ballot == Ranking(ranking=order)
    constraint = ranking.constraint()
    assert constraint is not None
    assert re.fullmatch(constraint.regex or "", " > ".join(order))
    given_scores = {option: float(chance.randint(0, 10)) for option in options}
    told = ", ".join(f"{option}={score:.0f}" for option, score in given_scores.items())
    scores = ScoresForm(options=options, named=True)
    assert scores.read(told).ballot == Scores(scores=given_scores)
    constraint = scores.constraint()
    assert constraint is not None
    assert re.fullmatch(constraint.regex or "", told)


@given(proposers, st.text(max_size=40))
def test_no_text_is_read_as_a_vote_for_somebody_it_does_not_name(options: tuple[str, ...], text: str) -> None:
    for form in (ChoiceForm(options=options, named=True), RankingForm(options=options, named=True)):
        reading = form.read(text)
        assert reading.answer is None or reading.answer in text


@pytest.mark.parametrize("until", ["certain", {"certain": True}])
def test_a_certain_stop_asked_for_among_rounds_is_told_its_place(until: Any) -> None:
    phases = [{"repeat": 2, "until": until, "phases": vote("choice")}]
    with pytest.raises(ConfigError, match="a phase with `wait: certain`"):
        society(phases)
    with pytest.raises(ConfigError, match="a phase ends by `wait: all`"):
        society([{**vote("choice")[-1], "until": "certain"}])
