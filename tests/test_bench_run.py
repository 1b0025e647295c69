"""Runs: one line per sample, resumable, with failures counted and named."""

import asyncio
import io
import json
import math
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from bench import questions, right_but, trio

from nlsom.bench.compare import compare
from nlsom.bench.folder import RunFolder
from nlsom.bench.progress import Progress
from nlsom.bench.report import page
from nlsom.bench.run import Contender, Runner
from nlsom.bench.sets import load_set
from nlsom.bench.standing import standings
from nlsom.errors import TraceError, UsageError
from nlsom.message import Said
from nlsom.phase import Ask, Inline
from nlsom.task import CaptionTask
from nlsom.testing.agents import Failing, Saying, panel

CAPTIONED = Path(__file__).parents[1] / "societies" / "nlsom_societies" / "samples"
CAPTION = (Ask(ask="everyone", prompt=Inline(text="Describe it."), label="ballot", form="answer"),)
VICTIM = Path(__file__).parent / "data" / "bench_victim.py"


async def test_a_run_writes_a_line_a_sample_with_both_scores(tmp_path):
    folder = RunFolder(tmp_path / "run")
    await Runner(questions(tmp_path / "set", 20), folder, concurrency=3).run([Contender.of(trio())])
    lines = list(folder.lines)
    assert sorted(line.sample for line in lines) == sorted(f"q{n}" for n in range(20))
    line = next(line for line in lines if line.sample == "q4")
    assert (line.question, line.answers, line.answer) == ("Is it 4?", ("yes",), "yes")
    assert (line.official, line.lenient, line.read) == (1.0, 1.0, "yes")
    assert line.usage.calls == 3
    assert line.usage.tokens == 300
    assert len(line.images) == 1
    config = folder.config()
    assert (config.on, config.scorer, config.seeds) == ("folder", "answer", 1)
    assert "nlsom" in config.versions
    assert config.entrants[0].members[0][2] == "right but 4 100"


async def test_what_a_run_has_done_is_not_asked_again(tmp_path):
    samples, folder = questions(tmp_path / "set", 12), RunFolder(tmp_path / "run")
    await Runner(samples, folder).run([Contender.of(panel([right_but(4)]))])
    again = right_but(4)
    seen = list[Progress]()
    await Runner(samples, folder, watch=seen.append).run([Contender.of(panel([again]))])
    assert again.turns == []
    assert seen[-1].done == seen[-1].total == 12
    assert seen[-1].fresh == 0
    assert len(list(folder.lines)) == 12


async def test_a_sample_without_line_takes_its_replies_from_the_trace(tmp_path):
    samples, folder = questions(tmp_path / "set", 12), RunFolder(tmp_path / "run")
    await Runner(samples, folder).run([Contender.of(panel([right_but(4)]))])
    kept = folder.lines.path.read_bytes().splitlines(keepends=True)
    folder.lines.path.write_bytes(b"".join(kept[:5]) + kept[5][:40])  # killed in the middle of a line
    again = right_but(4)
    await Runner(samples, folder).run([Contender.of(panel([again]))])
    assert again.turns == []
    assert len(list(folder.lines.last())) == 12
    assert all(line.usage.calls == 1 for line in folder.lines)
    assert sum(line.asked for line in folder.lines) == 5


async def test_a_sample_that_fails_is_named_and_the_run_goes_on(tmp_path):
    samples, folder = questions(tmp_path / "set", 9, pictures=3), RunFolder(tmp_path / "run")
    (tmp_path / "set" / "1.png").write_bytes(b"no picture")
    seen = list[Progress]()
    await Runner(samples, folder, watch=seen.append).run([Contender.of(trio())])
    failed = [line for line in folder.lines if line.error]
    assert sorted(line.sample for line in failed) == ["q1", "q4", "q7"]
    assert all("1.png" in line.error and line.official == 0.0 for line in failed)
    assert seen[-1].failed == 3
    assert len(standings(folder)[0].failed) == 3


