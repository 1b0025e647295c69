"""The socket that the server listens on."""

from __future__ import annotations

import asyncio
import socket

from nlsom_serve.server import listen


async def test_what_is_sent_does_not_wait_for_acknowledgements():
    nodelay: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def look(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        accepted = writer.get_extra_info("socket")
        nodelay.set_result(accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        writer.close()

    sock = listen("127.0.0.1", 0)
    server = await asyncio.start_server(look, sock=sock)
    async with server:
        _, writer = await asyncio.open_connection(*sock.getsockname()[:2])
        assert await nodelay
        writer.close()
        await writer.wait_closed()
