"""The page in a real Chromium: what a person sees and does."""

import asyncio
import base64
import os
import shutil
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import async_playwright, expect
from serving import TRIO, one_phase, png, serving

from nlsom.config import load
from nlsom.testing.agents import Saying
from nlsom_serve.app import Keys

pytestmark = pytest.mark.browser

expect.set_options(timeout=60_000)  # a machine that does much else at once is slow, not wrong

KEY = "a-key-of-our-own-0001"


@asynccontextmanager
async def browsing(url, **options):
    """A page of the server in Chromium; no other host may be asked for anything, and no script may fail."""
    path = os.environ.get("NLSOM_CHROMIUM") or shutil.which("chromium")
    assert path, "no Chromium: apt-get install chromium, or name one in NLSOM_CHROMIUM"
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = await browser.new_page(**options)
        wrong = []
        page.on(
            "request", lambda asked: asked.url.startswith((url, "data:", "blob:")) or wrong.append(asked.url)
        )
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.set_default_timeout(60_000)
        await page.goto(url)
        try:
            yield page
        finally:
            await browser.close()
        assert not wrong


PICTURE = base64.b64decode(png(96, 64, "tan").split(",")[1])


async def drop(page):
    """Drops a picture onto the page."""
    await page.evaluate(
        """(bytes) => {
            const file = new File([new Uint8Array(bytes)], "picture.png", {type: "image/png"});
            const data = new DataTransfer();
            data.items.add(file);
            const event = new DragEvent("drop", {dataTransfer: data, bubbles: true, cancelable: true});
            document.getElementById("drop").dispatchEvent(event);
        }""",
        list(PICTURE),
    )


async def choose(page):
    """Chooses another picture from the disk."""
    other = base64.b64decode(png(64, 96, "teal").split(",")[1])
    await page.locator("#files").set_input_files(
        [{"name": "other.png", "mimeType": "image/png", "buffer": other}]
    )


@asynccontextmanager
async def visited(folder, *societies, keys=None, **options):
    """A server and a browser that looks at its page."""
    async with AsyncExitStack() as stack:
        client, house = await stack.enter_async_context(serving(folder, *societies, keys=keys))
        page = await stack.enter_async_context(browsing(str(client.base_url).rstrip("/"), **options))
        yield page, client, house


async def test_a_person_asks_with_a_picture_and_watches_to_the_verdict(tmp_path):
    async with visited(tmp_path) as (page, client, _):
        await expect(page.locator("#graph svg circle:has(title)")).to_have_count(3)
        await page.get_by_label("Question").fill("What animal is this?\nA. cat\nB. dog")
        await drop(page)
        await choose(page)
        await expect(page.locator("#pictures img")).to_have_count(2)
        await page.get_by_role("button", name="Ask", exact=True).click()
        await expect(page.locator("#answer")).to_have_text("cat")
        await expect(page.locator("#shown img")).to_have_count(2)
        await expect(page.locator(".said")).to_have_count(6)
        await expect(page.locator("#dialogue h3")).to_have_text(["caption, round 1", "ballot, round 1"])
        await expect(page.locator("#dialogue")).to_contain_text("anna: a grey cat")
        await expect(page.locator("#tally .bar")).to_have_count(2)
        await expect(page.locator("#tally .figure").first).to_have_text("2")
        await expect(page.get_by_role("status")).to_contain_text("The verdict: cat")
        told = (await client.get("/v1/mindstorms")).json()["data"][0]
        assert (told["choices"], told["images"]) == (["cat", "dog"], 2)


async def test_pictures_stay_for_the_next_question_until_they_are_removed_or_others_come(tmp_path):
    async with visited(tmp_path) as (page, client, _):

        async def ask(question):
            await page.get_by_label("Question").fill(question)
            await page.get_by_role("button", name="Ask", exact=True).click()
            await expect(page.locator("#asked")).to_have_text(question)
            await expect(page.locator("#answer")).to_have_text("A")
            return (await client.get("/v1/mindstorms")).json()["data"][0]["images"]

        kept = page.get_by_text("Also sent with your next question")
        await drop(page)
        await choose(page)
        await expect(page.locator("#pictures img")).to_have_count(2)
        await expect(kept).to_be_hidden()
        assert await ask("What is it?") == 2
        await expect(kept).to_be_visible()
        assert await ask("What colour is it?") == 2
        await page.get_by_role("button", name="Remove picture 1").click()
        await expect(kept).to_be_visible()
        await choose(page)  # in place of the one that was left
        await expect(page.locator("#pictures img")).to_have_count(1)
        await expect(kept).to_be_hidden()
        assert await ask("And this?") == 1
        await page.get_by_role("button", name="Remove picture 1").click()
        await expect(kept).to_be_hidden()
        assert await ask("And without any?") == 0


