"""Reports: the page, Markdown, CSV, and the contributions of members."""

import csv as csv_format
import io
import re
from html.parser import HTMLParser

import pytest
from bench import named, questions, right_but, trio

import nlsom
from nlsom.bench.folder import RunFolder
from nlsom.bench.report import csv, markdown, page
from nlsom.bench.report.dialogues import chosen
from nlsom.bench.report.facts import by_kind, calibration, facts
from nlsom.bench.report.plots import Point, pareto, scatter
from nlsom.bench.report.worth import recounted, redrawn
from nlsom.bench.run import Contender, Runner
from nlsom.bench.standing import standings
from nlsom.errors import UsageError
from nlsom.message import Said
from nlsom.phase import Ask, Inline
from nlsom.testing.agents import Saying, panel
from nlsom.trace import SqliteTrace

TWICE = (
    Ask(ask="everyone", prompt=Inline(text="Answer."), label="answer", form="answer"),
    Ask(ask="everyone", prompt=Inline(text="Vote."), label="ballot", form="answer"),
)


async def run(tmp_path, *contenders, count=12):
    folder = RunFolder(tmp_path / "run")
    await Runner(questions(tmp_path / "set", count, pictures=2), folder).run(contenders)
    return folder, standings(folder)


def follower(turn):
    """Answers wrongly, and votes like the first member it heard."""
    if turn.heard:
        return turn.heard[0].said.answer
    return "yes" if int(turn.task.question[6:-1]) % 3 == 0 else "no"


