"""Keeps one server: nothing of it outlives its own end, nor, unless detached, the process that asked for it.

    python guard.py attached|detached GRACE COMMAND …

It leads the session that the server and all its workers run in. Attached, its standard input is a pipe whose
other end only the nlsom process holds: when that process ends, however it ends, the pipe closes, and the
whole session is ended. A pipe is used rather than PR_SET_PDEATHSIG, which reaches one process and no worker
of it, and fires when the *thread* that started it ends.

Run by its path, so it imports the standard library only.
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
    """Fields of `/proc/PID/stat` from the state on (the 3rd in proc(5)); None for no such process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return text.rpartition(")")[2].split()


def living() -> Iterator[tuple[int, int, int]]:
    """Living processes: pid, pid of the parent, session."""
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            fields = stat_of(int(entry.name))
            if fields is not None and fields[0] not in "ZX":
                yield int(entry.name), int(fields[1]), int(fields[3])


def session_of(leader: int) -> list[int]:
    """Living processes of a session, workers that outlived its leader included."""
    return [pid for pid, _, session in living() if session == leader]


def send(pids: list[int], sig: signal.Signals) -> None:
    """Sends a signal to processes, some of which may be gone by now."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):  # ended since it was listed, as it was to
            os.kill(pid, sig)


def _end_others(me: int, grace: float) -> None:
    deadline = time.monotonic() + grace
    send(_others(me), signal.SIGTERM)
    while others := _others(me):
        if time.monotonic() > deadline:
            send(others, signal.SIGKILL)
        time.sleep(0.05)


def _others(me: int) -> list[int]:
    """The rest of the session, and orphans that left it: these come to this process (see `main`)."""
    return [pid for pid, parent, session in living() if me in (parent, session) and pid != me]


def _end_at_eof(me: int, grace: float) -> None:
    while os.read(0, 1):
        pass
    _end_others(me, grace)


def _stay(_sig: int, _frame: FrameType | None) -> None:
    pass


def main(mode: str, grace: float, command: list[str]) -> int:
    """Runs a server to its end and ends what is left of it; returns its exit status."""
    # A handler, not SIG_IGN, which the server would inherit: whoever ends the session signals all of it, and
    # this process is to go last.
    for sig in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(sig, _stay)
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    me = os.getpid()
    server = subprocess.Popen(command, stdin=subprocess.DEVNULL)  # noqa: S603 (what nlsom was told to run)
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
