"""Takes screenshots of the page: python docs/make_screens.py FOLDER (needs Chromium); for docs/pictures."""

from __future__ import annotations

import asyncio
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from PIL import Image
from playwright.async_api import Page, async_playwright

from nlsom.blueprint import Seat, VerdictBy
from nlsom.config import load
from nlsom.member import Member
from nlsom.message import Said, Usage
from nlsom.phase import Ask, Inline
from nlsom.rules import Plurality
from nlsom.society import Society
from nlsom.turn import Turn
from nlsom_serve.app import Keys, Settings, opened_house
from nlsom_serve.server import served
from nlsom_societies.samples import sample

QUESTION = "What animal is this?\nA. cat\nB. dog\nC. horse"
VILLAGE = {
    "name": "village",
    "about": "An organizer asks three experts and a neighbour, who is a person; a leader decides.",
    "members": {
        "organizer": {
            "agent": "script",
            "role": "organizer",
            "says": {
                "question": ["What is in the foreground?", "Is it alive?"],
                "summary": "A cat, in daylight.",
            },
        },
        "leader": {"agent": "script", "role": "leader", "says": {"ballot": "A"}},
        "detector": {
            "agent": "script",
            "role": "expert",
            "says": {
                "caption": "One cat, filling most of the picture.",
                "answer": ["A cat.", "Yes: an animal."],
            },
        },
        "captioner": {
            "agent": "script",
            "role": "expert",
            "says": {
                "caption": "A brown tabby cat looks to the side, with wide green eyes.",
                "answer": ["A tabby cat, close to the camera.", "It looks awake, so yes."],
            },
        },
        "colourist": {
            "agent": "script",
            "role": "expert",
            "says": {"caption": "Brown (63 %), beige and grey.", "answer": ["Something brown with stripes."]},
        },
        "you": {"agent": "human", "role": "expert", "seconds": 90},
    },
    "structure": "monarchy",
    "mindstorm": [
        {"ask": "expert", "prompt": {"text": "Say what you see."}, "as": "caption", "order": "in_turn"},
        {
            "repeat": 2,
            "phases": [
                {"ask": "organizer", "prompt": {"text": "Ask."}, "as": "question"},
                {"ask": "expert", "prompt": {"text": "Answer the organizer."}, "as": "answer"},
            ],
        },
        {"ask": "organizer", "prompt": {"text": "Sum it up."}, "as": "summary"},
        {"ask": "leader", "prompt": {"text": "Decide."}, "as": "ballot", "form": "answer"},
    ],
    "verdict": {"rule": "decree", "of": "leader"},
}


@dataclass(frozen=True)
class Votes:
    """A member of the crowd: it takes its time, and votes."""

    number: int
    identity = "votes/1"

    async def speak(self, turn: Turn) -> Said:
        """A vote; the seventh member fails."""
        await asyncio.sleep(0.4 + self.number * 37 % 129 / 24)
        if self.number == 6:
            raise ConnectionError("the model's server hung up")
        says = "AAABAACAB"[self.number % 9]
        return Said.words(says, usage=Usage(calls=1, prompt_tokens=400, completion_tokens=2))


def crowd(members: int = 129) -> Society:
    """Many members who hear each other, and vote."""
    return Society(
        name=f"crowd-of-{members}",
        about="Everyone hears everyone, and votes.",
        seats=[Seat(Member(f"m{number}"), Votes(number)) for number in range(members)],
        phases=[Ask(ask="everyone", prompt=Inline(text="Vote."), label="ballot", form="answer")],
        verdict=VerdictBy(Plurality(), "plurality"),
    )


async def ask(page: Page, society: str, *, picture: bool) -> None:
    """Asks a society on the page."""
    await page.get_by_label("Society", exact=True).select_option(society)
    await page.get_by_label("Question").fill(QUESTION)
    while await page.locator("#pictures button").count():
        await page.locator("#pictures button").first.click()
    if picture:
        await page.locator("#files").set_input_files(str(sample("cat")))
        await page.locator("#pictures img").wait_for()


async def shoot(page: Page, folder: Path, name: str, *, whole: bool = False) -> None:
    """Takes a screenshot, reduced to 160 colours: a fifth of the size, without a visible difference."""
    await page.screenshot(path=folder / name, full_page=whole)
    Image.open(folder / name).convert("RGB").quantize(160, dither=Image.Dither.NONE).save(
        folder / name, optimize=True
    )


async def walk(page: Page, folder: Path, mark: str) -> None:
    """Asks, takes the seat, and waits for the verdict; then asks the large society."""
    await page.locator("#graph svg").wait_for()
    await ask(page, "village", picture=True)
    await shoot(page, folder, f"page-ask{mark}.png")
    await page.get_by_role("button", name="Ask", exact=True).click()
    for said in ("It looks like our Minka.", "A cat, in front.", "Very much so."):
        await page.locator("#turn-text").fill(said)
        if said.startswith("It"):
            await page.mouse.move(0, 0)
            await shoot(page, folder, f"page-seat{mark}.png")
        await page.get_by_role("button", name="Answer").click()
        await page.locator("#dialogue").get_by_text(said).wait_for()
    await page.locator("#answer", has_text="cat").wait_for()
    await page.wait_for_timeout(1600)
    await shoot(page, folder, f"page-verdict{mark}.png", whole=True)
    await page.evaluate("scrollTo(0, 0)")
    await ask(page, "crowd-of-129", picture=False)
    await page.get_by_role("button", name="Ask", exact=True).click()
    await page.wait_for_timeout(3000)
    await shoot(page, folder, f"page-crowd{mark}.png", whole=True)
    await page.locator("#answer", has_text="cat").wait_for()


async def main(folder: Path) -> None:
    """Serves the page, and takes screenshots of it."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        for mark, width, scheme in (("", 1280, "light"), ("-dark", 1280, "dark"), ("-phone", 390, "dark")):
            with tempfile.TemporaryDirectory() as data:
                societies = [load(VILLAGE), crowd()]
                async with (
                    opened_house(societies, Path(data), settings=Settings(), keys=Keys()) as house,
                    served(house) as url,
                ):
                    size = {"width": width, "height": 844}
                    page = await browser.new_page(viewport=size, color_scheme=scheme)
                    await page.goto(url)
                    await walk(page, folder, mark)
                    await page.close()
        await browser.close()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    asyncio.run(main(Path(sys.argv[1])))
