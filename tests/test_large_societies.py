"""Societies with hundreds of members run end to end; the benchmark measures thousands."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parents[1] / "benchmarks" / "societies.py"


@pytest.mark.parametrize(
    ("row", "members"),
    [("random DAG, p=0.1", 100), ("ring", 500), ("democracy", 500), ("artist-critic, scripted", 129)],
)
def test_every_member_is_asked_in_every_round_and_there_is_a_verdict(row: str, members: int) -> None:
    done = subprocess.run(
        [sys.executable, BENCHMARK, "--small", "--row", row], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["members"] == members
    assert told["calls"] == (members if row.startswith("artist") else 3 * members)
    assert told["answer"] in ("yes", "no") or row.startswith("artist")
    assert told["answer"]
