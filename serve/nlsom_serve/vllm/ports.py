"""Ports: which are free, and how one is kept for a server until it binds it itself.

A vLLM server binds its port seconds after it is started and listens half a minute later. Until it listens,
a second one can bind the same port (both set SO_REUSEADDR), and whoever asks one of them is answered by the
other. So a port is free only if it can be bound without that option, and a socket that never listens keeps
it from the start.
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterable, Iterator
from pathlib import Path

from nlsom.errors import UsageError

_TIME_WAIT, _LISTEN = "06", "0A"  # include/net/tcp_states.h


def is_free(host: str, port: int, *, lingering: bool = False) -> bool:
    """Whether a server can take a port, and no other is about to.

    Args:
        host: Address to listen on.
        port: The port.
        lingering: Whether a port counts as free that only connections hold which are over (TIME_WAIT, for a
            minute): they keep no server from it, but hide one that is about to listen.
    """
    if _binds(host, port, reuse=False):
        return True
    return lingering and port in _lingering() and _binds(host, port, reuse=True)


def reserve(host: str, port: int, *, lingering: bool = False) -> socket.socket:
    """Keeps a free port until the socket is closed everywhere; a server can bind it beside.

    Raises:
        UsageError: It is not free.
    """
    kept = _socket(host, reuse=True)
    try:
        if is_free(host, port, lingering=lingering):
            kept.bind((host, port))
            return kept
    except OSError:
        pass  # taken just now
    kept.close()
    raise in_use(host, port)


def in_use(host: str, port: int) -> UsageError:
    """Says that a port is taken, and what to do."""
    return UsageError(
        f"port {port} is in use on {host}: stop what listens there (`nlsom models status` shows our own), or "
        "set another `port` in the profile, or none to have one chosen"
    )


def _socket(host: str, *, reuse: bool) -> socket.socket:
    made = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, int(reuse))
    return made


def _binds(host: str, port: int, *, reuse: bool) -> bool:
    with _socket(host, reuse=reuse) as probe:
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def listens(port: int, pids: Iterable[int]) -> bool:
    """Whether it is one of these processes that listens on a port, and not a stranger that took it."""
    sockets = {
        f"socket:[{inode}]" for at, tcp_state, inode in _connections() if (at, tcp_state) == (port, _LISTEN)
    }
    for pid in pids:
        with contextlib.suppress(OSError):  # the process, or one of its files, is gone by now
            if any(os.readlink(f"/proc/{pid}/fd/{fd}") in sockets for fd in os.listdir(f"/proc/{pid}/fd")):
                return True
    return False


def _lingering() -> set[int]:
    """Ports of connections that are over."""
    return {port for port, tcp_state, _ in _connections() if tcp_state == _TIME_WAIT}


def _connections() -> Iterator[tuple[int, str, str]]:
    """Local port, state and inode of each TCP socket (proc_net_tcp in the kernel's documentation)."""
    for table in (Path("/proc/net/tcp"), Path("/proc/net/tcp6")):
        for line in table.read_text().splitlines()[1:] if table.is_file() else ():
            fields = line.split()
            yield int(fields[1].rpartition(":")[2], 16), fields[3], fields[9]
