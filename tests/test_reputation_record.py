from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nlsom.config import load
from nlsom.errors import ConfigError, UsageError
from nlsom.reputation import Past, Reputation
from nlsom.trace import MemoryTrace

SOCIETY = """
name: jury
members:
  ann: {agent: script, says: cat, role: juror}
  bob: {agent: script, says: dog, role: juror}
  cid: {agent: script, says: dog, role: juror}
mindstorm:
  - {ask: juror, prompt: give_answer, as: ballot, form: answer}
verdict: {rule: competence, reputation: record.json}
"""


@pytest.fixture
def jury(tmp_path: Path) -> Path:
    (tmp_path / "jury.yaml").write_text(SOCIETY)
    record = {
        "ann": {"right": 98, "wrong": 0},
        "bob": {"right": 60, "wrong": 40},
        "cid": {"right": 55, "wrong": 45},
    }
    (tmp_path / "record.json").write_text(json.dumps(record))
    return tmp_path / "jury.yaml"


async def verdict_and_header(jury: Path) -> tuple[Any, Any]:
    trace = MemoryTrace()
    society = load(jury, trace=trace)
    async with society:
        verdict = await society.ask("Cat or dog?", choices=["cat", "dog"])
    headers = [header async for header in trace.mindstorms()]
    return verdict, headers[0]


async def test_one_who_was_always_right_outweighs_two_who_guess(jury: Path) -> None:
    verdict, _ = await verdict_and_header(jury)
    assert verdict.answer == "cat"


async def test_what_was_read_stands_in_the_header_with_its_digest(jury: Path) -> None:
    _, header = await verdict_and_header(jury)
    assert header.frozen["competence"]["ann"] == pytest.approx(99 / 100)
    assert len(header.frozen["digest"]) == 64
    (jury.parent / "record.json").write_text("{}")
    _, other = await verdict_and_header(jury)
    assert other.frozen is None
    assert other.digest != header.digest


async def test_the_record_is_read_once_and_not_while_a_mindstorm_runs(jury: Path) -> None:
    society = load(jury)
    (jury.parent / "record.json").unlink()
    async with society:
        assert (await society.ask("Cat or dog?", choices=["cat", "dog"])).answer == "cat"


@pytest.mark.parametrize("content", [None, "[]", '{"ann": {"rihgt": 1}}', '{"ann": {"right": "many"}}'])
def test_a_faulty_record_is_told_with_its_place(jury: Path, content: str | None) -> None:
    record = jury.parent / "record.json"
    record.unlink() if content is None else record.write_text(content)
    with pytest.raises(ConfigError, match=r"jury\.yaml:9:\d+: reputation .*record\.json"):
        load(jury)


def test_a_record_grows_by_right_and_wrong_answers(tmp_path: Path) -> None:
    record = Reputation({"ann": Past(right=1)}).after(
        [({"ann": "cat", "bob": "dog"}, "cat"), ({"bob": "cat"}, "cat")]
    )
    assert record.root == {"ann": Past(right=2), "bob": Past(right=1, wrong=1)}
    assert record.competence() == {"ann": 3 / 4, "bob": 2 / 4}
    record.write(tmp_path / "r.json")
    assert Reputation.read(tmp_path / "r.json") == record
    assert [file.name for file in tmp_path.iterdir()] == ["r.json"]


def test_without_labels_those_who_agree_are_believed() -> None:
    tasks = [{"ann": "x", "bob": "x", "cid": "y"}] * 20
    competence = Reputation({}).after_unlabelled(tasks).competence()
    assert competence["ann"] == pytest.approx(competence["bob"])
    assert competence["ann"] > 0.8 > 0.4 > competence["cid"]


def test_a_missing_record_is_told() -> None:
    with pytest.raises(UsageError, match="No such file"):
        Reputation.read(Path("nowhere.json"))
