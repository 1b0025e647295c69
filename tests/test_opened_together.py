import pytest
from serving import one_phase, trio

from nlsom.config import load
from nlsom.errors import NlsomError
from nlsom.model.contract import Completion
from nlsom.phase import Limits
from nlsom.society import narrowed, opened_together
from nlsom.testing.agents import Saying
from nlsom.trace import MemoryTrace
from nlsom_agents.chat import Chat


class _Model:
    identity = "counted/1"

    def __init__(self):
        self.opened = self.closed = 0

    async def __aenter__(self):
        self.opened += 1
        return self

    async def __aexit__(self, *_):
        self.closed += 1

    async def complete(self, prompt, *, form, settings, seed):
        assert self.opened
        assert not self.closed
        return Completion("a cat")


async def test_a_model_that_societies_share_is_opened_and_closed_once():
    model = _Model()
    made = [one_phase([Chat(model=model)], name=name) for name in ("one", "two")]
    async with opened_together(made):
        answers = [(await society.ask("What?")).answer for society in made]
    assert answers[0] == answers[1] is not None
    assert (model.opened, model.closed) == (1, 1)


async def test_when_one_cannot_be_opened_the_others_are_closed_again():
    class Broken(_Model):
        async def __aenter__(self):
            raise NlsomError("cannot be opened")

    model = _Model()
    first = one_phase([Chat(model=model)], name="one")
    with pytest.raises(NlsomError, match="cannot be opened"):
        async with opened_together([first, one_phase([Chat(model=Broken())], name="two")]):
            pass
    assert (model.opened, model.closed) == (1, 1)
    async with first:
        pass


async def test_what_is_open_already_is_told_before_anything_is_opened():
    model, shared = _Model(), _Model()
    first = one_phase([Chat(model=model)], name="one")
    async with one_phase([Chat(model=shared)], name="two") as open_already:
        with pytest.raises(NlsomError, match="open already"):
            async with opened_together([first, open_already]):
                pass
        assert (model.opened, shared.opened, shared.closed) == (0, 1, 0)
    async with first:
        pass


def test_societies_read_together_share_the_models_that_are_the_same():
    def described(name, url):
        return {
            "name": name,
            "models": {"llm": {"url": url, "model": "m"}},
            "members": {"a": {"agent": "chat", "model": "llm"}},
            "mindstorm": [{"ask": "a", "prompt": {"text": "Say."}, "as": "ballot"}],
        }

    shared = {}
    here, there = "http://127.0.0.1:1/v1", "http://127.0.0.1:2/v1"
    made = [load(described(f"s{at}", url), shared=shared) for at, url in enumerate((here, here, there))]
    models = [society.seats[0].agent.model for society in made]
    assert models[0] is models[1] is not models[2]
    assert len(shared) == 2


def test_limits_are_only_ever_narrowed():
    limits = Limits(seconds=10, tokens=100, quorum=2)
    assert limits.narrowed(seconds=20, calls=5, tokens=50) == Limits(seconds=10, calls=5, tokens=50, quorum=2)
    assert limits.narrowed() == limits


async def test_a_narrowed_society_is_the_same_otherwise():
    society = trio(limits={"seconds": 60})
    assert narrowed(society, seconds=90) is society
    narrow = narrowed(society, seconds=5, tokens=100)
    assert (narrow.limits.seconds, narrow.limits.tokens) == (5, 100)
    assert narrow.members == society.members
    async with narrow:
        assert (await narrow.ask("Which?", choices=["cat", "dog"])).answer == "cat"


async def test_a_mindstorm_with_narrower_limits_is_another_one():
    slow = Saying("yes", seconds=30)
    society = one_phase([slow, Saying("yes", seconds=0)])
    society.trace = MemoryTrace()
    async with society:
        task = await society.make_task("Well?")
        narrow = society.limits.narrowed(seconds=0.05)
        assert society.id_of(task) == society.id_of(task, limits=society.limits)
        assert society.id_of(task, limits=narrow) != society.id_of(task)
        async with society.mindstorm(task, limits=narrow) as storm:
            verdict = await storm.verdict()
    assert (verdict.answer, verdict.cut_short) == ("yes", "seconds")
    assert verdict.mindstorm == society.id_of(task, limits=narrow)
