"""Every shipped society runs end to end, whatever its models say."""

from __future__ import annotations

import pytest

import nlsom
from nlsom.config import load, shipped
from nlsom.program import Rounds
from nlsom.society import Society
from nlsom.source import read
from nlsom.testing.scripted import Scripted
from nlsom_societies.samples import sample

PAPERS = {
    "solo", "self-consistency", "agent-forest", "multi-agent-debate", "sparse-debate", "exchange-of-thought",
    "mixture-of-agents", "reconcile", "gedi", "idealgpt", "chatcaptioner", "cola", "socratic", "vqa-monarchy",
    "vqa-democracy", "caption-monarchy", "caption-democracy", "artist-critic", "roleplay",
    "debate-of-witnesses",
}  # fmt: skip


def scripted(name: str, *, seeing: bool = False, sets: tuple[str, ...] = (), seconds: float = 0.0) -> Society:
    """A shipped society with scripted models instead of its own; with eyes, or with the embedded experts."""
    models = read(shipped()[name].read_text(encoding="utf-8"), name).tree["models"]
    assert isinstance(models, dict)
    given = [
        f"models.{key}={{scripted: {at}, seconds: {seconds}}}"
        for at, (key, spec) in enumerate(models.items())
        if seeing or not (isinstance(spec, dict) and "optional" in spec)
    ]
    return load(name, overrides=[*given, *sets])


async def ask(society: Society, choices: tuple[str, ...] = ("cat", "dog", "horse", "bird")) -> nlsom.Verdict:
    async with society:
        kind = society.task.kind
        task = await society.make_task(
            None if kind == "caption" else "What animal is this?",
            images=[] if kind == "general" else [str(sample("cat"))],
            choices=choices if kind == "vqa" else (),
        )
        return await society.ask(task)


def test_all_that_the_papers_ask_for_are_there() -> None:
    assert set(shipped()) >= PAPERS


@pytest.mark.parametrize("name", sorted(PAPERS))
def test_a_file_is_short_and_names_its_paper(name: str) -> None:
    text = shipped()[name].read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 60
    if name != "solo":
        assert "2305.17066" in text or "rXiv" in text


@pytest.mark.parametrize("name", sorted(PAPERS))
async def test_it_comes_to_a_verdict_with_models_that_see(name: str) -> None:
    society = scripted(name, seeing=True)
    verdict = await ask(society)
    assert verdict.answer
    assert verdict.cut_short is None
    assert not verdict.abstained or name == "socratic"
    assert verdict.usage.calls > 0


@pytest.mark.parametrize("name", ["solo", "vqa-monarchy", "caption-democracy", "cola"])
async def test_it_comes_to_a_verdict_with_the_embedded_experts(name: str) -> None:
    verdict = await ask(scripted(name))
    assert verdict.answer
    assert verdict.cut_short is None


@pytest.mark.parametrize("name", ["multi-agent-debate", "agent-forest", "gedi", "reconcile", "vqa-democracy"])
async def test_it_answers_open_questions(name: str) -> None:
    verdict = await ask(scripted(name, seeing=True), choices=())
    assert verdict.answer


async def test_artist_critic_has_129_members_and_its_collector_hears_a_tally() -> None:
    society = scripted("artist-critic")
    assert len(society.members) == 129
    verdict = await ask(society)
    assert verdict.usage.calls == 129
    assert verdict.answer


@pytest.mark.parametrize(
    "structure",
    [
        "{star: {}, among: thinker}",
        "{ring: {both: false}, among: thinker}",
        "{hierarchy: {flow: both}, among: thinker}",
    ],
)
async def test_exchange_of_thought_changes_its_medium_by_one_override(structure: str) -> None:
    society = scripted("exchange-of-thought", seeing=True, sets=(f"structure={structure}",))
    assert (await ask(society)).answer