async def test_a_past_picture_is_asked_about_again_without_being_chosen_again(tmp_path):
    async with visited(tmp_path) as (page, client, _):
        await page.get_by_label("Question").fill("What is it?")
        await choose(page)
        await page.get_by_role("button", name="Ask", exact=True).click()
        await expect(page.locator("#answer")).to_have_text("A")
        again = page.get_by_role("button", name="Ask about it again")
        await expect(again).to_be_hidden()  # it is in the form still
        await page.reload()
        await expect(page.locator("#answer")).to_have_text("A")
        await expect(page.locator("#pictures img")).to_have_count(0)
        await again.click()
        await expect(page.locator("#pictures img")).to_have_count(1)
        await page.get_by_label("Question").fill("What colour is it?")
        await page.get_by_role("button", name="Ask", exact=True).click()
        await expect(page.locator("#asked")).to_have_text("What colour is it?")
        await expect(page.locator("#answer")).to_have_text("A")
        asked = (await client.get("/v1/mindstorms")).json()["data"]
        first, second = [(await client.get(f"/v1/mindstorms/{one['id']}/images/0")).content for one in asked]
        assert first == second


async def test_a_file_that_is_no_picture_is_said_not_to_be_one(tmp_path):
    text = {"name": "notes.txt", "mimeType": "text/plain", "buffer": b"not a picture"}
    async with visited(tmp_path) as (page, _, _):
        await page.locator("#files").set_input_files([text])
        await expect(page.get_by_role("alert")).to_have_text("Not a picture: notes.txt.")
        await expect(page.locator("#pictures img")).to_have_count(0)
        await choose(page)
        await expect(page.get_by_role("alert")).to_be_hidden()
        await expect(page.locator("#pictures img")).to_have_count(1)


async def test_the_graph_lights_up_while_members_think(tmp_path):
    slow = Saying("cat", seconds=0.6)
    async with visited(tmp_path, one_phase([slow, slow, slow], name="trio")) as (page, _, _):
        await page.get_by_label("Question").fill("What?")
        await page.keyboard.press("Control+Enter")
        await expect(page.locator("#graph circle.thinking")).to_have_count(3)
        await expect(page.locator("#graph .says").first).to_be_attached()
        await expect(page.locator("#answer")).to_have_text("cat")
        await expect(page.locator("#graph circle.thinking")).to_have_count(0)


async def test_a_past_mindstorm_is_opened_and_played_again(tmp_path):
    async with visited(tmp_path) as (page, client, _):
        new = {"society": "trio", "question": "Is it old?", "choices": ["cat", "dog"], "wait": True}
        await client.post("/v1/mindstorms", json=new)
        await page.reload()
        await page.get_by_role("button", name="Is it old?").click()
        await expect(page.locator("#answer")).to_have_text("cat")
        await expect(page.locator(".said")).to_have_count(6)
        await page.get_by_label("Speed").select_option("fast")
        await page.get_by_role("button", name="Replay").click()
        await expect(page.locator("#verdict")).to_be_hidden()
        await expect(page.locator(".said")).to_have_count(6)
        await expect(page.locator("#answer")).to_have_text("cat")
        await page.reload()
        await expect(page.locator("#answer")).to_have_text("cat")


async def test_a_person_takes_a_seat_and_answers(tmp_path):
    you = {"agent": "human", "seconds": 120}
    members = {"you": you, "anna": TRIO["members"]["anna"], "cleo": TRIO["members"]["cleo"]}
    async with visited(tmp_path, load({**TRIO, "members": members})) as (page, _, _):
        await page.get_by_label("Question").fill("What animal is this? A. cat B. dog")
        await page.get_by_role("button", name="Ask", exact=True).click()
        await expect(page.get_by_role("heading", name="Your turn, you")).to_be_visible()
        await expect(page.locator("#turn-text")).to_be_focused()
        await expect(page.get_by_role("timer")).to_contain_text("seconds left")
        await page.keyboard.type("It barks.")
        await page.get_by_role("button", name="Answer").click()
        await page.get_by_role("radio", name="dog").check()
        await page.get_by_role("button", name="Answer").click()
        await expect(page.locator("#answer")).to_have_text("dog")
        await expect(page.locator("#dialogue")).to_contain_text("you: It barks.")
        await expect(page.locator("#seat")).to_be_hidden()


class _Fails:
    identity = "fails/1"

    async def speak(self, turn):
        raise RuntimeError("<img src=x onerror=alert(1)> /srv/secret/file")


