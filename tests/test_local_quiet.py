"""OpenVINO reports its use over the network when it is imported; under nlsom it must not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = """
import os, sys
def notice(event, arguments):
    if event in ("socket.getaddrinfo", "socket.connect", "os.fork"):
        os.write(1, f"{event} {arguments}\\n".encode())
sys.addaudithook(notice)
import nlsom_agents.local.batch
import openvino_genai
import openvino
"""


def test_importing_the_engine_reaches_no_network_and_leaves_nothing_in_the_home_folder(
    tmp_path: Path,
) -> None:
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env={**os.environ, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout == ""
    assert list(tmp_path.iterdir()) == []
