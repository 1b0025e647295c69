"""The contract of models, as tests to inherit.

    class TestMyModel(ModelContract):
        context = 4096

        @pytest.fixture
        async def model(self):
            async with MyModel() as model:
                yield model

Needs pytest and pytest-asyncio.
"""

from __future__ import annotations

import asyncio

import pytest

from nlsom.errors import PromptTooLong
from nlsom.form import ChoiceForm, Form, TextForm, YesNoForm
from nlsom.media import MediaStore
from nlsom.model import Completion, Model, Prompt, Settings

ANIMALS = ChoiceForm(options=("cat", "dog", "horse"))


def prompt_of(text: str, tail: str = "") -> Prompt:
    """A prompt without pictures."""
    return Prompt(head=text, tail=tail, images=(), media=MediaStore())


class ModelContract:
    """The contract. Give subclasses a fixture `model` that yields an open model.

    Attributes:
        context: Context length of the model in tokens; it has to refuse a prompt of twice as many words.
        constrains: Whether its engine can hold replies to a form.
    """

    context: int = 4096
    constrains: bool = True

    @pytest.fixture
    async def model(self) -> Model:
        """The model under test."""
        raise NotImplementedError("give a fixture `model`")

    async def ask(self, model: Model, text: str = "Say one word.", form: Form | None = None) -> Completion:
        """Completes a prompt with a short reply."""
        form = form or TextForm(max_tokens=4)
        return await model.complete(prompt_of(text), form=form, settings=Settings(), seed=0)

    async def test_the_identity_is_a_name_that_stays(self, model: Model) -> None:
        before = model.identity
        await self.ask(model)
        assert before
        assert "://" not in before
        assert model.identity == before

    @pytest.mark.parametrize("form", [ANIMALS, YesNoForm()])
    async def test_a_choice_is_answered_in_its_form(self, model: Model, form: Form) -> None:
        completion = await self.ask(model, f"Is it a cat?\n{form.instruct()}", form)
        constraint = form.constraint()
        assert constraint is not None
        assert constraint.choice is not None
        if self.constrains:
            assert completion.text in constraint.choice
            assert form.read(completion.text).answer is not None

    async def test_a_logprob_is_none_or_not_positive(self, model: Model) -> None:
        completion = await self.ask(model, f"Which animal purrs?\n{ANIMALS.instruct()}", ANIMALS)
        assert completion.logprob is None or completion.logprob <= 0

    async def test_free_text_has_no_logprob(self, model: Model) -> None:
        assert (await self.ask(model)).logprob is None

    async def test_usage_counts_one_call_its_tokens_and_its_time(self, model: Model) -> None:
        usage = (await self.ask(model, "Count these few words, please.")).usage
        assert usage.calls == 1
        assert usage.prompt_tokens > 0
        assert usage.completion_tokens > 0
        assert usage.seconds > 0
        assert usage.cached_tokens is None or 0 <= usage.cached_tokens <= usage.prompt_tokens

    async def test_all_of_many_at_once_are_answered(self, model: Model) -> None:
        completions = await asyncio.gather(*(self.ask(model, f"Is {n} even?", YesNoForm()) for n in range(8)))
        assert [completion.usage.calls for completion in completions] == [1] * 8

    async def test_a_cancelled_call_leaves_the_model_usable(self, model: Model) -> None:
        calls = [asyncio.ensure_future(self.ask(model)) for _ in range(4)]
        await asyncio.sleep(0)
        for call in calls[:3]:
            call.cancel()
        ended = await asyncio.gather(*calls, return_exceptions=True)
        assert all(isinstance(end, asyncio.CancelledError) for end in ended[:3])
        assert isinstance(ended[3], Completion)
        assert (await self.ask(model)).usage.calls == 1

    async def test_a_prompt_longer_than_the_context_is_refused(self, model: Model) -> None:
        with pytest.raises(PromptTooLong) as caught:
            await self.ask(model, "word " * (2 * self.context))
        assert caught.value.tokens + caught.value.reply > caught.value.limit
        assert (await self.ask(model)).usage.calls == 1
