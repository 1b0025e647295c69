"""A society writes the caption of a picture.

Uses the default embedded model; download it once with `nlsom models pull qwen2.5-coder-1.5b`.
"""

import asyncio

import nlsom
from nlsom_societies.samples import sample


async def main() -> None:
    async with nlsom.load("caption-monarchy") as society:
        task = await society.make_task(images=[sample("coffee")])
        verdict = await society.ask(task)
    print(verdict.answer)


asyncio.run(main())
