"""Watch the events of a mindstorm as they happen. Leaving the block early would cancel it."""

import asyncio
from pathlib import Path

import nlsom
from nlsom.event import Abstained, Asked, Decided, Spoke
from nlsom_societies.samples import sample

FILE = Path(__file__).with_name("own_society.yaml")


async def main() -> None:
    async with nlsom.load(FILE) as society:
        task = await society.make_task(
            "What is this?", images=[sample("coffee")], choices=["coffee", "soup", "paint"]
        )
        async with society.mindstorm(task) as storm:
            async for event in storm:
                match event:
                    case Asked():
                        print(f"{event.member} is asked")
                    case Spoke(message=message):
                        print(f"{message.sender}: {message.text}")
                    case Abstained(abstention=abstention):
                        print(f"{abstention.member} abstains: {abstention.cause}")
                    case Decided(verdict=verdict):
                        print("verdict:", verdict.answer)
                    case _:
                        pass


asyncio.run(main())
