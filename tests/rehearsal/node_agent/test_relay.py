from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator

import pytest

from kueue_rehearsal.node_agent.addresses import can_listen
from kueue_rehearsal.node_agent.relay import Relays

IP = "127.70.3.4"


@pytest.fixture
async def echo() -> AsyncIterator[int]:
    """The port of a server that sends back what it gets."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.read())
        writer.close()

    server = await asyncio.start_server(answer, IP, 0)
    yield server.sockets[0].getsockname()[1]
    server.close()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((IP, 0))
        return int(probe.getsockname()[1])


async def ask(port: int, text: bytes) -> bytes:
    reader, writer = await asyncio.open_connection(IP, port)
    writer.write(text)
    writer.write_eof()
    answer = await reader.read()
    writer.close()
    return answer


async def test_bytes_go_both_ways_and_the_end_of_either_side_is_handed_on(echo: int) -> None:
    relays, port = Relays(), free_port()
    await relays.keep({(IP, port): (IP, echo)})
    assert await ask(port, b"x" * 300_000) == b"x" * 300_000
    await relays.close()


async def test_what_is_not_wanted_any_more_is_not_listened_on(echo: int) -> None:
    relays, port = Relays(), free_port()
    await relays.keep({(IP, port): (IP, echo)})
    await relays.keep({})
    with pytest.raises(ConnectionRefusedError):
        await ask(port, b"x")
    assert can_listen(IP, port)


async def test_a_changed_target_is_used_from_then_on(echo: int) -> None:
    relays, port = Relays(), free_port()
    await relays.keep({(IP, port): (IP, free_port())})
    assert await ask(port, b"") == b""
    await relays.keep({(IP, port): (IP, echo)})
    assert await ask(port, b"hello") == b"hello"
    await relays.close()


async def test_a_port_in_use_cannot_be_listened_on(echo: int) -> None:
    assert not can_listen(IP, echo)
    with pytest.raises(OSError, match="address already in use"):
        await Relays().keep({(IP, echo): (IP, 1)})
