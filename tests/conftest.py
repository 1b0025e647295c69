"""Rules for every test: no network beyond this machine, and nothing left running."""

from __future__ import annotations

import asyncio
import ipaddress
import re
import signal
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import hypothesis
import pytest

# The same examples in every run: a build is red for a change, not by luck. To look for new ones:
# pytest -m hypothesis --hypothesis-profile search
# No deadline: on a busy machine any example can be slow, which says nothing about the code.
hypothesis.settings.register_profile("nlsom", deadline=None, derandomize=True)
hypothesis.settings.register_profile("search", deadline=None, max_examples=2000)
hypothesis.settings.load_profile("nlsom")

# Background jobs of a shell script ignore SIGINT, and processes started by tests would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)


def _is_loopback(address: Any) -> bool:
    if not isinstance(address, tuple):
        return True  # A Unix socket.
    try:
        return ipaddress.ip_address(str(address[0]).partition("%")[0]).is_loopback
    except ValueError:
        return address[0] in ("localhost", "")


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails a test that connects to anything but this machine."""
    connect, connect_ex, look_up = socket.socket.connect, socket.socket.connect_ex, socket.getaddrinfo

    def guarded(self: socket.socket, address: Any) -> None:
        assert _is_loopback(address), f"a test tried to reach {address}"
        return connect(self, address)

    def guarded_ex(self: socket.socket, address: Any) -> int:
        assert _is_loopback(address), f"a test tried to reach {address}"
        return connect_ex(self, address)

    def guarded_look_up(host: Any, *args: Any, **kwargs: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else host
        written_out = name is None or re.fullmatch(r"[0-9a-fA-Fx.:]+", name)  # Needs no name server.
        assert written_out or _is_loopback((name,)), f"a test tried to look up {name}"
        return look_up(host, *args, **kwargs)

    monkeypatch.setattr(socket.socket, "connect", guarded)
    monkeypatch.setattr(socket.socket, "connect_ex", guarded_ex)
    monkeypatch.setattr(socket, "getaddrinfo", guarded_look_up)


@pytest.fixture(autouse=True)
def _no_thread_left() -> Iterator[None]:
    """Fails a test that leaves one of our threads behind; the event loop's own threads end with the loop."""
    before = set(threading.enumerate())
    yield
    left = [
        thread
        for thread in set(threading.enumerate()) - before
        if thread.is_alive() and not thread.name.startswith(("asyncio_", "pydevd", "AnyIO"))
    ]
    for thread in left:
        thread.join(timeout=5)
    assert not [thread.name for thread in left if thread.is_alive()]


@pytest.fixture(autouse=True)
async def _no_task_left() -> AsyncIterator[None]:
    """Fails a test that leaves a task behind."""
    yield
    left = set[asyncio.Task[Any]]()
    for _ in range(50):  # Tasks that are ending need a few iterations of the loop.
        left = asyncio.all_tasks() - {asyncio.current_task()}
        if not left:
            break
        await asyncio.sleep(0)
    assert not left, f"tasks left behind: {left}"
