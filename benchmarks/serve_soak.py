"""Soak the server: thousands of requests made up from its OpenAPI document by schemathesis.

    python benchmarks/serve_soak.py [--examples 250]

No answer may be a 5xx, none may have a status or a body that the document does not name. It ends with the
number of cases, and with status 1 if one of them failed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from serving import Process

CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,"
    "unsupported_method"
)


def soak(url: str, folder: Path, *, examples: int, phases: str, seed: int | None = None) -> tuple[int, str]:
    """Runs schemathesis against a server; its exit status and what it says."""
    command = [sys.executable, "-m", "schemathesis.cli", "run", f"{url}/openapi.json", "--no-color"]
    command += ["--checks", CHECKS, "--phases", phases, "-n", str(examples), "--continue-on-failure"]
    command += ["--suppress-health-check", "all", "--request-timeout", "30"]
    command += ["--seed", str(seed)] if seed is not None else []
    done = subprocess.run(command, text=True, capture_output=True, cwd=folder, check=False)  # noqa: S603
    return done.returncode, done.stdout + done.stderr


def main() -> None:
    """Starts a server and soaks it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=int, default=250, help="cases of the fuzzing phase, an operation")
    examples = parser.parse_args().examples
    with tempfile.TemporaryDirectory() as folder, Process(Path(folder), "--max-seconds", "5") as server:
        status, told = soak(server.url, Path(folder), examples=examples, phases="coverage,fuzzing")
        print(told[told.find("= SUMMARY") :])
        alive = server.process.poll() is None
    sys.exit(status or not alive)


if __name__ == "__main__":
    main()
