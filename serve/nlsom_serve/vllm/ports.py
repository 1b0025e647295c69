"""Finds free ports, and reserves them for servers that bind them only later.

A vLLM server binds its port seconds after its start and listens half a minute later. Until it listens, a
second server can bind the same port (both set SO_REUSEADDR), and requests to one may reach the other. So a
port counts as free only if it can be bound without that option, and a socket that never listens reserves it.
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
    """Whether a server can use a port, and no other has bound it without listening yet.

    Args:
        host: Address to listen on.
        port: The port.
        lingering: Whether a port counts as free that only closed connections occupy (TIME_WAIT, for a
            minute). A server could bind it, but one that does not listen yet would go unnoticed.
    """
    if _binds(host, port, reuse=False):
        return True
    return lingering and port in _lingering() and _binds(host, port, reuse=True)


def reserve(host: str, port: int, *, lingering: bool = False) -> socket.socket:
    """Reserves a free port until the returned socket is closed in all processes; a server can still bind it.

    Raises:
        UsageError: The port is not free.
    """
    reserved = _socket(host, reuse=True)
    try:
        if is_free(host, port, lingering=lingering):
            reserved.bind((host, port))
            return reserved
    except OSError:
        pass  # taken since `is_free` looked
    reserved.close()
    raise in_use(host, port)


def in_use(host: str, port: int) -> UsageError:
    """The error for a port that is in use."""
    return UsageError(
        f"port {port} is in use on {host}: stop what listens there (`nlsom models status` shows servers of "
        "nlsom), set another `port` in the profile, or remove `port` to have a free one chosen"
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
    """Whether one of these processes listens on a port, rather than another process."""
    sockets = {
        f"socket:[{inode}]" for at, tcp_state, inode in _connections() if (at, tcp_state) == (port, _LISTEN)
    }
    for pid in pids:
        with contextlib.suppress(OSError):  # the process has ended or closed the file
            if any(os.readlink(f"/proc/{pid}/fd/{fd}") in sockets for fd in os.listdir(f"/proc/{pid}/fd")):
                return True
    return False


def _lingering() -> set[int]:
    """Local ports of closed connections."""
    return {port for port, tcp_state, _ in _connections() if tcp_state == _TIME_WAIT}


def _connections() -> Iterator[tuple[int, str, str]]:
    """Yields local port, state and inode of each TCP socket (proc_net_tcp in the kernel's documentation)."""
    for table in (Path("/proc/net/tcp"), Path("/proc/net/tcp6")):
        for line in table.read_text().splitlines()[1:] if table.is_file() else ():
            fields = line.split()
            yield int(fields[1].rpartition(":")[2], 16), fields[3], fields[9]