async def test_retry_failed_asks_again_only_where_it_failed(tmp_path):
    samples, folder = questions(tmp_path / "set", 10), RunFolder(tmp_path / "run")
    steady, weak = right_but(4), Failing(times=6, then="yes")
    await Runner(samples, folder, concurrency=1).run([Contender.of(panel([steady, weak]))])
    assert [bool(line.abstained) for line in folder.lines] == [True] * 6 + [False] * 4
    steady, weak = right_but(4), Failing(times=0, then="yes")
    await Runner(samples, folder).run([Contender.of(panel([steady, weak]))])
    assert weak.asked == 0
    await Runner(samples, folder, retry_failed=True).run([Contender.of(panel([steady, weak]))])
    assert (len(steady.turns), weak.asked) == (0, 6)
    assert not any(line.abstained for line in folder.lines.last())


async def test_seeds_and_societies_are_run_over_the_same_samples(tmp_path):
    samples, folder = questions(tmp_path / "set", 30), RunFolder(tmp_path / "run")
    runner = Runner(samples, folder, limit=6, sample_seed=3, seeds=2)
    await runner.run([Contender.of(trio("one")), Contender.of(trio("two", (2, 3, 5)))])
    one, two = standings(folder)
    assert (one.name, two.name) == ("one", "two")
    assert one.samples == two.samples
    assert len(one.samples) == 6
    assert len(one.lines) == 12
    assert {line.seed for line in one.lines} == {0, 1}


async def test_a_run_with_other_options_is_refused(tmp_path):
    samples, folder = questions(tmp_path / "set", 6), RunFolder(tmp_path / "run")
    await Runner(samples, folder, limit=3).run([Contender.of(trio())])
    with pytest.raises(UsageError, match="limit was 3"):
        await Runner(samples, folder, limit=4).run([Contender.of(trio())])


async def test_another_society_under_the_same_name_is_refused(tmp_path):
    samples, folder = questions(tmp_path / "set", 6), RunFolder(tmp_path / "run")
    await Runner(samples, folder, budget=300, concurrency=1).run([Contender.of(trio())])
    with pytest.raises(UsageError, match="has changed since"):
        await Runner(samples, folder).run([Contender.of(trio(every=(2, 3, 5)))])


async def test_a_name_that_is_run_twice_is_refused(tmp_path):
    with pytest.raises(UsageError, match="two societies are called"):
        await Runner(questions(tmp_path / "set", 2), RunFolder(tmp_path / "run")).run(
            [Contender.of(trio()), Contender.of(trio())]
        )


async def test_a_spent_budget_begins_no_new_sample_and_a_larger_one_goes_on(tmp_path):
    samples, folder = questions(tmp_path / "set", 10), RunFolder(tmp_path / "run")
    seen = list[Progress]()
    runner = Runner(samples, folder, budget=1000, concurrency=1, watch=seen.append)
    await runner.run([Contender.of(trio())])
    assert seen[-1].done == 4  # 300 tokens each: the fourth was started when 900 were spent
    assert "1000 tokens" in seen[-1].stopped
    await Runner(samples, folder, budget=10_000).run([Contender.of(trio())])
    assert len(list(folder.lines.last())) == 10


async def test_a_set_of_another_kind_is_refused_before_anything_is_asked(tmp_path):
    society = panel([Saying("a cat")])
    society.task = CaptionTask
    with pytest.raises(UsageError, match="caption"):
        await Runner(questions(tmp_path / "set", 2), RunFolder(tmp_path / "run")).run([Contender.of(society)])