async def test_a_failing_member_is_shown_as_one_that_abstains(tmp_path):
    society = one_phase(
        [Saying("<b>cat</b>", seconds=0), _Fails(), Saying("<b>cat</b>", seconds=0)], name="trio"
    )
    async with visited(tmp_path, society) as (page, _, _):
        await page.get_by_label("Question").fill("<script>alert(1)</script>?")
        await page.get_by_role("button", name="Ask", exact=True).click()
        await expect(page.locator("#answer")).to_have_text("cat")
        await expect(page.locator("#dialogue")).to_contain_text("m0: <b>cat</b>")
        await expect(page.locator(".abstains")).to_contain_text("m1 abstains: RuntimeError")
        await expect(page.locator(".abstains")).not_to_contain_text("/srv")
        await expect(page.locator("#graph circle.absent")).to_have_count(1)
        assert await page.locator("#dialogue img, #dialogue b b, #asked script").count() == 0


async def test_a_mindstorm_is_cancelled_from_the_page(tmp_path):
    slow = Saying(seconds=60)
    async with visited(tmp_path, one_phase([slow], name="trio")) as (page, _, _):
        await page.get_by_label("Question").fill("What?")
        await page.get_by_role("button", name="Ask", exact=True).click()
        await expect(page.locator("#graph circle.thinking")).to_have_count(1)
        await page.get_by_role("button", name="Cancel").click()
        await expect(page.get_by_role("status")).to_contain_text("Stopped")
        while slow.running:
            await asyncio.sleep(0.01)


async def test_a_hundred_and_twenty_nine_members_fit_a_phone(tmp_path):
    society = one_phase([Saying("cat", seconds=0) for _ in range(129)], name="crowd")
    phone = {"viewport": {"width": 375, "height": 740}}
    async with visited(tmp_path, society, **phone) as (page, _, _):
        await page.get_by_label("Question").fill("What?")
        await page.get_by_role("button", name="Ask", exact=True).click()
        await expect(page.locator(".said")).to_have_count(129)
        await expect(page.locator("#answer")).to_have_text("cat")
        await expect(page.locator("#graph circle.voted")).to_have_count(129)
        wide = await page.evaluate("document.documentElement.scrollWidth")
        assert wide <= 375


async def test_a_key_is_asked_for_where_one_is_needed(tmp_path):
    async with visited(tmp_path, keys=Keys({"me": KEY})) as (page, _, _):
        await page.get_by_label("Key", exact=True).fill("wrong")
        await page.keyboard.press("Enter")
        await page.get_by_label("Key", exact=True).fill(KEY)
        await page.keyboard.press("Enter")
        await expect(page.locator("#society option")).to_have_text(["trio"])


async def test_everything_is_reached_by_keyboard_and_has_a_name(tmp_path):
    async with visited(tmp_path) as (page, _, _):
        await expect(page.locator("#graph svg")).to_be_visible()
        reached = []
        for _ in range(8):
            await page.keyboard.press("Tab")
            reached.append(
                await page.evaluate("document.activeElement.id || document.activeElement.textContent")
            )
        assert reached[:5] == ["Skip to the dialogue", "society", "question", "files", "send"]
        nameless = await page.evaluate(
            """[...document.querySelectorAll("input, textarea, select, button")]
                .filter((one) => !one.labels?.length && !one.textContent.trim() && !one.ariaLabel)
                .map((one) => one.outerHTML)"""
        )
        assert nameless == []
        await expect(page.locator("#graph svg title").first).to_be_attached()


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_text_is_legible_in_light_and_dark(tmp_path, scheme):
    async with visited(tmp_path, color_scheme=scheme) as (page, _, _):
        await page.get_by_label("Question").fill("Which? A. cat B. dog")
        await page.get_by_role("button", name="Ask", exact=True).click()
        await expect(page.locator("#answer")).to_have_text("cat")
        least = await page.evaluate(CONTRAST)
        assert least >= 4.5
        if folder := os.environ.get("NLSOM_PICTURES"):
            await page.wait_for_timeout(1600)
            await page.screenshot(path=Path(folder) / f"page-{scheme}.png", full_page=True)


CONTRAST = """() => {
    const paint = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
    const rgb = (colour) => {
        paint.clearRect(0, 0, 1, 1); paint.fillStyle = colour; paint.fillRect(0, 0, 1, 1);
        return [...paint.getImageData(0, 0, 1, 1).data];
    };
    const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
        .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
        .reduce((sum, v, at) => sum + v * [0.2126, 0.7152, 0.0722][at], 0);
    const behind = (one) => {
        for (let at = one; at; at = at.parentElement) {
            const colour = rgb(getComputedStyle(at).backgroundColor);
            if (colour[3] === 255) return colour;
        }
        return rgb("canvas");
    };
    const shown = [...document.querySelectorAll("h1, h2, h3, p, small, b, dd, dt, label, button, span")]
        .filter((one) => one.textContent.trim() && one.checkVisibility() && !one.closest("dialog"));
    return Math.min(...shown.map((one) => {
        const [a, b] = [light(rgb(getComputedStyle(one).color)), light(behind(one))];
        return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    }));
}"""