async def test_roleplay_stops_when_the_instructor_says_that_it_is_done() -> None:
    society = scripted("roleplay")
    rounds = 0

    def say(prompt: object, form: object) -> str | None:
        nonlocal rounds
        tail = getattr(prompt, "tail", "")
        if "You lead the work" in tail:
            rounds += 1
            return "DONE." if rounds == 4 else "Go on."
        return None

    models = {id(seat.agent.model): seat.agent.model for seat in society.seats}  # type: ignore[attr-defined]
    for model in models.values():
        assert isinstance(model, Scripted)
        model._say = say  # pyright: ignore[reportPrivateUsage]
    verdict = await ask(society)
    assert rounds == 4
    assert verdict.cut_short is None
    assert verdict.answer
    assert verdict.usage.calls == 1 + 4 + 3


async def test_idealgpt_ends_its_rounds_when_the_reasoner_says_yes() -> None:
    society = scripted("idealgpt", seeing=True)
    rounds = next(step for step in society.program.steps if isinstance(step, Rounds))
    model = society.seats[0].agent.model  # type: ignore[attr-defined]
    model._say = lambda prompt, form: "yes" if form.kind == "yes_no" else None
    verdict = await ask(society)
    calls_of_a_round = len(rounds.steps)
    assert rounds.count == 4
    assert verdict.usage.calls == 1 + calls_of_a_round + 1


async def test_each_witness_is_shown_its_own_part_only() -> None:
    society = scripted("debate-of-witnesses")
    model = society.seats[0].agent.model  # type: ignore[attr-defined]
    model._keep = True
    parts = [f"part number {n}." for n in range(6)]
    async with society:
        verdict = await society.ask("Who was it?", extra={"evidence": parts})
    assert verdict.answer
    shown = [prompt.tail for prompt in model.prompts if "You alone were shown" in prompt.tail][:4]
    assert [[part for part in parts if part in tail] for tail in shown] == [
        [parts[0], parts[4]],
        [parts[1], parts[5]],
        [parts[2]],
        [parts[3]],
    ]
    editor = [prompt for prompt in model.prompts if "You are editor" in prompt.tail]
    assert not any(part in editor[-1].tail for part in parts)


async def test_pictures_are_dealt_out_among_the_witnesses_and_the_editor_sees_them_all() -> None:
    society = scripted("debate-of-witnesses", seeing=True)
    model = society.seats[0].agent.model  # type: ignore[attr-defined]
    model._keep = True
    pictures = [str(sample(name)) for name in ("cat", "coffee", "chelsea")[:2]]
    async with society:
        task = await society.make_task("Is there coffee?", images=pictures)
        verdict = await society.ask(task)
        again = await society.ask(task)
    assert (verdict.answer, verdict.tally) == (again.answer, again.tally)
    saw = [prompt.images for prompt in model.prompts if "You alone were shown your picture" in prompt.tail][
        :2
    ]
    assert saw == [task.images[:1], task.images[1:]]


async def test_debate_of_witnesses_votes_by_one_override() -> None:
    society = scripted(
        "debate-of-witnesses", sets=("verdict={rule: plurality, of: witness, tie_break: first}",)
    )
    async with society:
        verdict = await society.ask(nlsom.VqaTask(question="Who?", choices=("ann", "bob")))
    assert verdict.rule == "plurality"
    assert sum(verdict.tally.values()) == 4


async def test_rights_all_off_are_the_monarchy_and_all_on_a_democracy() -> None:
    off = scripted("vqa-monarchy", seeing=True, sets=("rights={know: false, change: false, vote: false}",))
    assert off.program.digest == scripted("vqa-monarchy", seeing=True).program.digest
    on = scripted("vqa-monarchy", seeing=True, sets=("rights={know: true, change: true, vote: true}",))
    experts = {at for at, member in enumerate(on.members) if member.role == "expert"}
    step = on.program.steps[0]
    assert not isinstance(step, Rounds)
    assert all(experts - {at} <= {*step.structure.hears(at)} for at in experts)
    assert [inner.name for inner in on.program.steps[1].steps] == ["question", "answer", "answer-revised"]  # type: ignore[union-attr]
    assert on.program.decision.name == "plurality"
    verdict = await ask(on)
    assert verdict.answer
    assert sum(verdict.tally.values()) == 4