async def test_captions_are_scored_as_a_whole(tmp_path):
    society = panel([Saying("A red and green pagoda overlooking a lake.")], CAPTION)
    society.task = CaptionTask
    society.__post_init__()
    folder = RunFolder(tmp_path / "run")
    seen = list[Progress]()
    await Runner(load_set("coco-captions", CAPTIONED), folder, watch=seen.append).run([Contender.of(society)])
    (one,) = standings(folder)
    assert seen[-1].score is None
    assert all(line.official is None for line in one.lines)
    assert next(iter(one.figures)) == "CIDEr"
    assert one.figures["CIDEr"].official > 0
    assert one.interval().estimate == pytest.approx(one.figures["CIDEr"].lenient)
    assert "CIDEr" in await page([folder], [one])


async def test_a_run_of_which_the_set_counts_nothing_has_no_score(tmp_path):
    questions(tmp_path / "set", 1)
    row = {"image": "0.png", "direct_answers": ["yes"], "difficult_direct_answer": True}
    rows = [{**row, "question_id": f"q{n}", "question": "Is it?"} for n in range(2)]
    (tmp_path / "set" / "aokvqa.jsonl").write_text("\n".join(map(json.dumps, rows)))
    folder = RunFolder(tmp_path / "run")
    samples = load_set("aokvqa-direct", tmp_path / "set" / "aokvqa.jsonl")
    await Runner(samples, folder).run([Contender.of(panel([Saying("yes")]))])
    (one,) = standings(folder)
    assert one.samples == ()
    assert math.isnan(one.interval().estimate)
    with pytest.raises(UsageError, match="no sample has a score"):
        compare(one, one)


async def test_a_trace_that_cannot_be_written_ends_the_run(tmp_path):
    samples, folder = questions(tmp_path / "set", 4), RunFolder(tmp_path / "run")
    folder.path.mkdir()
    folder.trace.write_bytes(b"this is no database, but it is long enough to look at " * 20)
    with pytest.raises(TraceError, match="trace.sqlite"):
        await Runner(samples, folder).run([Contender.of(trio())])


async def test_no_more_samples_than_asked_run_at_once(tmp_path):
    member = Saying("yes", seconds=0.002)
    runner = Runner(questions(tmp_path / "set", 30), RunFolder(tmp_path / "run"), concurrency=4)
    await runner.run([Contender.of(panel([member]))])
    assert 1 <= member.most <= 4


async def test_an_unreadable_reply_is_told_from_an_abstention(tmp_path):
    def say(turn):
        told = {"Is it 0?": "purple", "Is it 1?": "I don't know."}.get(turn.task.question, "yes")
        return Said.words(told, answer=told)

    folder = RunFolder(tmp_path / "run")
    await Runner(questions(tmp_path / "set", 4), folder).run([Contender.of(panel([Saying(say)]))])
    (one,) = standings(folder)
    assert one.abstained + one.unparsable == pytest.approx(0.5)


async def test_a_cancelled_run_leaves_lines_that_it_goes_on_from(tmp_path):
    samples, folder = questions(tmp_path / "set", 40), RunFolder(tmp_path / "run")
    reached = asyncio.Event()

    def watch(progress):
        if progress.done >= 10:
            reached.set()

    slow = panel([Saying(right_but(4).say, seconds=0.001, identity="right but 4 100")])
    running = asyncio.create_task(Runner(samples, folder, watch=watch).run([Contender.of(slow)]))
    await reached.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert 10 <= len(list(folder.lines)) < 40
    await Runner(samples, folder).run([Contender.of(panel([right_but(4)]))])
    assert len(list(folder.lines.last())) == 40


