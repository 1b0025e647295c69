import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parent.parent / "benchmarks" / "certain_stop.py"


def test_a_certain_stop_saves_the_calls_that_were_promised():
    ran = subprocess.run(
        [sys.executable, SCRIPT, "--json", "--runs", "5"], capture_output=True, text=True, check=True
    )
    told = json.loads(ran.stdout)
    saved = {(row["options"], row["agreement"]): row["saved"] for row in told["table"]}
    assert told["floors_reached"]
    assert saved[2, 0.7] >= 0.25
    assert saved[4, 0.7] >= 0.33
    assert saved[2, 1.0] >= 64 / 129
