from __future__ import annotations

import pytest

from nlsom.config import load, shipped
from nlsom.planning import Plan, Prompts, plan
from nlsom.society import Society
from nlsom.testing.scripted import Scripted

# The share of each phase's prompts in which all of them begin alike (the least, where there are rounds), of
# phases that ask several. Low ones have reasons: where nobody has said anything yet, a prompt is little more
# than who one is; in a ring everyone hears something else; own evidence and own thoughts stand in the tail.
SHARED = {
    "agent-forest": {"ballot": 0.79},
    "artist-critic": {"proposal": 0.50, "ballot": 0.98},
    "caption-democracy": {"proposal": 0.81, "ballot": 0.91},
    "debate-of-witnesses": {"testimony": 0.48, "second testimony": 0.83, "ballot": 0.92},
    "exchange-of-thought": {"thought": 0.83, "answer": 0.91},
    "gedi": {"answer": 0.79, "ballot": 0.79},
    "mixture-of-agents": {"proposal": 0.87, "refinement": 0.90},
    "multi-agent-debate": {"argument": 0.87, "rebuttal": 0.90, "ballot": 0.91},
    "reconcile": {"argument": 0.87, "rebuttal": 0.91, "answer": 0.92, "ballot": 0.92},
    "self-consistency": {"thought": 0.83, "ballot": 0.63},
    "sparse-debate": {"argument": 0.87, "rebuttal": 0.44, "ballot": 0.45},
    "vqa-democracy": {"answer": 0.77, "ballot": 0.83},
}
SLACK = 0.04
"""A prompt may be worded otherwise; what must not happen is that something personal moves to the front."""


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
    least: dict[str, float] = {}
    for phase in (await planned(load(name))).phases:
        if phase.asked > 1 and phase.prompts.number:
            least[phase.phase] = min(phase.shared, least.get(phase.phase, 1.0))
    known = SHARED.get(name, {})
    assert least.keys() == known.keys(), f"{name}: write down what its phases share"
    for phase, share in least.items():
        assert share >= known[phase] - SLACK, f"{name}, {phase}"


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
    def shared(texts: list[str]) -> float:
        prompts = Prompts()
        for text in texts:
            prompts.add(text)
        return prompts.shared

    assert shared([]) == shared(["a"]) == 1.0
    assert shared(["abcd", "abxy"]) == 0.5
    assert shared(["abc", "abc"]) == 1.0
    assert shared(["abz", "aba", "acc"]) == pytest.approx(1 / 3)
    assert shared(["x", "y"]) == 0.0
