"""Supervises one server: ends all its workers when it ends and, if attached, when its starter ends.

    python guard.py attached|detached GRACE COMMAND …

The guard leads the session that the server and all its workers run in. If attached, its standard input is a
pipe whose other end only the nlsom process holds: when that process ends, in whatever way, the pipe closes,
and the guard ends the session. PR_SET_PDEATHSIG would reach one process without its workers, and fires when
the *thread* that started it ends.

Run by its path, so it imports only the standard library.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

_PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
GRACE = 10.0
"""Seconds between asking a session to end and killing it."""


def stat_of(pid: int) -> list[str] | None:
    """Fields of `/proc/PID/stat` from the state on (field 3 in proc(5)); None if there is no such process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return text.rpartition(")")[2].split()


def living() -> Iterator[tuple[int, int, int]]:
    """Yields living processes: pid, parent's pid, session id."""
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            fields = stat_of(int(entry.name))
            if fields is not None and fields[0] not in "ZX":
                yield int(entry.name), int(fields[1]), int(fields[3])


def session_of(leader: int) -> list[int]:
    """Pids of a session's living processes, even after its leader has ended."""
    return [pid for pid, _, session in living() if session == leader]


def send(pids: list[int], sig: signal.Signals) -> None:
    """Sends a signal to processes; those that have ended are skipped."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):  # ended since it was listed
            os.kill(pid, sig)


def _end_others(me: int, grace: float) -> None:
    deadline = time.monotonic() + grace
    send(_others(me), signal.SIGTERM)
    while others := _others(me):
        if time.monotonic() > deadline:
            send(others, signal.SIGKILL)
        time.sleep(0.05)


def _others(me: int) -> list[int]:
    """The rest of the session, and orphans that left it: as subreaper (see `main`), this is their parent."""
    return [pid for pid, parent, session in living() if me in (parent, session) and pid != me]


def _end_at_eof(me: int, grace: float) -> None:
    while os.read(0, 1):
        pass
    _end_others(me, grace)


def _stay(_sig: int, _frame: FrameType | None) -> None:
    pass


def main(mode: str, grace: float, command: list[str]) -> int:
    """Runs a server until it ends, then ends its remaining processes; returns its exit status."""
    # Signals that end the session reach this process too, which has to end last. A handler rather than
    # SIG_IGN, which the server would inherit.
    for sig in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(sig, _stay)
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    me = os.getpid()
    server = subprocess.Popen(command, stdin=subprocess.DEVNULL)  # noqa: S603 (the user's own vLLM)
    if mode == "attached":
        threading.Thread(target=_end_at_eof, args=(me, grace), daemon=True).start()
    status = server.wait()
    _end_others(me, grace)
    with contextlib.suppress(ChildProcessError):  # no more children
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], float(sys.argv[2]), sys.argv[3:]))
