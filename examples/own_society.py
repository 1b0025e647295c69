"""Your own society: from a YAML file, with one field overridden, and from a mapping."""

import asyncio
from pathlib import Path

import nlsom
from nlsom_societies.samples import sample

FILE = Path(__file__).with_name("own_society.yaml")


async def main() -> None:
    async with nlsom.load(FILE, overrides=["verdict.rule=plurality"]) as society:
        verdict = await society.ask("Is there a dog?", images=[sample("cat")], choices=["yes", "no"])
        print(verdict.answer, "by", verdict.rule)
        for one in verdict.abstained:
            print(f"  {one.member} abstained: {one.cause}")

    pair = {
        "name": "pair",
        "members": {"detect": {"agent": "detect"}, "tag": {"agent": "tag"}},
        "mindstorm": [{"ask": "everyone", "prompt": "vote", "as": "ballot", "form": "answer"}],
    }
    async with nlsom.load(pair) as society:
        verdict = await society.ask(
            "What animal is this?", images=[sample("cat")], choices=["cat", "dog", "horse", "bird"]
        )
        print(verdict.answer, verdict.tally)


asyncio.run(main())