class Page(HTMLParser):
    """Checks that tags are closed, and collects the references of a page."""

    def __init__(self):
        super().__init__()
        self.open, self.refers, self.tags = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.refers += [value for name, value in attrs if name in ("src", "href")]
        if tag not in ("meta", "br", "img"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


async def test_the_page_is_one_well_formed_file_that_refers_to_nothing_outside(tmp_path):
    folder, every = await run(
        tmp_path, Contender.of(trio()), Contender.of(named(panel([right_but(3)]), "<one>"))
    )
    text = await page([folder], every)
    read = Page()
    read.feed(text)
    assert read.open == []
    assert read.tags.count("svg") >= 2
    assert "script" not in read.tags
    assert "link" not in read.tags
    assert read.refers
    assert all(one.startswith("data:image/") for one in read.refers)
    assert "&lt;one&gt;" in text
    assert "<one>" not in text
    for title in ("Scores", "Score and cost", "Comparisons", "Rounds", "Members", "Samples"):
        assert f"<h2>{title}</h2>" in text


async def test_the_page_of_a_run_is_the_same_each_time(tmp_path):
    folder, every = await run(tmp_path, Contender.of(trio()))
    assert await page([folder], every) == await page([folder], standings(folder))


async def test_a_report_in_markdown_is_what_it_was(tmp_path):
    _, every = await run(tmp_path, Contender.of(trio()), Contender.of(named(panel([right_but(2)]), "half")))
    assert markdown(every) == (
        "| society | set | samples | figure | official | lenient | 95 % (lenient) | unparsable | abstained "
        "| failed | tokens | calls |\n"
        "|---|---|---|---|---|---|---|---|---|---|---|---|\n"
        "| trio | folder | 12 | answer | 0.917 | 0.917 | 0.750 to 1.000 | 0.0% | 0.0% | 0 | 300 | 3.0 |\n"
        "| half | folder | 12 | answer | 0.500 | 0.500 | 0.250 to 0.750 | 0.0% | 0.0% | 0 | 100 | 1.0 |\n"
    )


async def test_csv_has_a_row_a_sample(tmp_path):
    _, every = await run(tmp_path, Contender.of(trio()))
    rows = list(csv_format.DictReader(io.StringIO(csv(every))))
    assert len(rows) == 12
    assert rows[0]["sample"] == "q0"
    assert (rows[0]["gold"], rows[0]["answer"], rows[0]["lenient"]) == ("no", "yes", "0.0")
    assert sum(float(row["official"]) for row in rows) == 11


async def test_changes_of_mind_are_counted_by_round(tmp_path):
    members = [right_but(99), Saying(follower, identity="follower")]
    folder, (one,) = await run(tmp_path, Contender.of(panel(members, TWICE)))
    async with SqliteTrace(folder.trace, read_only=True) as trace:
        found = await facts(one, trace)
    first, second = found.rounds
    assert (first.name, second.name) == ("answer", "ballot")
    # On question 0 both err at first, and so agree.
    assert (first.answers, first.right, first.agreed) == (24, 11, pytest.approx(6.5 / 12))
    assert (second.right, second.agreed) == (22, 1.0)
    assert (second.won, second.lost, second.kept) == (11, 0, 13)
    assert {share.name: (share.calls, share.tokens) for share in found.shares} == {
        "m0": (24, 2400),
        "m1": (0, 0),
    }


async def test_calibration_compares_confidence_with_what_was_right(tmp_path):
    def say(turn):
        n = int(turn.task.question[6:-1])
        return Said.words("no" if n % 2 else "yes", confidence=0.9)

    _, (one,) = await run(tmp_path, Contender.of(panel([Saying(say)])))
    bins, error = calibration(one)
    right = one.interval().estimate
    assert [b.number for b in bins] == [12]
    assert error == pytest.approx(abs(bins[0].confidence - right))


async def test_kinds_come_from_the_set_or_from_the_first_words(tmp_path):
    _, (one,) = await run(tmp_path, Contender.of(trio()))
    assert by_kind(one) == {"is it": (pytest.approx(11 / 12), 12)}


async def test_votes_counted_again_without_a_member_say_what_its_vote_is_worth(tmp_path):
    members = [right_but(2), right_but(99), right_but(98)]
    folder, (one,) = await run(tmp_path, Contender.of(named(panel(members), "three")))
    async with SqliteTrace(folder.trace, read_only=True) as trace:
        found = {worth.member: worth for worth in await recounted(one, trace)}
    assert list(found) == ["m0", "m1", "m2"]
    assert found["m0"].gain.estimate == pytest.approx(0)
    # Without m1 the other two tie wherever m0 errs (but question 0, where all err), and a tie is no answer.
    assert found["m1"].gain.estimate == pytest.approx(5 / 12)
    assert all(worth.draws == 0 for worth in found.values())


FILE = {
    "name": "listeners",
    "members": {
        "ann": {"agent": "script", "says": "yes"},
        "bob": {"agent": "script", "says": "yes"},
        "cid": {"agent": "script", "says": "no"},
    },
    "mindstorm": [
        {"ask": "everyone", "prompt": "give_answer", "as": "answer", "form": "answer"},
        {"ask": "everyone", "prompt": "vote", "as": "ballot", "form": "answer"},
    ],
    "verdict": {"rule": "plurality"},
}


async def test_leave_one_out_runs_the_society_again_from_its_trace(tmp_path):
    folder, (one,) = await run(tmp_path, Contender.of(nlsom.load(FILE)))
    found = {worth.member: worth for worth in await redrawn(one, folder)}
    assert list(found) == ["ann", "bob", "cid"]
    assert found["cid"].gain.estimate == 0  # its vote never mattered
    assert found["ann"].gain.estimate == pytest.approx(8 / 12)  # without it there is a tie, so no answer
    folder_again = await page([folder], [one], fresh=True)
    assert "fresh run" in folder_again


async def test_leave_one_out_of_a_society_made_in_python_cannot_be_drawn(tmp_path):
    folder, (one,) = await run(tmp_path, Contender.of(trio()))
    with pytest.raises(UsageError, match="made in Python"):
        await redrawn(one, folder)


async def test_samples_on_which_societies_disagree_are_shown_first(tmp_path):
    _, every = await run(tmp_path, Contender.of(trio()), Contender.of(named(panel([right_but(5)]), "five")))
    assert set(chosen(every, 2)) == {"q5", "q10"}


async def test_a_failed_sample_is_named_in_the_page(tmp_path):
    samples = questions(tmp_path / "set", 4, pictures=2)
    (tmp_path / "set" / "1.png").unlink()
    folder = RunFolder(tmp_path / "run")
    await Runner(samples, folder).run([Contender.of(trio())])
    text = await page([folder], standings(folder))
    assert re.search(r"trio, sample q1: .*1\.png", text)


def test_the_pareto_front_holds_what_no_other_beats():
    points = [Point(x, y, y, y, f"{x}") for x, y in ((3, 0.5), (1, 0.4), (2, 0.3), (4, 0.5), (5, 0.9))]
    assert [point.label for point in pareto(points)] == ["1", "3", "5"]


def test_a_plot_of_nothing_is_nothing():
    assert scatter([], "x", "y", "title") == ""
