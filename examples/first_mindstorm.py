"""A society of real models answers a question about a real picture.

Uses the default embedded model; download it once with `nlsom models pull qwen2.5-coder-1.5b`.
"""

import asyncio

import nlsom
from nlsom_societies.samples import sample


async def main() -> None:
    async with nlsom.load("vqa-monarchy") as society:
        verdict = await society.ask(
            "What animal is this?", images=[sample("cat")], choices=["cat", "dog", "horse", "bird"]
        )
    print(verdict.answer, verdict.tally)
    print(f"{verdict.usage.calls} calls, {verdict.usage.tokens} tokens, {verdict.usage.seconds:.1f} s")


asyncio.run(main())
