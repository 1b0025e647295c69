import pytest

from nlsom.trace import Header, Record, SqliteTrace


def header(number):
    return Header(
        mindstorm=f"m{number}",
        society="s",
        digest="d",
        members=(("a", "r"),),
        kind="vqa",
        task={},
        seed=0,
        started=0,
    )


@pytest.fixture
async def trace(tmp_path):
    made = SqliteTrace(tmp_path / "t.sqlite")
    for number in range(4):
        await made.open(header(number))
    yield made
    await made.close()


async def test_a_mindstorm_is_found_by_its_id(trace):
    found = await trace.header("m2")
    assert found is not None
    assert found.mindstorm == "m2"
    assert await trace.header("none") is None


async def test_the_latest_come_first_and_go_on_before_the_last_known(trace):
    assert [one.mindstorm for one in await trace.latest(2)] == ["m3", "m2"]
    assert [one.mindstorm for one in await trace.latest(9, before="m2")] == ["m1", "m0"]
    assert await trace.latest(9, before="none") == []


async def test_the_last_verdict_of_a_mindstorm_counts(trace):
    assert await trace.verdict("m1") is None
    for body in (b"{}", b'{"rule":"plurality","answer":"x"}'):
        trace.append(Record("m1", "verdict", body=body))
    await trace.durable()
    assert (await trace.verdict("m1")).body.endswith(b'"x"}')
    assert await trace.verdict("m2") is None
