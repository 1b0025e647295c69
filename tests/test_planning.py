from __future__ import annotations

import pytest

from nlsom.config import load, shipped
from nlsom.planning import Plan, plan, shared
from nlsom.society import Society
from nlsom.testing.scripted import Scripted

BOUNDS = {
    # In a ring everyone hears something else, and shares the task and what the experts said only.
    "sparse-debate": 0.40,
    # Each witness has evidence of its own, and each sample its own thoughts, in the tail.
    "debate-of-witnesses": 0.40,
    "self-consistency": 0.55,
    # Nobody has said anything yet: the prompt is little more than who one is.
    "artist-critic": 0.40,
}
BOUND = 0.70


async def planned(society: Society) -> Plan:
    kind = society.task.kind
    task = await society.make_task(
        None if kind == "caption" else "What animal is this, and what is it doing?",
        choices=("cat", "dog", "horse", "bird") if kind == "vqa" else (),
    )
    return await plan(society, task)


@pytest.mark.parametrize("name", sorted(shipped()))
async def test_members_asked_together_share_most_of_their_prompt(name: str) -> None:
    """Law 3: a phase whose members stop to share a prefix costs a server all that it caches."""
    found = await planned(load(name))
    for phase in found.phases:
        if phase.asked > 1 and phase.prompts:
            assert phase.shared >= BOUNDS.get(name, BOUND), f"{name}, {phase.phase}"


async def test_critics_share_nearly_all_of_129_members_prompts() -> None:
    found = await planned(load("artist-critic"))
    ballots = next(phase for phase in found.phases if phase.phase == "ballot")
    assert ballots.shared > 0.97
    assert found.total.calls == 129


async def test_what_was_planned_is_at_least_what_is_spent() -> None:
    society = load("multi-agent-debate", overrides=["models.llm={scripted: 0}"])
    found = await planned(society)
    async with society:
        task = await society.make_task("What animal is this?", choices=("cat", "dog", "horse", "bird"))
        verdict = await society.ask(task)
    assert found.total.calls == verdict.usage.calls == 3 + 2 * 3 + 3
    assert found.total.read + found.total.written >= verdict.usage.tokens


async def test_planning_asks_no_model_and_opens_none() -> None:
    society = load("gedi", overrides=["models.llm={scripted: 0}"])
    await planned(society)
    models = [getattr(seat.agent, "model", None) for seat in society.seats]
    assert [model.calls for model in models if isinstance(model, Scripted)] == [0] * 7


async def test_conditions_that_end_rounds_are_left_out_of_account() -> None:
    found = await planned(load("idealgpt"))
    assert sum(phase.phase == "enough" for phase in found.phases) == 4


async def test_limits_that_would_be_broken_are_named() -> None:
    assert (await planned(load("gedi"))).over == ()
    assert (await planned(load("gedi", overrides=["limits.calls=3"]))).over == ("calls",)
    assert (await planned(load("gedi", overrides=["limits.tokens=30"]))).over == ("tokens",)


async def test_a_nested_society_is_planned_with_it() -> None:
    society = load(
        {
            "name": "outer",
            "members": {"panel": {"agent": "society", "society": "gedi", "models": {}}},
            "mindstorm": [{"ask": "panel", "prompt": "give_answer", "as": "ballot", "form": "answer"}],
        }
    )
    assert (await planned(society)).total.calls == 14


def test_the_shared_share_counts_letters() -> None:
    assert shared([]) == shared(["a"]) == 1.0
    assert shared(["abcd", "abxy"]) == 0.5
    assert shared(["abc", "abc"]) == 1.0
    assert shared(["x", "y"]) == 0.0
