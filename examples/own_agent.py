"""Your own agent is a class with one method. This one counts the words of the other members."""

import asyncio

from nlsom import Ask, Inline, Member, Said, Seat, Society, Turn, VerdictBy
from nlsom.rules import Decree
from nlsom_agents.script import Script


class WordCounter:
    """Says how many words the others have said."""

    identity = "word-counter/1"

    async def speak(self, turn: Turn) -> Said:
        words = sum(len(message.text.split()) for message in turn.heard)
        return Said.words(f"{words} words were said.", answer=str(words))


society = Society(
    name="counted",
    seats=[
        Seat(Member("ann", role="speaker"), Script(says="A cat on a sofa.")),
        Seat(Member("bob", role="speaker"), Script(says="A cat, asleep.")),
        Seat(Member("counter"), WordCounter()),
    ],
    phases=[
        Ask(ask="speaker", prompt=Inline(text="Describe the picture."), label="caption"),
        Ask(ask="counter", prompt=Inline(text="How many words were said?"), label="ballot"),
    ],
    verdict=VerdictBy(Decree(), "decree", of="counter"),
)


async def main() -> None:
    async with society:
        verdict = await society.ask("How many words does it take?")
    print(verdict.answer)


asyncio.run(main())