def test_a_killed_run_scores_as_if_it_had_not_been_and_asks_for_nothing_twice(tmp_path):
    """SIGKILL at random moments; whatever was in flight may be asked again, what was stored may not."""
    count, kills = 1000, 10
    questions(tmp_path / "set", count)
    command = [sys.executable, str(VICTIM)]
    whole = tmp_path / "whole" / "run"
    given = [str(tmp_path / "set" / "set.csv"), str(count)]
    whole.parent.mkdir()
    subprocess.run([*command, str(whole), *given], check=True)
    cut = tmp_path / "cut" / "run"
    cut.parent.mkdir()
    lot = random.Random(5)
    killed = 0
    for _ in range(60):
        process = subprocess.Popen([*command, str(cut), *given])
        before = _size(cut)
        while process.poll() is None and _size(cut) < before + lot.randint(10, 90) * 900:
            time.sleep(0.005)
        if process.poll() is not None:
            break
        process.send_signal(signal.SIGKILL)
        process.wait()
        killed += 1
        if killed == kills:
            break
    subprocess.run([*command, str(cut), *given], check=True)
    assert killed == kills
    assert _scores(cut) == _scores(whole)
    asked = (cut.parent / "asked").read_text().split()
    once = (whole.parent / "asked").read_text().split()
    assert set(asked) == set(once)
    assert len(once) == len(set(once)) == count * 6
    # A kill can lose what eight samples under way have asked, and no more: the phase of three members that
    # runs, and the one before it, which is written meanwhile.
    assert len(asked) - len(set(asked)) <= killed * 8 * 2 * 3


def _size(run):
    lines = run / "samples.jsonl"
    return lines.stat().st_size if lines.exists() else 0


def _scores(run):
    (one,) = standings(RunFolder(run))
    keep = ("sample", "answer", "official", "lenient", "tied", "mindstorm")
    return json.dumps([line.model_dump(include=set(keep)) for line in one.lines]), one.figures


async def test_a_full_disk_ends_the_run_and_no_line_is_lost_or_mixed_up(tmp_path, monkeypatch):
    questions(tmp_path / "set", 6)
    folder = RunFolder(tmp_path / "run")
    runner = Runner(load_set("folder", tmp_path / "set" / "set.csv"), folder, concurrency=1)
    contender = Contender.of(panel([Saying("yes")]))

    class Filling(io.FileIO):
        def write(self, raw):
            fits = self.tell() < 1500
            return super().write(raw if fits else raw[:40])

    with monkeypatch.context() as patch:
        patch.setattr(type(folder.lines), "append", lambda lines: Filling(lines.path, "ab"))
        with pytest.raises(OSError, match="No space left"):
            await runner.run([contender])
    done = [line.sample for line in folder.lines]
    assert 0 < len(done) < 6
    await runner.run([Contender.of(panel([Saying("yes")]))])
    assert [line.sample for line in folder.lines] == [f"q{n}" for n in range(6)]
    assert [line.sample for line in folder.lines][: len(done)] == done


async def test_an_empty_set_is_refused(tmp_path):
    (tmp_path / "set.csv").write_text("picture,question,answer\n", encoding="utf-8")
    runner = Runner(load_set("folder", tmp_path), RunFolder(tmp_path / "run"))
    with pytest.raises(UsageError, match="'folder' has no samples there"):
        await runner.run([Contender.of(panel([Saying("yes")]))])


async def test_a_slip_in_the_path_of_a_set_does_not_take_the_folder(tmp_path):
    (tmp_path / "wrong").mkdir()
    folder, wrong = RunFolder(tmp_path / "run"), load_set("vqav2", tmp_path / "wrong")
    with pytest.raises(UsageError, match="no file matches"):
        await Runner(wrong, folder, limit=1).run([Contender.of(trio())])
    await Runner(questions(tmp_path / "set", 1), folder, limit=1).run([Contender.of(trio())])
    assert len(list(folder.lines.last())) == 1


async def test_a_run_beneath_a_file_is_refused(tmp_path):
    (tmp_path / "file").touch()
    runner = Runner(questions(tmp_path / "set", 1), RunFolder(tmp_path / "file" / "run"))
    with pytest.raises(UsageError, match="the folder cannot be created"):
        await runner.run([Contender.of(trio())])


def test_a_run_of_another_version_says_so(tmp_path):
    (tmp_path / "config.json").write_text('{"schema_version": 9, "on": "x", "scorer": "vqa", "entrants": []}')
    with pytest.raises(UsageError, match=r"config\.json: was written by another version of nlsom"):
        RunFolder(tmp_path).config()
